"""The choice of a cost that colours the nodes of the canvas."""

from __future__ import annotations

from typing import Literal

import streamlit as st

import loopscope
from loopscope_app.actions import colouring
from loopscope_app.describe.cost_table import MEASURES, by_measure
from loopscope_app.state.user_session import UserSession, place, widget

COST = "node_colours_cost"


def show(
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
