"""The choice of a view of the whole run below the canvas. Only the chosen view is computed."""

from __future__ import annotations

import streamlit as st

from loopscope.ir import IF, Model
from loopscope_app.describe.node_index import places
from loopscope_app.parts.run_views import (
    export_view,
    loop_panel,
    matrix_view,
    proof_view,
    trace_question,
    verdict_view,
)
from loopscope_app.state.focus import decided_in_focus, loop_in_focus
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import LENS


def _usual(model: Model) -> str:
    """Return the views that fit a model: no iterations without a loop, no branches without an
    If.
    """
    kinds = {place.node.type for place in places(model).values() if place.node.bodies}
    return "Iterations" if kinds - {IF} else "Why"


def show(session: UserSession) -> None:
    if session.model.opened is None or session.run.debugger is None:
        return
    loop = loop_in_focus(session)
    decided = decided_in_focus(session, loop)
    LENS.begin(_usual(session.model.opened.model), LENS.options)
    with st.container(key="lens_bar", horizontal=True, vertical_alignment="top"):
        lens = st.segmented_control(
            "Look at the run as",
            LENS.options,
            key=LENS.key,
            required=True,
            format_func=lambda name: "Take away" if name == "Export" else name,
            label_visibility="collapsed",
        )
        verdict_view.show(session, decided)
    with st.container(key="lens_content"):
        match lens:
            case "Matrix":
                matrix_view.show(session, loop)
            case "Ask":
                trace_question.show(session, loop)
            case "Why":
                proof_view.show(session, decided)
            case "Export":
                export_view.show(session)
            case _:
                loop_panel.show(session, loop)
