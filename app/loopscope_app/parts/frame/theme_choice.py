"""The choice of the theme: light, dark, or as the system. The browser stores it."""

from __future__ import annotations

import streamlit as st

from loopscope_app.components import component
from loopscope_app.state.user_session import current

_theme = component("theme", "theme.js", style="theme.css")


def apply() -> None:
    """Pass the chosen theme to the page's own colours."""
    with st.container(key="theme"):
        _theme(key="theme_applied", data={"menu": False, "uploaded": False}, height=1)


def show() -> None:
    """Draw the choice. A model without a link is lost when the page opens again."""
    opened = current().model.opened
    uploaded = opened is not None and not opened.link
    _theme(key="theme_menu", data={"menu": True, "uploaded": uploaded}, height=40)
