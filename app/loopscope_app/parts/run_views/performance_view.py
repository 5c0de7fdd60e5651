"""Performance: the run as lanes, a parallel schedule, its time or cost, and loops in the runtime.

The time is measured: the costliest operation and iteration, iterations as strips, operations by
cost. The cost needs no measuring: parameters, MACs and bytes, in total and by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.errors import elided
from loopscope.ir import iteration_range, iteration_words, readable, readable_steps
from loopscope.object_cache import cache_by_object
from loopscope.peers import Clock, Clocked, Iterations, RuntimeFate, runtime_of, time_words
from loopscope_app.actions import moves, selection, timing
from loopscope_app.describe.costs import MOST_NODES, TITLES, CostTable, cost_table
from loopscope_app.describe.node_index import places
from loopscope_app.parts.run_views import schedule_view, whole_run
from loopscope_app.parts.widgets import choices, lanes, markup, place_lists
from loopscope_app.state.focus import LoopInFocus, loop_in_focus
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, current
from loopscope_app.state.view_choices import CLOCK_OF, TIMELINE


def show(session: UserSession, canvas: Callable[[UserSession], None]) -> None:
    """Draw the view. ``canvas`` draws the run at its cursor."""
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return
    loop = loop_in_focus(session)
    TIMELINE.begin(TIMELINE.options[0], TIMELINE.options)
    with st.container(key="performance_bar", horizontal=True, vertical_alignment="center"):
        chosen = choices.show_tabs(TIMELINE, "Timeline of", TIMELINE.options, "content")
        bar = st.container(key="performance_controls", horizontal=True, vertical_alignment="center")
    match chosen:
        case "Schedule":
            schedule_view.show(session, loop, bar)
        case "Clock":
            _show_clock(session, loop, bar)
        case "Cost":
            _show_cost(session, bar)
        case _:
            whole_run.show(session, bar)
    with bar:
        _ask_for_fates(session, opened)
    has_table = chosen == "Cost" or (chosen == "Clock" and session.run.clock is not None)
    if session.model.fates is None and not has_table:
        canvas(session)
        return
    left, right = st.columns([1.3 if chosen == "Cost" else 1, 1.4], gap="medium")
    with left, st.container(key="performance_left"):
        if chosen == "Clock":
            _show_clock_costs(session)
        elif chosen == "Cost":
            _show_cost_table(session)
        _show_fates(session)
    with right:
        canvas(session)


COST_KEY = "cost_rows"
MOST_ROWS = 200


def _show_cost(session: UserSession, bar: DeltaGenerator) -> None:
    """Show the total as a sentence. ``bar`` is the container for the choice of colours."""
    lanes.leave_room(None)
    table = _cost_table(session)
    if table is None:
        markup.show(f"Costs are computed for models of at most {MOST_NODES:,} operations.", "quiet")
        return
    markup.show(markup.prose(table.sentence, 2000), "headline")
    debugger = session.run.debugger
    if debugger is not None:
        with bar:
            markup.show("Colour by", "quiet nowrap")
            choices.show_cost_colours(session, debugger, "collapsed")


def _show_cost_table(session: UserSession) -> None:
    """Show the costliest operations; a click shows one on the canvas."""
    table = _cost_table(session)
    if table is None:
        return
    rows = table.rows[:MOST_ROWS]
    addresses = [row.address for row in rows]
    selected = session.canvas.selected
    place_lists.show_table(
        TITLES,
        [row.cells for row in rows],
        key=COST_KEY,
        now=addresses.index(selected) if selected in addresses else None,
        on_pick=lambda number: selection.reveal_place(addresses[number]),
    )
    if len(table.rows) > MOST_ROWS:
        markup.show(
            f"{len(table.rows) - MOST_ROWS:,} more operations: loopscope.costs lists all.", "quiet"
        )


def _cost_table(session: UserSession) -> CostTable | None:
    debugger = session.run.debugger
    return cost_table(debugger, session.model.inputs) if debugger is not None else None


FATES_KEY = "fates"


def _ask_for_fates(session: UserSession, opened: Opened) -> None:
    """Show the button that requests the fates, if the model has loops or branches."""
    runtime = runtime_of(opened.model)
    has_regions = any(place.node.bodies for place in places(opened.model).values())
    if runtime and has_regions and session.model.fates is None:
        st.button(
            f"Loops in {runtime}",
            key="fates_ask",
            on_click=timing.ask_runtime,
            help=f"{runtime} compiles the model and lists what it runs in place of each loop and "
            "branch",
        )


def _show_fates(session: UserSession) -> None:
    """Show the fate of each loop and branch, once they are known."""
    fates = session.model.fates
    if fates is None:
        return
    markup.show(f"<b>Loops and branches in {markup.text(fates.runtime)}</b>")
    known = [region for region in fates.regions if region.became != "not told"]
    place_lists.show_list(
        [_fate_line(region) for region in known],
        key=FATES_KEY,
        on_pick=lambda number: selection.reveal_loop(known[number].address),
    )
    unknown = len(fates.regions) - len(known)
    if unknown:
        nested = "1 nested loop or branch is" if unknown == 1 else f"{unknown:,} nested ones are"
        markup.show(f"{nested} not visible from outside.", "quiet")


def _fate_line(region: RuntimeFate) -> place_lists.ChainLine:
    return place_lists.ChainLine(
        elided(readable(region.address), 200),
        region.operation,
        "",
        region.badge,
        0,
        "branch" if region.became == "kept" else "bad",
        region.sentence,
        True,
    )


CLOCK_KEY, CLOCK_COSTS = "clock", "clock_costs"
MOST_COLUMNS, MOST_LANES, MOST_LISTED = 128, 5, 12
_CLOCK_HEADER_REM = 11.0
"""Height in rem of header, controls and a line."""


def _show_clock(session: UserSession, loop: LoopInFocus | None, bar: DeltaGenerator) -> None:
    """Show the clock. ``bar`` is the container for the choice of the runtime and the button."""
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return
    _clock_controls(runtime_of(opened.model), bar)
    if session.run.changes:
        markup.show("Times of the run without values set by hand.", "quiet")
    clock = session.run.clock
    if clock is None:
        lanes.leave_room(None, _CLOCK_HEADER_REM)
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
    chart, width = _clock_chart(clock, chosen)
    lanes.leave_room(chart)
    lanes.show(
        chart,
        key=CLOCK_KEY,
        cursor=None,
        on_pick=lambda pick: _go_to_iteration(debugger, clock, chosen, pick, width),
    )


def _show_clock_costs(session: UserSession) -> None:
    """Show the costliest operations, if the run was measured."""
    if session.run.clock is not None:
        _clock_cost_table(session.run.clock)


def _clock_controls(runtime: str, bar: DeltaGenerator) -> None:
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
def _clock_chart(clock: Clock, loop: Iterations) -> tuple[lanes.Chart, int]:
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
    longest = max(max(_clock_columns(times, width)) for _, _, times in rows[1:] or rows)
    drawn = [
        lanes.Lane(
            name,
            _clock_blocks(times, width, longest if number else max(_clock_columns(times, width))),
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


def _clock_columns(times: Sequence[float], width: int) -> list[float]:
    """Return the mean time of the iterations that share a column."""
    return [
        sum(part) / len(part)
        for begin in range(0, len(times), width)
        if (part := times[begin : begin + width])
    ]


def _clock_blocks(times: Sequence[float], width: int, longest: float) -> list[lanes.Block]:
    blocks: list[lanes.Block] = []
    for number, lasted in enumerate(_clock_columns(times, width)):
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


def _go_to_iteration(
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


def _clock_cost_table(clock: Clock) -> None:
    """Show the costliest operations as lines; a click goes to the place."""
    rows = clock.operations[:MOST_LISTED]
    total = clock.microseconds or 1.0
    lines = [_clock_line(operation, total) for operation in rows]
    place_lists.show_list(
        lines, key=CLOCK_COSTS, on_pick=lambda number: _reveal_operation(rows[number])
    )
    if len(clock.operations) > MOST_LISTED:
        markup.show(
            f"{len(clock.operations) - MOST_LISTED:,} more operations: loopscope clock --json "
            "lists all.",
            "quiet",
        )


def _clock_line(operation: Clocked, total: float) -> place_lists.ChainLine:
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


def _reveal_operation(operation: Clocked) -> None:
    if operation.address and current().model.opened is not None:
        selection.reveal_place(operation.address)
