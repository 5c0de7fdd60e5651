"""The origin of a value: the values that it was computed from, and theirs, through back edges,
slices and branches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import streamlit as st

import loopscope
from loopscope.errors import EngineError, elided
from loopscope.explain import ProvenanceStep, TensorPart, parse_index, provenance
from loopscope.ir import Address, readable_around, readable_steps
from loopscope.view import value_preview
from loopscope_app.actions import moves, selection
from loopscope_app.describe.iteration_table import preview
from loopscope_app.describe.node_index import moment_of
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.user_session import current, widget

KEY = "origin"
MOST = 60
DEEPEST = 9

Found = tuple[int, str, ProvenanceStep | None, str, TensorPart | None]
"""Depth, role, step (None if it is listed above), address and part."""

_KINDS: Mapping[str, Literal["back", "branch"]] = {
    "back edge": "back",
    "initial value": "back",
    "assigned": "back",
    "branch": "branch",
    "condition": "branch",
    "trip count": "branch",
}


def show(debugger: loopscope.Debugger, address: str) -> None:
    """Show the origin of a computed value, given its address."""
    markup.show(markup.section("Where did this value come from?"))
    if np.size(debugger.value(address)) > 1:
        st.text_input(
            "Which part",
            key=_part_key(address),
            placeholder="all of it, or a part: 2, 0:4",
            label_visibility="collapsed",
            max_chars=80,
        )
    try:
        steps = steps_to(debugger, address)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    rows = tree(steps)
    lines = [_line(debugger, *row) for row in rows]
    inputs = [step for step in steps if step.operation == "Parameter" and not step.links]
    names = ", ".join(list(dict.fromkeys(_name(step.address) for step in inputs))[:4])
    if names and len(steps) < MOST * 2:
        markup.show(f"Computed from the inputs {markup.text(names, 160)}.", "quiet")
    place_lists.show_list(lines, key=KEY, on_pick=lambda number: _go(rows[number][3]))
    if len(rows) >= MOST or len(steps) >= MOST * 2 or any(step.left_out for step in steps):
        markup.show("The chain continues: click a line to follow it from there.", "quiet")


def steps_to(debugger: loopscope.Debugger, address: str) -> tuple[ProvenanceStep, ...]:
    """Return the provenance of a value, or of its chosen part, for this view and the canvas."""
    return provenance(
        debugger, address, MOST * 2, part=parse_index(widget(_part_key(address)) or "")
    )


def _part_key(address: str) -> str:
    return f"origin_part_{address}"


def tree(steps: Sequence[ProvenanceStep]) -> list[Found]:
    """Return a provenance as an indented list, each value once with its operands; at most ``MOST``
    lines.
    """
    known = {(step.address, step.part): step for step in steps}
    going_on = {value for value, step in known.items() if step.links}
    rows: list[Found] = []
    seen: set[tuple[str, TensorPart | None]] = set()
    waiting: list[tuple[int, str, tuple[str, TensorPart | None]]] = [
        (0, "", value) for value in list(known)[:1]
    ]
    while waiting and len(rows) < MOST:
        depth, role, value = waiting.pop()
        step = known.get(value) if value not in seen else None
        rows.append((depth, role, step, *value))
        seen.add(value)
        if step is not None and depth < DEEPEST:
            # What continues a chain comes last, so that short sides are read first.
            links = sorted(step.links, key=lambda link: (link.address, link.part) in going_on)
            waiting += [
                (depth + 1, link.role, (link.address, link.part)) for link in reversed(links)
            ]
    return rows


def _line(
    debugger: loopscope.Debugger,
    depth: int,
    role: str,
    step: ProvenanceStep | None,
    address: str,
    part: TensorPart | None,
) -> place_lists.ChainLine:
    shown = f"{_name(address)}{part or ''}"
    around = readable_around(address)
    kind = step.operation if step else "see above" if role else ""
    detail = " · ".join(
        filter(None, (kind, elided(around, 200) if depth == 0 or role != "operand" else ""))
    )
    return place_lists.ChainLine(
        elided(shown, 200),
        "" if role == "operand" else role,
        detail,
        preview(debugger, address) if part is None else _preview(debugger, address, part),
        depth,
        _KINDS.get(role, ""),
        f"{address}{part or ''}",
    )


def _preview(debugger: loopscope.Debugger, address: str, part: TensorPart) -> str:
    """Return a short text of a part of a value; empty without a value."""
    try:
        return value_preview(
            debugger.value(address)[part.slices if len(part.ranges) > 1 else slice(*part.ranges[0])]
        )
    except EngineError:
        return ""


def _name(address: str) -> str:
    return readable_steps(address)[-1]


def _go(address: str) -> None:
    """Go to the moment after the value was computed, and select its node."""
    debugger = current().run.debugger
    if debugger is None:
        return
    go_to_value(debugger, address)


def go_to_value(debugger: loopscope.Debugger, address: str) -> None:
    """Go to the moment after a value was computed, given its concrete address; select and reveal
    its node.
    """
    moves.seek(moment_of(debugger, address))
    selection.reveal_place(Address.parse(address).static)
