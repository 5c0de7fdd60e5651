"""Styles beyond Streamlit's theme, and the choice of the theme, which the browser stores."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from loopscope.view import declarations
from loopscope_app.components import component
from loopscope_app.state.user_session import current

_ASSETS = Path(__file__).parents[2] / "assets"
ICON = str(_ASSETS / "icon.png")
"""A file of our own, because Streamlit would load its page icons from another host."""
_SHEET, _VIEWS, _LESSONS, _LARGE = (
    _ASSETS / name for name in ("screens.css", "views.css", "learn.css", "large.css")
)
_DARK = f"@media (prefers-color-scheme: dark) {{ :root {{ {declarations('dark')} }} }}"
_CHOSEN = "\n".join(
    f':root[data-scheme="{theme}"] {{ {declarations(theme)} }}' for theme in ("light", "dark")
)
_COLOURS = f":root {{ {declarations('light')} }}\n{_DARK}\n{_CHOSEN}"
"""CSS variables of the colours. Components inherit them."""


def apply() -> None:
    """Add the colours and the style sheet to the page."""
    st.html(f"<style>{_COLOURS}</style>")
    st.html(_SHEET)
    st.html(_VIEWS)


def lessons(large: bool) -> None:
    """Add the styles of the Learn screen; ``large`` sets type for a projector."""
    st.html(_LESSONS)
    if large:
        st.html(_LARGE)


_theme = component("theme", "theme.js", style="theme.css")


def apply_theme() -> None:
    """Pass the chosen theme to the page's own colours."""
    with st.container(key="theme"):
        _theme(key="theme_applied", data={"menu": False, "uploaded": False}, height=1)


def show_theme_choice() -> None:
    """Draw the choice. A model without a link is lost when the page opens again."""
    opened = current().model.opened
    uploaded = opened is not None and not opened.link
    _theme(key="theme_menu", data={"menu": True, "uploaded": uploaded}, height=40)
