"""The page of a visit: what all screens share, and the choice of the screen."""

from __future__ import annotations

from importlib import import_module

import streamlit as st

from loopscope_app import canvas
from loopscope_app.actions import open_link
from loopscope_app.parts.frame import file_watch, page_address, style
from loopscope_app.parts.frame.header import shown_view
from loopscope_app.parts.panels import opener
from loopscope_app.screens import first_screens
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.user_session import current, keep
from loopscope_app.state.view_choices import DEBUG, KEPT

_SCREENS = {
    "compare": "compare_screen",
    "many": "many_runs_screen",
    "gradients": "gradients_screen",
    "performance": "performance_screen",
}
"""Module of the screen of each view but Debug, by its word. It is imported when it is shown: the
first picture does not wait for it.
"""


def show() -> None:
    st.set_page_config(
        page_title="Loopscope",
        page_icon=style.ICON,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    style.apply()
    style.apply_theme()
    canvas.prepare()
    session = current()
    if not session.arrived:
        open_link.arrive(session)
    elif page_address.moved():
        page_address.forget()
        open_link.follow(session)
    elif LAUNCH.watch:
        file_watch.follow(session)
    opened = session.model.opened
    if opened is None:
        first_screens.show_gallery(session)
        return
    keep(*KEPT)
    if session.learning.lesson and not session.view:
        first_screens.show_lesson(session)
    else:
        view = shown_view(session, opened)
        if view == DEBUG:
            first_screens.show_debugger(session)
        else:
            import_module(f"loopscope_app.screens.{_SCREENS[view]}").show(session)
    opener.show_drop_target()
    if LAUNCH.watch:
        file_watch.show()
