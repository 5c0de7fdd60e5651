"""Drawers over the dock: problems, exports, keys, and facts about the model."""

from __future__ import annotations

import streamlit as st

from loopscope_app.parts.dock import (
    about_drawer,
    export_drawer,
    keyboard_drawer,
    problems_drawer,
)
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import DRAWER, HIDDEN

_TITLES = {
    "Problems": "Problems",
    "Export": "Export",
    "Keyboard": "Keyboard",
    "About": "About this model",
}


def show(session: UserSession, opened: Opened) -> bool:
    """Draw the open drawer and return True; return False if none is open."""
    name = DRAWER.shown()
    if name == HIDDEN:
        return False
    with st.container(key="drawer"):
        with st.container(key="drawer_head", horizontal=True, vertical_alignment="center"):
            markup.show(f"<h2>{_TITLES[name]}</h2>")
            st.button(
                "Close",
                key="drawer_close",
                icon=":material/close:",
                type="tertiary",
                on_click=DRAWER.show,
                args=(HIDDEN,),
                help=f"Close {_TITLES[name]}",
            )
        match name:
            case "Problems":
                problems_drawer.show(session, opened)
            case "Export":
                export_drawer.show(session)
            case "Keyboard":
                keyboard_drawer.show()
            case _:
                about_drawer.show(session, opened)
    return True
