"""The menu entry that opens an operator such as LSTM as a loop, or folds the loop again."""

from __future__ import annotations

import streamlit as st

from loopscope.transform.recurrences import recurrence_of
from loopscope_app.actions import opened_operators
from loopscope_app.describe.node_index import IndexedNode
from loopscope_app.state.open_model import Opened


def show(opened: Opened, place: IndexedNode) -> None:
    """Show the entry for an operator that is a loop, and for a loop that was opened."""
    if place.address in opened.operators:
        words, action = "Fold", opened_operators.fold
        explanation = "Show the loop as one operator again"
    elif recurrence_of(place.node, opened.model.dialect) is not None:
        words, action = "Open as a loop", opened_operators.open_loop
        explanation = "Step through the operator's iterations"
    else:
        return
    st.button(
        words,
        key="inspector_loop",
        on_click=action,
        args=(place.address,),
        width="stretch",
        help=explanation,
    )
