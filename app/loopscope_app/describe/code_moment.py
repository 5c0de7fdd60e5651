"""A graph as code at a moment of a run: the current line, the lines that are skipped, values
beside lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import loopscope
from loopscope.errors import EngineError, shorten
from loopscope.executor import Plan
from loopscope.explain import Listing, runnable_code
from loopscope.ir import Address, Model
from loopscope_app.describe.node_index import places
from loopscope_app.describe.values_at_cursor import values_at

MOST_LINES = 3000
_LONGEST = 400
_known: WeakKeyDictionary[Listing, Sequence[tuple[int, str, bool]]] = WeakKeyDictionary()


def shown_lines(plan: Plan, root: str, code: Listing) -> dict[str, object]:
    """What a browser gets of the listing of a graph: lines, each with whether it is of a node;
    what a file that runs needs before them.
    """
    lines = [[shorten(line.text, _LONGEST), bool(line.address)] for line in code.lines[:MOST_LINES]]
    name = hashlib.blake2b(code.text.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return {"lines": lines, "head": _head(plan, root, code), "hash": name}


def _head(plan: Plan, root: str, code: Listing) -> str:
    """What a file needs before the shown lines, so that it runs."""
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
    """What changes with a step: numbers of the current, chosen and skipped lines, from 0, and the
    values beside lines.

    ``previews``: texts by concrete address, kept by the caller as long as the run lasts.
    """
    values = values_at(debugger, previews)
    statuses: Mapping[str, str] = debugger.statuses()
    dim = {number for one in _skipped(debugger) for number in branch_lines(code, *one)}
    hints: dict[str, str] = {}
    for number, address, has_value in _lines_of_nodes(debugger.model, code):
        if statuses.get(address) == "skipped":
            dim.add(number)
        elif has_value and address in values:
            hints[str(number)] = values[address]
    return {
        "current": current_lines(debugger, code),
        "chosen": _lines(code, selected),
        "dim": sorted(dim),
        "hints": hints,
    }


def _lines_of_nodes(model: Model, code: Listing) -> Sequence[tuple[int, str, bool]]:
    """Number, from 0, and static address of each line that is of a node; and whether what the
    node makes stands beside it.
    """
    if code not in _known:
        at = places(model)
        found: list[tuple[int, str, bool]] = []
        for number, line in enumerate(code.lines[:MOST_LINES]):
            place = at.get(line.address)
            if place is not None:
                alone = len(place.node.outputs) == len(code.lines_of(line.address)) == 1
                found.append((number, line.address, alone and place.node.type != "Const"))
        _known[code] = found
    return _known[code]


def _skipped(debugger: loopscope.Debugger) -> list[tuple[str, str]]:
    """Static address of each If that has taken one branch at the cursor, and the name of the
    other.
    """
    scene = debugger.scene()
    found = [one for one in debugger.plan.programs if one.index in scene.skipped]
    return [(one.address.rpartition("/")[0], one.branch_name) for one in found]


def branch_lines(code: Listing, address: str, branch: str) -> range:
    """Numbers, from 0, of the lines of one branch of the If at a static address; none where it
    is not in the listing.
    """
    own = _lines(code, address)
    middle = next((number for number in own if code.lines[number].text.strip() == "else:"), None)
    if not own or branch not in ("then", "else"):
        return range(0)
    if branch == "then":
        return range(own[0] + 1, middle if middle is not None else own[-1] + 1)
    return range(middle + 1, own[-1] + 1) if middle is not None else range(0)


def current_lines(debugger: loopscope.Debugger, code: Listing) -> list[int]:
    """The line of what runs next; at the end of a body the last line that belongs to it; at the
    end of all the return.
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
        return list(branch_lines(code, owner, body))[-1:] or _lines(code, owner)[-1:]
    own = _lines(code, static)
    headers = [
        number for number in own if code.lines[number].text.lstrip().startswith(("for ", "while "))
    ]
    return headers[:1] if cursor.kind == "enter" and headers else own[:1]


def _lines(code: Listing, address: str) -> list[int]:
    return (
        [number - 1 for number in code.lines_of(address) if number <= MOST_LINES] if address else []
    )
