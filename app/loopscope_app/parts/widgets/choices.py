"""Choices inside a view: a row of tabs, and the cost that colours the nodes of the canvas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st

import loopscope
from loopscope_app.actions import colouring
from loopscope_app.describe.costs import MEASURES, by_measure
from loopscope_app.state.user_session import UserSession, place, widget
from loopscope_app.state.view_choices import Look


def show_tabs(
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
        on_change=look.choose_from,
        args=(key,),
    )
    return look.shown()


COST = "node_colours_cost"


def show_cost_colours(
    session: UserSession,
    debugger: loopscope.Debugger,
    label: Literal["visible", "collapsed"] = "visible",
) -> None:
    """Show the choice of a cost to colour by; a second click on it removes the colours."""
    costs = by_measure(debugger, session.model.inputs)
    offered = [measure for measure in MEASURES if measure in costs]
    if not offered:
        return
    data = session.model.node_data
    shown = data.title if data is not None and data.title in offered else None
    if widget(COST) != shown:
        place(COST, shown)
    st.segmented_control(
        "Colour by cost",
        offered,
        label_visibility=label,
        key=COST,
        on_change=colouring.by_cost,
        args=(COST,),
        width="content",
        help="Cost of one execution, and of one iteration of a loop"
        if label == "visible"
        else None,
    )
