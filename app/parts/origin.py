"""Where a value came from: the values that it was made of, and theirs, through back edges, slices and branches; a click goes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import engine
from app import actions, markup
from app.iterations import preview
from app.parts import chain
from app.places import moment_of
from app.session import current
from app.wording import path_words
from engine.errors import EngineError
from engine.explain.origin import Step, genealogy
from engine.ir.address import Address

KEY = "origin"
MOST = 60
DEEPEST = 9

Found = tuple[int, str, Step | None, str]
"""Depth, role, the step (None where it is shown further up), address."""

_KINDS: Mapping[str, str] = {"back edge": "back", "initial value": "back", "branch": "branch", "condition": "branch"}


def show(debugger: engine.Debugger, address: str) -> None:
    """``address``: of a value that has been computed."""
    try:
        steps = steps_to(debugger, address)
    except EngineError as error:
        markup.show(markup.text(error, 400), "quiet")
        return
    rows = tree(steps)
    lines = [_line(debugger, *row) for row in rows]
    inputs = [step for step in steps if step.operation == "Parameter" and not step.links]
    told = ", ".join(_name(step.address) for step in inputs[:4])
    markup.show(
        f"{markup.section('Where did this come from?')}"
        + (f'<span class="quiet">In the end from the inputs {markup.text(told, 160)}.</span>' if told and len(steps) < MOST * 2 else "")
    )
    chain.show(lines, key=KEY, on_pick=lambda number: _go(rows[number][3]))
    if len(rows) >= MOST or len(steps) >= MOST * 2 or any(step.left_out for step in steps):
        markup.show("It goes further back: click a line, and look from there.", "quiet")


def steps_to(debugger: engine.Debugger, address: str) -> tuple[Step, ...]:
    """What is told of a value's genealogy, here and on the canvas."""
    return genealogy(debugger, address, MOST * 2)


def tree(steps: Sequence[Step]) -> list[Found]:
    """A genealogy as an indented list, each value once with what it was made from; at most ``MOST`` lines."""
    by_address = {step.address: step for step in steps}
    rows: list[Found] = []
    seen: set[str] = set()
    waiting: list[tuple[int, str, str]] = [(0, "", steps[0].address)] if steps else []
    while waiting and len(rows) < MOST:
        depth, role, address = waiting.pop()
        step = by_address.get(address) if address not in seen else None
        rows.append((depth, role, step, address))
        seen.add(address)
        if step is not None and depth < DEEPEST:
            # What continues a chain comes last, so that short sides are read first.
            links = sorted(step.links, key=lambda link: bool(by_address.get(link.address) and by_address[link.address].links))
            waiting += [(depth + 1, link.role, link.address) for link in reversed(links)]
    return rows


def _line(debugger: engine.Debugger, depth: int, role: str, step: Step | None, address: str) -> chain.Line:
    shown = _name(address)
    around = " › ".join(path_words(address)[1:-1])
    kind = step.operation if step else "see above" if role else ""
    detail = " · ".join(part for part in (kind, around if depth == 0 or role != "operand" else "") if part)
    colour = _KINDS.get(role, "")
    return chain.Line(
        shown,
        "" if role == "operand" else role,
        detail,
        preview(debugger, address),
        depth,
        "back" if colour == "back" else "branch" if colour == "branch" else "",
        address,
    )


def _name(address: str) -> str:
    return path_words(address)[-1]


def _go(address: str) -> None:
    """To the moment when the value had just been computed, with its node pinned."""
    debugger = current().debugger
    if debugger is None:
        return
    go_to_value(debugger, address)


def go_to_value(debugger: engine.Debugger, address: str) -> None:
    """To the moment when the value at a concrete address had just been computed, with its node pinned and revealed."""
    actions.seek(moment_of(debugger, address))
    actions.reveal_place(Address.parse(address).static)
