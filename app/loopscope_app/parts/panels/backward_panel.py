"""Gradients: the choice of an output and of tensors, which opens the gradient as a model of its
own.
"""

from __future__ import annotations

import streamlit as st

from loopscope.errors import neutral
from loopscope_app.actions import gradients
from loopscope_app.describe.backward import sources, targets, usual_sources
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession


def show(session: UserSession, opened: Opened) -> None:
    """Show the choice, unless the model has only integers, cannot run, or is a gradient itself."""
    if not opened.report.ok or opened.backward is not None:
        return
    wanted, by = targets(opened.model), sources(opened.model)
    if not wanted or not by:
        return
    target, chosen = (
        f"backward_of_{session.run.generation}",
        f"backward_by_{session.run.generation}",
    )
    with st.popover(
        "Backward",
        key="backward_menu",
        icon=":material/undo:",
        help="Backward: the gradient, walked back through every loop",
        type="tertiary",
    ):
        st.selectbox(
            "How does it change",
            list(wanted),
            key=target,
            format_func=lambda name: neutral(wanted[name], 60),
        )
        st.multiselect(
            "with respect to",
            list(by),
            default=list(usual_sources(opened.model)) or list(by)[:1],
            key=chosen,
            format_func=lambda name: neutral(by[name], 60),
        )
        st.button(
            "Walk back",
            key="backward_go",
            type="primary",
            icon=":material/undo:",
            on_click=gradients.walk_back,
            args=(target, chosen),
            help="Opens the model with this gradient, on the same inputs, and runs it",
        )
