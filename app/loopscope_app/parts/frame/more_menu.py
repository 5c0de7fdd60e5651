"""The menu at the end of the header: export, keys, facts about the model, and the theme."""

from __future__ import annotations

import streamlit as st

from loopscope_app.parts.frame import theme_choice
from loopscope_app.state.user_session import place
from loopscope_app.state.view_choices import DRAWER

_KEY = "more_menu"
_ENTRIES = {
    "Export": "Export",
    "Problems": "Problems and notes",
    "Keyboard": "Keyboard",
    "About": "About this model",
}
"""Titles of the entries by their drawer."""


def show() -> None:
    menu = st.popover(
        "More", key=_KEY, icon=":material/more_horiz:", help="More", on_change="rerun"
    )
    if not menu.open:
        return
    with menu:
        for drawer, title in _ENTRIES.items():
            st.button(
                title,
                key=f"more_{drawer.lower()}",
                on_click=_open,
                args=(drawer,),
                type="tertiary",
                width="stretch",
            )
        theme_choice.show()


def _open(drawer: str) -> None:
    """Open a drawer and close the menu."""
    DRAWER.show(drawer)
    place(_KEY, False)
