"""The timeline of a run: its steps, a parallel schedule, or its time."""

from __future__ import annotations

import streamlit as st

from loopscope_app.parts.run_views import clock_view, schedule_view, whole_run
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import TIMELINE


def show(session: UserSession, loop: LoopInFocus | None) -> None:
    TIMELINE.begin(TIMELINE.options[0], TIMELINE.options)
    with st.container(horizontal=True, vertical_alignment="center"):
        chosen = st.segmented_control(
            "Timeline of",
            TIMELINE.options,
            key=TIMELINE.key,
            required=True,
            label_visibility="collapsed",
            width="content",
        )
        bar = st.container(width="stretch")
    match chosen:
        case "Schedule":
            schedule_view.show(session, loop, bar)
        case "Clock":
            clock_view.show(session, loop, bar)
        case _:
            whole_run.show(session, bar)
