"""Colours by data: costs and data of other tools on the canvas, and data of this run for other
tools.
"""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.explain import how_often
from loopscope.view import write_node_data
from loopscope_app.actions import colouring
from loopscope_app.parts.widgets import cost_colours
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession

UPLOAD = "node_colours_upload"


def show(session: UserSession, opened: Opened, debugger: loopscope.Debugger) -> None:
    """Show a menu, so that the view stays one row."""
    with st.popover(
        "Colour by data",
        icon=":material/palette:",
        key="node_colours",
        help="Colour nodes by their cost, or by numbers or texts from a file",
    ):
        cost_colours.show(session, debugger)
        st.file_uploader(
            (
                "JSON with a number or a text for each node, by address or name, as Model "
                "Explorer's "
                "node data"
            ),
            type=["json"],
            key=UPLOAD,
            on_change=colouring.open_upload,
            args=(UPLOAD,),
        )
        if session.model.node_data is not None:
            st.button(
                "Remove colours",
                icon=":material/format_color_reset:",
                key="node_colours_off",
                on_click=colouring.take_off,
            )
        st.download_button(
            "How often each operation ran",
            lambda: write_node_data(how_often(debugger), debugger.model).encode(),
            file_name=f"{opened.file_name()} executions.json",
            icon=":material/download:",
            key="node_colours_executions",
            on_click="ignore",
            help="As node data, which Model Explorer shows, and Loopscope too",
        )
        if session.run.clock is not None:
            shares = session.run.clock.shares
            st.download_button(
                "Which part of the time it took",
                lambda: write_node_data(shares, debugger.model).encode(),
                file_name=f"{opened.file_name()} time.json",
                icon=":material/download:",
                key="node_colours_time",
                on_click="ignore",
                help="As it was measured in Performance, Clock",
            )
