"""How the screens look beyond what Streamlit's theme can say: spacing, type, cards, chips."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from loopscope.view import declarations

_ASSETS = Path(__file__).parents[2] / "assets"
ICON = str(_ASSETS / "icon.png")
"""A file of our own: Streamlit would fetch its icons for pages from another machine."""
_SHEET, _LESSONS, _LARGE = (_ASSETS / name for name in ("screens.css", "learn.css", "large.css"))
_COLOURS = f":root {{ {declarations('light')} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {declarations('dark')} }} }}"
"""Components inherit these variables too."""


def apply() -> None:
    """Adds the colours and the style sheet to the page."""
    st.html(f"<style>{_COLOURS}</style>")
    st.html(_SHEET)


def lessons(large: bool) -> None:
    """Adds what the Learn screen needs, in type for the last row where asked for."""
    st.html(_LESSONS)
    if large:
        st.html(_LARGE)
