"""The time of a run: the costliest operation and iteration, iterations as strips, operations by
cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.errors import elided
from loopscope.ir import iteration_range, iteration_words, readable, readable_steps
from loopscope.object_cache import cache_by_object
from loopscope.peers import Clock, Clocked, Iterations, runtime_of, time_words
from loopscope_app.actions import moves, selection, timing
from loopscope_app.parts.widgets import lanes, markup, place_lists
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession, current
from loopscope_app.state.view_choices import CLOCK_OF

KEY, COSTS = "clock", "clock_costs"
MOST_COLUMNS, MOST_LANES, MOST_LISTED = 128, 5, 12
_HEADER_REM = 11.0
"""Height in rem of header, controls and a line."""


def show(session: UserSession, loop: LoopInFocus | None, bar: DeltaGenerator) -> None:
    """Show the clock. ``bar`` is the container for the choice of the runtime and the button."""
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return
    _controls(runtime_of(opened.model), bar)
    if session.run.changes:
        markup.show("Times of the run without values set by hand.", "quiet")
    clock = session.run.clock
    if clock is None:
        lanes.leave_room(None, _HEADER_REM)
        markup.show(
            "Measure runs the model again and times each operation; the boxes on the canvas are "
            "tinted by their share.",
            "quiet",
        )
        return
    markup.show(
        markup.sentence(clock.sentence)
        + (f' <span class="quiet">{markup.sentence(clock.note)}</span>' if clock.note else ""),
        "headline",
    )
    chosen = chosen_loop(clock, loop.place.address if loop is not None else "")
    if chosen is None:
        lanes.leave_room(None)
        return
    chart, width = _chart(clock, chosen)
    lanes.leave_room(chart)
    lanes.show(
        chart,
        key=KEY,
        cursor=None,
        on_pick=lambda pick: _go(debugger, clock, chosen, pick, width),
    )


def show_costs(session: UserSession) -> None:
    """Show the costliest operations, if the run was measured."""
    if session.run.clock is not None:
        _costs(session.run.clock)


def _controls(runtime: str, bar: DeltaGenerator) -> None:
    with bar:
        if runtime:
            names = {"own": f"In {runtime}", "loopscope": "In steps of Loopscope"}
            st.selectbox(
                "Measured",
                list(names),
                key=CLOCK_OF,
                format_func=lambda name: names[name],
                label_visibility="collapsed",
                width=260,
            )
        st.button("Measure", key="clock_measure", type="primary", on_click=timing.measure)


def chosen_loop(clock: Clock, focus: str) -> Iterations | None:
    """Return the loop in focus, else the loop that took longest; None if the runtime reports no
    loop.
    """
    timed = [loop for loop in clock.loops if loop.times]
    return next((loop for loop in timed if loop.address == focus), None) or max(
        timed, key=lambda loop: sum(loop.times), default=None
    )


def inside(clock: Clock, loop: Iterations) -> list[Clocked]:
    """Return the costliest operations that ran once in each iteration of a loop."""
    mine = (
        operation
        for operation in clock.operations
        if operation.address.startswith(f"{loop.address}/") and operation.runs == sum(loop.there)
    )
    return [operation for operation in mine if len(operation.times) >= len(loop.times)][:MOST_LANES]


@cache_by_object(key=lambda clock, loop: loop.address)
def _chart(clock: Clock, loop: Iterations) -> tuple[lanes.Chart, int]:
    """Return the chart of a loop and the number of iterations per column."""
    width = -(-len(loop.times) // MOST_COLUMNS)
    rows: list[tuple[str, str, Sequence[float]]] = [(readable(loop.address), "", loop.times)]
    rows += [
        (
            readable_steps(operation.address)[-1],
            operation.operation,
            operation.times[: len(loop.times)],
        )
        for operation in inside(clock, loop)
    ]
    longest = max(max(_columns(times, width)) for _, _, times in rows[1:] or rows)
    drawn = [
        lanes.Lane(
            name,
            _blocks(times, width, longest if number else max(_columns(times, width))),
            strong=not number,
            note=kind,
            pick=bool(number),
        )
        for number, (name, kind, times) in enumerate(rows)
    ]
    ticks = [f"{begin:,}" for begin in range(0, len(loop.times), width)]
    unit = "iteration" if len(loop.there) == 1 else "iteration of all executions"
    return (
        lanes.Chart(
            f"time of each iteration of {readable(loop.address)}",
            unit,
            len(ticks),
            drawn,
            (),
            ticks,
        ),
        width,
    )


def _columns(times: Sequence[float], width: int) -> list[float]:
    """Return the mean time of the iterations that share a column."""
    return [
        sum(part) / len(part)
        for begin in range(0, len(times), width)
        if (part := times[begin : begin + width])
    ]


def _blocks(times: Sequence[float], width: int, longest: float) -> list[lanes.Block]:
    blocks: list[lanes.Block] = []
    for number, lasted in enumerate(_columns(times, width)):
        begin, end = number * width, min((number + 1) * width, len(times))
        where = iteration_words(begin) if width == 1 else f"{iteration_range(begin, end - 1)}, each"
        level = round(-max(lasted / longest, 0.02), 3) if longest > 0 else 0.0
        blocks.append(
            (
                float(number),
                float(number + 1),
                "heat",
                level,
                time_words(lasted),
                f"{where}: {time_words(lasted)}",
            )
        )
    return blocks


def _go(
    debugger: loopscope.Debugger, clock: Clock, loop: Iterations, pick: lanes.Pick, width: int
) -> None:
    """Go to the beginning of an iteration, if the stepped run has reached it and has the same
    iteration count.
    """
    rows = inside(clock, loop)
    if pick.lane > 0:
        selection.reveal_place(rows[pick.lane - 1].address)
    if pick.on_name:
        return
    program = next(
        (
            program
            for program in debugger.plan.programs
            if program.address == f"{loop.address}/body"
        ),
        None,
    )
    row = int(pick.at) * width
    if (
        program is not None
        and not loop.here
        and row < debugger.timeline.executions.rows[program.index]
    ):
        moves.seek(debugger.timeline.step_at(program, row, 0))


def _costs(clock: Clock) -> None:
    """Show the costliest operations as lines; a click goes to the place."""
    rows = clock.operations[:MOST_LISTED]
    total = clock.microseconds or 1.0
    lines = [_line(operation, total) for operation in rows]
    place_lists.show_list(lines, key=COSTS, on_pick=lambda number: _reveal(rows[number]))
    if len(clock.operations) > MOST_LISTED:
        markup.show(
            f"{len(clock.operations) - MOST_LISTED:,} more operations: loopscope clock --json "
            "lists all.",
            "quiet",
        )


def _line(operation: Clocked, total: float) -> place_lists.ChainLine:
    times = f"{operation.runs:,} runs" if operation.runs != 1 else "one run"
    title = elided(readable(operation.address) if operation.address else operation.name, 200)
    detail = f"{times} · {operation.microseconds / total:.0%}"
    return place_lists.ChainLine(
        title,
        operation.operation,
        detail,
        time_words(operation.microseconds),
        live=bool(operation.address),
    )


def _reveal(operation: Clocked) -> None:
    if operation.address and current().model.opened is not None:
        selection.reveal_place(operation.address)
