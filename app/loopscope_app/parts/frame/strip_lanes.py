"""The handle of the strip below the canvas, and the lanes that it opens: steps, or the matrix."""

from __future__ import annotations

import streamlit as st

from loopscope_app.parts.dock import matrix_lanes
from loopscope_app.parts.run_views import whole_run
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import HIDDEN, STRIP


def show(session: UserSession) -> None:
    """Draw the handle once a step was computed, and the lanes if they are open."""
    debugger = session.run.debugger
    if debugger is None or not debugger.steps:
        return
    shown = STRIP.shown()
    handle, lanes = st.container(), st.container()
    if shown == HIDDEN:
        with handle, st.container(key="strip_handle"):
            st.button(
                "Steps, matrix",
                key="strip_open",
                icon=":material/expand_less:",
                type="tertiary",
                on_click=STRIP.show,
                args=("Steps",),
                help="The whole run as lanes, and every value in every iteration",
            )
        return
    with lanes, st.container(key="strip_lanes"):
        with st.container(key="strip_head", horizontal=True, vertical_alignment="center"):
            for name in STRIP.options[1:]:
                st.button(
                    name,
                    key=f"strip_{name}",
                    type="secondary" if name == shown else "tertiary",
                    on_click=STRIP.show,
                    args=(name,),
                )
            bar = st.container()
            st.button(
                "Close the lanes",
                key="strip_close",
                icon=":material/expand_more:",
                type="tertiary",
                on_click=STRIP.show,
                args=(HIDDEN,),
                help="Close the lanes",
            )
        if shown == "Matrix":
            matrix_lanes.show(session, loop_in_focus(session))
        else:
            whole_run.show(session, bar)
