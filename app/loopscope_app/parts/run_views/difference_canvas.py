"""The canvas of Compare: the run here at the shown difference."""

from __future__ import annotations

from functools import partial

import streamlit as st

from loopscope.view import GraphView, Marks, graph_view, overlay_at
from loopscope_app import canvas
from loopscope_app.actions import selection, side_by_side
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, current

KEY = "compare_graph"
HEIGHT = 420


def show(session: UserSession, opened: Opened) -> None:
    """Draw the run here at the shown difference, with a button that opens it in Debug."""
    run, difference = session.run.compared_run, session.run.difference
    if run is None or difference is None:
        return
    run.seek(min(difference.step, run.steps))
    view = graph_view(opened.model, difference.folding)
    overlay = overlay_at(run, view, Marks(selected=difference.address))
    with st.container(key="compare_canvas"):
        canvas.show(
            view,
            overlay,
            key=KEY,
            height=HEIGHT,
            on_acts=partial(_on_acts, view),
            acted=session.canvas.acted,
            focus=difference.address,
            subject=f"difference in {opened.link or opened.title}",
            file=opened.file_name(),
        )
        st.button(
            "Open in Debug",
            key="compare_open",
            on_click=side_by_side.open_in_debug,
            help="Go to this moment in the run that you step through",
        )


def _on_acts(view: GraphView, acts: tuple[canvas.Act, ...]) -> None:
    """Apply the acts that were not applied before."""
    session = current()
    for act in acts:
        if selection.is_new_act(session, act.number) and act.event is not None:
            side_by_side.on_canvas(act.event)
