"""Performance: the steps of the run as lanes, a parallel schedule, its time, or its cost; loops in
the runtime.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from loopscope_app.parts.run_views import (
    clock_view,
    cost_view,
    loop_fates,
    schedule_view,
    whole_run,
)
from loopscope_app.parts.widgets import tabs
from loopscope_app.state.focus import loop_in_focus
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
        chosen = tabs.show(TIMELINE, "Timeline of", TIMELINE.options, "content")
        bar = st.container(key="performance_controls", horizontal=True, vertical_alignment="center")
    match chosen:
        case "Schedule":
            schedule_view.show(session, loop, bar)
        case "Clock":
            clock_view.show(session, loop, bar)
        case "Cost":
            cost_view.show(session, bar)
        case _:
            whole_run.show(session, bar)
    with bar:
        loop_fates.ask(session, opened)
    has_table = chosen == "Cost" or (chosen == "Clock" and session.run.clock is not None)
    if session.model.fates is None and not has_table:
        canvas(session)
        return
    left, right = st.columns([1.3 if chosen == "Cost" else 1, 1.4], gap="medium")
    with left, st.container(key="performance_left"):
        if chosen == "Clock":
            clock_view.show_costs(session)
        elif chosen == "Cost":
            cost_view.show_table(session)
        loop_fates.show(session)
    with right:
        canvas(session)
