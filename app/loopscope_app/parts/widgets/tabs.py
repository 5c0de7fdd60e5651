"""A row of tabs that shows a choice inside a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from loopscope_app.state.user_session import place, widget
from loopscope_app.state.view_choices import Look


def show(
    look: Look, label: str, offered: Sequence[str], width: Literal["stretch", "content"]
) -> str:
    """Draw the tabs, and return the chosen option. ``label`` is for screen readers."""
    key = look.tabs_key()
    if widget(key) is None:
        place(key, look.shown())
    st.segmented_control(
        label,
        offered,
        key=key,
        required=True,
        label_visibility="collapsed",
        width=width,
        on_change=_choose,
        args=(look, key),
    )
    return look.shown()


def _choose(look: Look, key: str) -> None:
    place(look.key, widget(key))
