"""The bar above many runs: a link back to the debugger, and the title of the model."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import running_many
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened


def show(opened: Opened) -> None:
    back, title = st.columns([1.3, 9], vertical_alignment="center", gap="small")
    back.button(
        "One run",
        key="many_leave",
        icon=":material/arrow_back:",
        on_click=running_many.leave,
        type="tertiary",
        help="Back to the debugger",
    )
    with title:
        markup.show(
            f'<b style="font-size:1.15rem">Many runs</b>&ensp;{markup.chip(opened.title)}'
            '<span class="quiet">How often its loops run over many inputs, which branches it '
            "takes, "
            "and for which of them.</span>",
            "titles",
        )
