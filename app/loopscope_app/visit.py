"""The page of a visit: what all screens share, and the choice of the screen."""

from __future__ import annotations

import streamlit as st

from loopscope_app import canvas
from loopscope_app.actions import open_link
from loopscope_app.parts.frame import page_address, style
from loopscope_app.screens import debugger_screen, gallery_screen, learn_screen, many_runs_screen
from loopscope_app.state.user_session import current


def show() -> None:
    st.set_page_config(
        page_title="Loopscope",
        page_icon=style.ICON,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    style.apply()
    canvas.prepare()
    session = current()
    if not session.arrived:
        open_link.arrive(session)
    elif page_address.moved():
        page_address.forget()
        open_link.follow(session)
    if session.model.opened is None:
        gallery_screen.show(session)
    elif session.many.shown:
        many_runs_screen.show(session)
    elif session.learning.lesson:
        learn_screen.show(session)
    else:
        debugger_screen.show(session)
