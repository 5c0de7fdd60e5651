"""The fields of Compare beside its choice: another model, or the values that are rounded."""

from __future__ import annotations

import streamlit as st

from loopscope.ops import NARROWER
from loopscope_app.actions import other_runs, side_by_side
from loopscope_app.describe.wording import DEVICES, narrower_type
from loopscope_app.parts.widgets import markup
from loopscope_app.state.launch import paths_allowed
from loopscope_app.state.user_session import UserSession, place, widget
from loopscope_app.state.view_choices import (
    MODEL,
    ROUNDED,
    ROUNDED_PATTERN,
    ROUNDED_TYPE,
    SOURCE,
    SOURCE_CODE,
    SOURCE_WHERE,
)

PATH, UPLOAD = "compare_other_path", "compare_other_upload"


def fields(session: UserSession, kind: str) -> None:
    """Show the fields that belong to a kind, and the button that compares."""
    if kind == MODEL:
        _model(session)
    elif kind == ROUNDED:
        _rounding()
    elif kind == SOURCE:
        _source()
    st.button("Compare", key="compare_run", type="primary", on_click=side_by_side.compare)


def _model(session: UserSession) -> None:
    other = session.model.other
    if paths_allowed(st.get_option("server.address")):
        st.text_input(
            "Path of the other model",
            key=PATH,
            placeholder="/path/to/other.xml",
            on_change=other_runs.open_path,
            args=(PATH,),
            label_visibility="collapsed",
            width=220,
            help="A model file on this computer: before and after a conversion or a fix",
        )
    title = markup.plain(other.title, 30) if other is not None else "Upload"
    with st.popover(title, key="compare_upload", icon=":material/upload:"):
        st.file_uploader(
            "The other model, with its weights",
            accept_multiple_files=True,
            key=UPLOAD,
            on_change=other_runs.open_upload,
            args=(UPLOAD,),
        )


def _rounding() -> None:
    if widget(ROUNDED_PATTERN) is None:
        place(ROUNDED_PATTERN, other_runs.EVERYTHING)
    if widget(ROUNDED_TYPE) not in NARROWER:
        place(ROUNDED_TYPE, NARROWER[0])
    st.text_input(
        "Rounded values",
        key=ROUNDED_PATTERN,
        label_visibility="collapsed",
        width=150,
        help=(
            "Rounded in all iterations: an address without iterations, in which * stands for any "
            "text: main/*/state. An operation's menu in Debug fills this in."
        ),
    )
    st.selectbox(
        "Narrower type",
        NARROWER,
        key=ROUNDED_TYPE,
        format_func=narrower_type,
        label_visibility="collapsed",
        width=150,
    )


def _source() -> None:
    st.text_input(
        "Source program",
        key=SOURCE_WHERE,
        placeholder="model.pt2, SavedModel folder or module:function",
        label_visibility="collapsed",
        width=300,
        help=(
            "The program that the model was converted from. torch or TensorFlow runs it in a "
            "separate process. A module is imported from the folder in which Loopscope was started."
        ),
    )
    st.text_input(
        "Code from the terminal",
        key=SOURCE_CODE,
        placeholder="code",
        label_visibility="collapsed",
        width=110,
        help=(
            "A program runs code of this computer. Compare prints a code where Loopscope was "
            "started; enter it here once for each program."
        ),
    )


def other_precision(session: UserSession) -> None:
    """Offer a rounded run where another runtime ran another number of iterations or took another
    branch.
    """
    drifted = session.run.drifted
    if drifted is None or drifted.other is not None or not drifted.drift.partings:
        return
    with st.container(key="other_precision", horizontal=True, vertical_alignment="center"):
        markup.show("Narrower floats are a common cause. Compare here, rounded to:", "quiet")
        for to in DEVICES:
            st.button(
                to,
                key=f"other_precision_{to}",
                on_click=side_by_side.round_this,
                args=(other_runs.EVERYTHING, to),
            )
