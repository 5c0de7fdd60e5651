"""The canvas of the run that is stepped through, beside the answer of a view."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import views
from loopscope_app.parts.frame import graph_canvas
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import DEBUG


def show(session: UserSession) -> None:
    """Draw the run at its cursor, with a button that opens it in Debug."""
    with st.container(key="view_canvas"):
        graph_canvas.show(session)
        st.button(
            "Open in Debug",
            key="view_canvas_open",
            on_click=views.show,
            args=(DEBUG,),
            help="Show this moment in Debug",
        )
