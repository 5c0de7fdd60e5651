"""A graph as code at a moment of a run, and short texts of all values at the cursor."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import loopscope
from loopscope.errors import EngineError, shorten
from loopscope.executor import Plan
from loopscope.explain import Listing, runnable_code
from loopscope.ir import Address, Model
from loopscope.object_cache import cache_by_object
from loopscope.view import value_preview
from loopscope_app.describe.node_index import places

MOST_LINES = 3000
_MAX_LINE_LENGTH = 400


def shown_lines(plan: Plan, root: str, code: Listing) -> dict[str, object]:
    """Return the browser's data of a listing: lines, each with True if it belongs to a node, and
    the head of a runnable file.
    """
    lines = [
        [shorten(line.text, _MAX_LINE_LENGTH), bool(line.address)]
        for line in code.lines[:MOST_LINES]
    ]
    name = hashlib.blake2b(code.text.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return {"lines": lines, "head": _head(plan, root, code), "hash": name}


def _head(plan: Plan, root: str, code: Listing) -> str:
    """Return the lines that a file needs before the shown lines to be runnable."""
    try:
        whole = runnable_code(plan, root)
    except EngineError:
        return ""
    return "".join(f"{line.text}\n" for line in whole.lines[: len(whole.lines) - len(code.lines)])


def code_moment(
    debugger: loopscope.Debugger,
    code: Listing,
    selected: str,
    previews: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the data that changes with a step: numbers of current, chosen and skipped lines, from
    0, and values beside lines.

    ``previews`` caches texts by concrete address during a run.
    """
    values = values_at(debugger, previews)
    statuses: Mapping[str, str] = debugger.statuses()
    dim = {
        number for branch in _skipped_branches(debugger) for number in branch_lines(code, *branch)
    }
    hints: dict[str, str] = {}
    for number, address, has_value in _lines_of_nodes(code, debugger.model):
        if statuses.get(address) == "skipped":
            dim.add(number)
        elif has_value and address in values:
            hints[str(number)] = values[address]
    return {
        "current": current_lines(debugger, code),
        "chosen": _line_numbers(code, selected),
        "dim": sorted(dim),
        "hints": hints,
    }


@cache_by_object(key=lambda *_: None)  # the listing is of this model, which a key would keep alive
def _lines_of_nodes(code: Listing, model: Model) -> Sequence[tuple[int, str, bool]]:
    """Return number (from 0) and static address of each line of a node, and True if its value is
    shown.
    """
    by_address = places(model)
    lines: list[tuple[int, str, bool]] = []
    for number, line in enumerate(code.lines[:MOST_LINES]):
        place = by_address.get(line.address)
        if place is not None:
            is_single = len(place.node.outputs) == len(code.lines_of(line.address)) == 1
            lines.append((number, line.address, is_single and place.node.type != "Const"))
    return lines


def _skipped_branches(debugger: loopscope.Debugger) -> list[tuple[str, str]]:
    """Return the address of each If that took a branch at the cursor, and the name of the other
    branch.
    """
    scene = debugger.scene()
    programs = [program for program in debugger.plan.programs if program.index in scene.skipped]
    return [(program.address.rpartition("/")[0], program.branch_name) for program in programs]


def branch_lines(code: Listing, address: str, branch: str) -> range:
    """Return the line numbers, from 0, of one branch of an If; nothing if the If is not in the
    listing.
    """
    lines = _line_numbers(code, address)
    middle = next((number for number in lines if code.lines[number].text.strip() == "else:"), None)
    if not lines or branch not in ("then", "else"):
        return range(0)
    if branch == "then":
        return range(lines[0] + 1, middle if middle is not None else lines[-1] + 1)
    return range(middle + 1, lines[-1] + 1) if middle is not None else range(0)


def current_lines(debugger: loopscope.Debugger, code: Listing) -> list[int]:
    """Return the line of the next operation.

    At the end of a body, it is the last line of the body. At the end of the run, it is the return.
    """
    cursor = debugger.cursor
    if not cursor.address:
        returns = [
            number
            for number, line in enumerate(code.lines)
            if line.text.lstrip().startswith("return")
        ]
        return [number for number in returns[-1:] if number < MOST_LINES]
    static = Address.parse(cursor.address).static
    if cursor.kind == "end":
        owner, _, body = static.rpartition("/")
        return list(branch_lines(code, owner, body))[-1:] or _line_numbers(code, owner)[-1:]
    lines = _line_numbers(code, static)
    headers = [
        number
        for number in lines
        if code.lines[number].text.lstrip().startswith(("for ", "while "))
    ]
    return headers[:1] if cursor.kind == "enter" and headers else lines[:1]


def _line_numbers(code: Listing, address: str) -> list[int]:
    return (
        [number - 1 for number in code.lines_of(address) if number <= MOST_LINES] if address else []
    )


MOST_VALUES = 1500
"""Number of nodes up to which values are computed; more would slow every step and key press
down.
"""


@cache_by_object(key=lambda debugger, *_: debugger.cursor.step, newest_only=True)
def values_at(
    debugger: loopscope.Debugger, previews: dict[str, str] | None = None
) -> Mapping[str, str]:
    """Return previews of the values at the cursor by static address; nothing for a model with too
    many nodes.

    ``previews`` caches texts by concrete address during a run.
    """
    if len(places(debugger.model)) > MOST_VALUES:
        return {}
    return dict(_previews(debugger, {} if previews is None else previews))


def _previews(debugger: loopscope.Debugger, known: dict[str, str]) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    scene, timeline = debugger.scene(), debugger.timeline
    for program in debugger.plan.programs:
        execution = scene.shown.get(program.index)
        if execution is None:
            continue
        graph = timeline.address(program, execution.row)
        for label, layer in program.layer_of_label.items():
            slot = program.slots.get((layer, 0))
            if slot is None or program.producer.get(slot, -1) >= execution.position:
                continue
            place = f"{graph}/{label}"
            if place not in known:
                try:
                    known[place] = value_preview(debugger.value(place))
                except EngineError:
                    continue
            texts.append((f"{program.address}/{label}", known[place]))
    return texts
