"""The whole run as nested lanes of iterations, coloured by branch or by a carried value."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.debug import value_names
from loopscope.executor import LoopRegion, Program, Slot
from loopscope.explain import Icicle, IcicleSpan, body_begin, breakpoint_steps, icicle
from loopscope.ir import decode, iteration_range, readable, significant
from loopscope.object_cache import cache_by_object
from loopscope.ops import is_tensor
from loopscope_app.actions import moves
from loopscope_app.describe.first_nan import SEARCHES, first_odd
from loopscope_app.parts.widgets import lanes, markup
from loopscope_app.state.user_session import UserSession, current

KEY, COLOUR = "whole_run", "whole_run_colour"
BRANCH = "iterations and branches"
_HEADER_REM = 10.5
"""Height in rem of header, controls and a line."""

Colour = tuple[int, Slot, str]
"""Program number, slot and name of the carried value that colours the iterations."""


def show(session: UserSession, bar: DeltaGenerator) -> None:
    """Show the run. ``bar`` is the container for the legend and the choice of colours."""
    debugger = session.run.debugger
    if debugger is None or not debugger.steps:
        lanes.leave_room(None, _HEADER_REM)
        with bar:
            markup.show("Run the model to draw its timeline.", "quiet")
            st.button("Run", key="timeline_run", type="primary", on_click=_run)
        return
    choices = colours(debugger)
    head = bar.container()
    chosen = (
        bar.selectbox(
            "Colour by",
            [BRANCH, *choices],
            key=COLOUR,
            label_visibility="collapsed",
            width=260,
        )
        if choices
        else BRANCH
    )
    chart, run = _chart(debugger, choices.get(str(chosen)))
    with head:
        markup.show(_legend(chart, bool(choices.get(str(chosen)))), "quiet")

    def picked(pick: lanes.Pick) -> None:
        debugger = current().run.debugger
        if debugger is not None:
            moves.seek(body_begin(debugger, int(pick.at), pick.lane))

    lanes.leave_room(chart, _HEADER_REM)
    lanes.show(chart, key=KEY, cursor=debugger.cursor.step, on_pick=picked)
    if run.deeper:
        markup.show(f"The run is nested deeper than the {len(run.lanes)} lanes shown.", "quiet")


def _run() -> None:
    moves.go(lambda debugger: debugger.run())


def colours(debugger: loopscope.Debugger) -> dict[str, Colour]:
    """Return the carried scalars of all loops by a name for the choice."""
    choices: dict[str, Colour] = {}
    for _, instruction in debugger.plan.regions:
        region = instruction.region
        if (
            not isinstance(region, LoopRegion)
            or not debugger.timeline.executions.rows[region.program.index]
        ):
            continue
        names = value_names(region.program)
        for binding in region.carried:
            value = _value(debugger, region.program, 0, binding.parameter)
            if value is not None:
                carried = decode(names[binding.parameter])
                choices.setdefault(
                    f"{carried} of {decode(instruction.label)}"[:80],
                    (region.program.index, binding.parameter, carried),
                )
    return choices


def _value(debugger: loopscope.Debugger, program: Program, row: int, slot: Slot) -> float | None:
    stored = debugger.values.get(debugger.timeline, program, row, slot)
    value = np.asarray(stored if is_tensor(stored) else "")
    return float(value.reshape(-1)[0]) if value.size == 1 and value.dtype.kind in "biuf" else None


def _picture_state(debugger: loopscope.Debugger, colour: Colour | None) -> Hashable:
    """Return what a picture shows. Only the cursor moves while this stays the same."""
    breakpoints = tuple(breakpoint.id for breakpoint in debugger.breakpoints.on)
    return debugger.steps, debugger.state, colour, breakpoints


@cache_by_object(key=_picture_state, newest_only=True)
def _chart(debugger: loopscope.Debugger, colour: Colour | None) -> tuple[lanes.Chart, Icicle]:
    run = icicle(debugger)
    return chart_of(debugger, run, colour), run


def chart_of(debugger: loopscope.Debugger, run: Icicle, colour: Colour | None) -> lanes.Chart:
    """Return the picture of a run."""
    drawn = [
        lanes.Lane(
            lane.title,
            _blocks(debugger, lane.spans, colour),
            height=24 if lane.depth else 16,
            strong=lane.depth == 0,
        )
        for lane in run.lanes
    ]
    marks = [lanes.Mark(step, "stop", words) for step, words in breakpoint_steps(debugger)]
    for odd in (first_odd(debugger, kind) for kind in SEARCHES):
        if odd.step is not None:
            first = f"first {odd.noun}" if odd.is_certain else f"{odd.noun}, perhaps not the first"
            marks.append(lanes.Mark(odd.step, "nan", f"{first}: {readable(odd.address)}"))
    return lanes.Chart(
        f"{run.steps:,} steps of the run in {len(run.lanes)} lanes",
        "step",
        max(run.steps, 1),
        drawn,
        marks,
    )


def _blocks(
    debugger: loopscope.Debugger, spans: tuple[IcicleSpan, ...], colour: Colour | None
) -> list[lanes.Block]:
    values = {id(span): _coloured(debugger, span, colour) for span in spans}
    finite = [value for value in values.values() if value is not None and np.isfinite(value)]
    scale = _Scale(finite)
    return [_block(span, values[id(span)], scale, colour) for span in spans]


def _coloured(
    debugger: loopscope.Debugger, span: IcicleSpan, colour: Colour | None
) -> float | None:
    if colour is None or span.iteration is None or span.program.index != colour[0]:
        return None
    return _value(debugger, span.program, span.row, colour[1])


class _Scale:
    """A map from numbers to levels: 0 to 1, or -1 to 1 if some are negative."""

    def __init__(self, numbers: list[float]) -> None:
        self.low, self.high = min(numbers, default=0.0), max(numbers, default=0.0)

    def level(self, number: float) -> float:
        if self.low < 0:
            return number / max(-self.low, self.high)
        return (number - self.low) / (self.high - self.low) if self.high > self.low else 0.5


def _block(
    span: IcicleSpan, value: float | None, scale: _Scale, colour: Colour | None
) -> lanes.Block:
    first, end = float(span.first), float(span.end)
    if span.program.parent is None:
        return (first, end, "odd" if span.region else "idle", 0, decode(span.region), _steps(span))
    if span.iteration is None:
        kind: lanes.Kind = (
            "then" if span.branch == "then" else "else" if span.branch == "else" else "even"
        )
        return (first, end, kind, 0, span.branch, f"{span.branch} · {_steps(span)}")
    last = span.last_iteration or span.iteration
    name = f"{span.iteration:,}" + (f" – {last:,}" if last > span.iteration else "")
    words = f"{iteration_range(span.iteration, last)} · {_steps(span)}"
    if value is None or colour is None:
        return (first, end, "odd" if span.iteration % 2 else "even", 0, name, words)
    tooltip = f"{words} · {colour[2]} = {significant(value, 6)}"
    if not np.isfinite(value):
        return (first, end, "nan", 0, "NaN" if np.isnan(value) else "inf", tooltip)
    return (first, end, "heat", round(scale.level(value), 3), f"{significant(value, 6)}", tooltip)


def _steps(span: IcicleSpan) -> str:
    return (
        f"step {span.first:,}"
        if span.end == span.first + 1
        else f"steps {span.first:,} to {span.end - 1:,}"
    )


def _legend(chart: lanes.Chart, by_value: bool) -> str:
    branches = {block[2] for lane in chart.lanes for block in lane.blocks}
    parts = [f'<i class="key {kind}"></i>{kind}' for kind in ("then", "else") if kind in branches]
    if by_value:
        parts.append('<i class="key heat"></i>small to large')
    parts += [
        f'<i class="key nan"></i>{markup.text(mark.text, 90)}'
        for mark in chart.marks
        if mark.kind == "nan"
    ]
    if any(mark.kind == "stop" for mark in chart.marks):
        parts.append('<i class="key stop"></i>breakpoint')
    if parts:
        return "&ensp;".join(parts)
    return (
        "Each block is one iteration; click one to go there."
        if chart.lanes[1:]
        else "No loop and no branch has run: click to go to a step."
    )
