"""The run at work: transport, canvas and run views. During a long run, the canvas alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from loopscope_app.actions import preparing
from loopscope_app.parts.course import first_run
from loopscope_app.parts.frame import breadcrumb, graph_canvas, notice, run_progress, transport_bar
from loopscope_app.parts.inspector import what_if
from loopscope_app.parts.run_views import lenses, printed_view
from loopscope_app.parts.widgets import markup
from loopscope_app.state.background_run import Preparing
from loopscope_app.state.user_session import UserSession

HEAD_START = 0.02
"""Seconds that the browser has to paint the moment before the panels arrive. A key press is
answered in half the time.
"""


def show(session: UserSession, beside: Callable[[UserSession], None] | None = None) -> None:
    """Draw the stage. ``beside`` draws the column at the right of the canvas, if given."""
    controls = st.container(key="controls")
    picture, side = st.columns([1.75, 1], gap="small") if beside else (st.container(), None)
    with picture, st.container(key="canvas"):
        graph_canvas.show(session)
        corner, messages = st.container(key="corner"), st.container(key="told")
    preparing.begin(session)
    if session.run.running is not None:
        with controls:
            run_progress.show()
        with side or st.container():
            is_new = isinstance(session.run.running, Preparing)
            markup.show(
                "Values are shown when the model has been checked."
                if is_new
                else "Values are shown again when the run pauses.",
                "quiet",
            )
        return
    time.sleep(HEAD_START)
    with controls:
        transport_bar.show(session)
        with st.container(key="place"):
            breadcrumb.show(session)
    with corner:
        breadcrumb.way_out(session)
        what_if.show(session)
        onwards = st.container()
    with messages:
        notice.show(session)
    with st.container(key="loops"):
        printed_view.show(session)
        lenses.show(session)
    if side is not None and beside is not None:
        with side, st.container(key="side"):
            beside(session)
    first_run.show(session)
    with onwards:
        run_progress.onward(session)
        run_progress.fitting(session)
