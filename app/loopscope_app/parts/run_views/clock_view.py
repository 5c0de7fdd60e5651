"""Where the time of a run goes: the costliest operation and iteration in a sentence, iterations
as strips, operations by cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.errors import elided
from loopscope.ir import iteration_range, iteration_words, readable, readable_steps
from loopscope.peers import Clock, Clocked, Iterations, runtime_of, time_words
from loopscope_app.actions import moves, selection, timing
from loopscope_app.parts.widgets import chain, lanes, markup
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession, current
from loopscope_app.state.view_choices import CLOCK_OF

KEY, COSTS = "clock", "clock_costs"
MOST_COLUMNS, MOST_LANES, MOST_LISTED = 128, 8, 12

_charts: WeakKeyDictionary[Clock, dict[str, tuple[lanes.Chart, int]]] = WeakKeyDictionary()
"""By loop: the picture, and how many iterations share a column."""


def show(session: UserSession, loop: LoopInFocus | None, bar: DeltaGenerator) -> None:
    """``bar``: where the choice of the runtime and the button go."""
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return
    _controls(runtime_of(opened.model), bar)
    if session.run.changes:
        markup.show("Times are those of the run without what was set by hand.", "quiet")
    found = session.run.clock
    if found is None:
        markup.show(
            "Measure runs the model once more and says where its time goes; the boxes on the canvas are then tinted by it.",
            "quiet",
        )
        return
    markup.show(
        markup.sentence(found.sentence)
        + (f' <span class="quiet">{markup.sentence(found.note)}</span>' if found.note else "")
    )
    chosen = chosen_loop(found, loop.place.address if loop is not None else "")
    with st.container(key="clock_rows"):
        if chosen is not None:
            chart, width = _chart(found, chosen)
            lanes.show(
                chart,
                key=KEY,
                cursor=None,
                on_pick=lambda pick: _go(debugger, found, chosen, pick, width),
            )
        with st.container(key="clock_list"):
            _costs(found)


def _controls(runtime: str, bar: DeltaGenerator) -> None:
    with bar.container(horizontal=True, vertical_alignment="center"):
        if runtime:
            names = {"own": f"in {runtime}", "loopscope": "in steps of Loopscope"}
            st.selectbox(
                "Measured",
                list(names),
                key=CLOCK_OF,
                format_func=lambda one: names[one],
                label_visibility="collapsed",
                width=260,
            )
        st.button("Measure", key="clock_measure", icon=":material/timer:", on_click=timing.measure)


def chosen_loop(found: Clock, focus: str) -> Iterations | None:
    """The loop in focus, else the one that took longest; None where the runtime tells of none."""
    timed = [one for one in found.loops if one.times]
    return next((one for one in timed if one.address == focus), None) or max(
        timed, key=lambda one: sum(one.times), default=None
    )


def inside(found: Clock, loop: Iterations) -> list[Clocked]:
    """The costliest operations that ran once in each iteration of a loop."""
    mine = (
        one
        for one in found.operations
        if one.address.startswith(f"{loop.address}/") and one.runs == sum(loop.there)
    )
    return [one for one in mine if len(one.times) >= len(loop.times)][:MOST_LANES]


def _chart(found: Clock, loop: Iterations) -> tuple[lanes.Chart, int]:
    kept = _charts.setdefault(found, {})
    if loop.address not in kept:
        width = -(-len(loop.times) // MOST_COLUMNS)
        rows: list[tuple[str, str, Sequence[float]]] = [(readable(loop.address), "", loop.times)]
        rows += [
            (readable_steps(one.address)[-1], one.operation, one.times[: len(loop.times)])
            for one in inside(found, loop)
        ]
        most = max(max(_columns(times, width)) for _, _, times in rows[1:] or rows)
        drawn = [
            lanes.Lane(name, _blocks(times, width, most if number else max(_columns(times, width))), strong=not number, note=kind,
                       pick=bool(number))
            for number, (name, kind, times) in enumerate(rows)
        ]  # fmt: skip
        ticks = [f"{begin:,}" for begin in range(0, len(loop.times), width)]
        unit = "iteration" if len(loop.there) == 1 else "iteration of all executions"
        kept[loop.address] = (
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
    return kept[loop.address]


def _columns(times: Sequence[float], width: int) -> list[float]:
    """The mean of the iterations that share a column."""
    return [
        sum(part) / len(part)
        for begin in range(0, len(times), width)
        if (part := times[begin : begin + width])
    ]


def _blocks(times: Sequence[float], width: int, most: float) -> list[lanes.Block]:
    made: list[lanes.Block] = []
    for number, lasted in enumerate(_columns(times, width)):
        begin, end = number * width, min((number + 1) * width, len(times))
        where = iteration_words(begin) if width == 1 else f"{iteration_range(begin, end - 1)}, each"
        level = round(-max(lasted / most, 0.02), 3) if most > 0 else 0.0
        made.append(
            (
                float(number),
                float(number + 1),
                "heat",
                level,
                time_words(lasted),
                f"{where}: {time_words(lasted)}",
            )
        )
    return made


def _go(
    debugger: loopscope.Debugger, found: Clock, loop: Iterations, pick: lanes.Pick, width: int
) -> None:
    """To the beginning of an iteration of the run that is stepped through, where it has come
    there and runs as often.
    """
    rows = inside(found, loop)
    if pick.lane > 0:
        selection.reveal_place(rows[pick.lane - 1].address)
    if pick.on_name:
        return
    program = next(
        (one for one in debugger.plan.programs if one.address == f"{loop.address}/body"), None
    )
    row = int(pick.at) * width
    if (
        program is not None
        and not loop.here
        and row < debugger.timeline.executions.rows[program.index]
    ):
        moves.seek(debugger.timeline.step_at(program, row, 0))


def _costs(found: Clock) -> None:
    """The costliest operations, each a line that goes to its place."""
    rows = found.operations[:MOST_LISTED]
    total = found.microseconds or 1.0
    lines = [_line(one, total) for one in rows]
    chain.show(lines, key=COSTS, on_pick=lambda number: _reveal(rows[number]))
    if len(found.operations) > MOST_LISTED:
        markup.show(
            f"{len(found.operations) - MOST_LISTED:,} operations more: loopscope clock --json lists all.",
            "quiet",
        )


def _line(one: Clocked, total: float) -> chain.ChainLine:
    times = f"{one.runs:,} runs" if one.runs != 1 else "one run"
    title = elided(readable(one.address) if one.address else one.name, 200)
    detail = f"{times} · {one.microseconds / total:.0%}"
    return chain.ChainLine(
        title, one.operation, detail, time_words(one.microseconds), live=bool(one.address)
    )


def _reveal(one: Clocked) -> None:
    if one.address and current().model.opened is not None:
        selection.reveal_place(one.address)
