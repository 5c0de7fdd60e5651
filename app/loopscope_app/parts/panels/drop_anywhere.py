"""A model can be dropped on every screen. A hidden uploader receives it after a question."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import models
from loopscope_app.canvas.dropping import take_dropped_files
from loopscope_app.parts.panels.opener import ENDINGS

UPLOAD = "drop_upload"


def show() -> None:
    """Draw what takes dropped files beside an open model."""
    with st.container(key="drop_place"):
        st.file_uploader(
            "Open another model",
            type=list(ENDINGS),
            accept_multiple_files=True,
            key=UPLOAD,
            on_change=models.open_upload,
            args=(UPLOAD,),
        )
        take_dropped_files(ENDINGS, ask=True)
