"""Performance: the run as lanes, a parallel schedule, its time or cost, and loops in the runtime.

The cost of a run needs no measuring: parameters, MACs and bytes, in total and by operation.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import RuntimeFate, runtime_of
from loopscope_app.actions import selection, timing
from loopscope_app.describe.costs import MOST_NODES, TITLES, CostTable, cost_table
from loopscope_app.describe.node_index import places
from loopscope_app.parts.run_views import clock_view, schedule_view, whole_run
from loopscope_app.parts.widgets import choices, lanes, markup, place_lists
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import TIMELINE


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
            clock_view.show(session, loop, bar)
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
            clock_view.show_costs(session)
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
