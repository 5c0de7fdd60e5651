"""The run at work: the canvas with what floats on it, the strip below, and the dock beside."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from loopscope_app.actions import preparing
from loopscope_app.parts.dock import iterations_tab
from loopscope_app.parts.frame import (
    breadcrumb,
    graph_canvas,
    notice,
    run_progress,
    strip_lanes,
    transport,
)
from loopscope_app.parts.inspector import what_if
from loopscope_app.parts.panels import first_run
from loopscope_app.parts.widgets import markup
from loopscope_app.state.background_run import Preparing
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.user_session import UserSession

HEAD_START = 0.02
"""Seconds that the browser has to paint the moment before the dock arrives. A key press is
answered in half the time.
"""


def show(session: UserSession, dock: Callable[[UserSession], None]) -> None:
    """Draw the stage. During a long run its progress replaces everything beside the canvas.

    ``dock`` draws the content of the dock. Each optional part has a container of its own: the
    browser shows the content of a container whose place another one takes until the run ends.
    """
    with st.container(key="canvas"):
        graph_canvas.show(session)
        corner = st.container(key="corner")
        controls = st.container(key="controls")
        messages = st.container(key="told")
    preparing.begin(session)
    beside = st.container(key="dock")
    strip, wide, card = st.container(), st.container(), st.container()
    if session.run.running is not None:
        with controls:
            run_progress.show()
        with beside:
            is_new = isinstance(session.run.running, Preparing)
            markup.show(
                "Values are shown when the model has been checked."
                if is_new
                else "Values are shown again when the run pauses.",
                "quiet",
            )
        return
    time.sleep(HEAD_START)
    with corner:
        with st.container(key="place"):
            breadcrumb.show(session)
        breadcrumb.way_out(session)
        what_if.show(session)
        onwards = st.container()
    with controls:
        transport.show(session)
    with messages:
        notice.show(session)
    with beside:
        dock(session)
    with strip:
        strip_lanes.show(session)
    with wide:
        iterations_tab.show_wide(session, loop_in_focus(session))
    with card:
        first_run.show(session)
    with onwards:
        run_progress.onward(session)
        run_progress.fitting(session)
