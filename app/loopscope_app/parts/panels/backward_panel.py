"""The choice of an output and of tensors to differentiate it by, which opens the gradient."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from loopscope.errors import neutral
from loopscope_app.actions import gradients
from loopscope_app.describe.gradients import sources, targets, usual_sources
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession


def show(session: UserSession, opened: Opened) -> DeltaGenerator:
    """Show what is differentiated by what, and the way back from a gradient. Return their row."""
    row = st.container(key="gradient_bar", horizontal=True, vertical_alignment="center")
    with row:
        if opened.backward is not None:
            _back(opened)
        else:
            _choice(session, opened)
    return row


def _back(opened: Opened) -> None:
    if opened.forward is not None:
        st.button(
            "Back to the model",
            key="gradient_back",
            icon=":material/arrow_back:",
            on_click=gradients.open_forward_model,
            help="The model without its gradient, on the same inputs",
        )
    if opened.backward is not None:
        words = opened.backward.words
        markup.show(markup.text(words[:1].upper() + words[1:], 200), "quiet")


def _choice(session: UserSession, opened: Opened) -> None:
    wanted, by = targets(opened.model), sources(opened.model)
    target = f"backward_of_{session.run.generation}"
    chosen = f"backward_by_{session.run.generation}"
    markup.show("How does", "quiet nowrap")
    st.selectbox(
        "Differentiate",
        list(wanted),
        key=target,
        format_func=lambda name: neutral(wanted[name], 60),
        label_visibility="collapsed",
        width=220,
    )
    markup.show("change with", "quiet nowrap")
    st.multiselect(
        "with respect to",
        list(by),
        default=list(usual_sources(opened.model)) or list(by)[:1],
        key=chosen,
        format_func=lambda name: neutral(by[name], 60),
        label_visibility="collapsed",
        width=440,
    )
    st.button(
        "Compute",
        key="backward_go",
        type="primary",
        on_click=gradients.build_gradient,
        args=(target, chosen),
        help="Opens the model with this gradient, on the same inputs, and runs it",
    )
