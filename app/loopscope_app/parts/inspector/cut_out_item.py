"""The menu entry that cuts out a node, or the body around a Parameter or Result."""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope_app.actions import cutting_out
from loopscope_app.describe.node_index import IndexedNode
from loopscope_app.state.open_model import Opened


def show(
    opened: Opened, debugger: loopscope.Debugger, place: IndexedNode, concrete: str | None
) -> None:
    """Show the entry for a place that has run; ``concrete`` is its address with iterations."""
    if concrete is None:
        return
    is_end = place.node.type in ("Parameter", "Result") or place.node.constant is not None
    address = concrete.rpartition("/")[0] if is_end else concrete
    st.download_button(
        "Cut out the body" if is_end else "Cut out",
        lambda: cutting_out.cut_out(debugger, address),
        file_name=f"{opened.file_name()}-part.zip",
        icon=":material/content_cut:",
        key="inspector_cut_out",
        on_click="ignore",
        width="stretch",
        help="This part as a model of its own, with its recorded inputs and outputs and a script",
    )
