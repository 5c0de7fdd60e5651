"""The fields of Compare beside its choice: another model, or the values that are rounded."""

from __future__ import annotations

import streamlit as st

from loopscope.ops import NARROWER
from loopscope_app.actions import other_runs, side_by_side
from loopscope_app.describe.wording import DEVICES, narrower_type
from loopscope_app.parts.widgets import markup
from loopscope_app.state.compare_choice import CODE, MODEL, PATTERN, ROUNDED, SOURCE, TYPE, WHERE
from loopscope_app.state.launch import paths_allowed
from loopscope_app.state.user_session import UserSession, place, widget

PATH, UPLOAD = "compare_other_path", "compare_other_upload"


def fields(session: UserSession, name: str) -> None:
    """Show the fields that belong to a choice."""
    if name == MODEL:
        _model(session)
    elif name == ROUNDED:
        _rounding()
    elif name == SOURCE:
        _source()


def _model(session: UserSession) -> None:
    other = session.model.other
    if other is not None:
        markup.show(
            f"The other model: <b>{markup.text(other.title, 80)}</b>, on the same inputs.", "quiet"
        )
    local = paths_allowed(st.get_option("server.address"))
    path, upload = st.columns([1, 1] if local else [0.001, 1], gap="medium")
    if local:
        path.text_input(
            "A model file of this machine",
            key=PATH,
            placeholder="/path/to/other.xml",
            on_change=other_runs.open_path,
            args=(PATH,),
            help="Before and after a conversion, a compression, a fix",
        )
    upload.file_uploader(
        "Or upload it, with its weights" if local else "Upload the other model, with its weights",
        accept_multiple_files=True,
        key=UPLOAD,
        on_change=other_runs.open_upload,
        args=(UPLOAD,),
    )


def _rounding() -> None:
    if widget(PATTERN) is None:
        place(PATTERN, other_runs.EVERYTHING)
    if widget(TYPE) not in NARROWER:
        place(TYPE, NARROWER[0])
    what, to = st.columns([1, 1.6], gap="medium", vertical_alignment="bottom")
    what.text_input(
        "What is rounded, in all iterations",
        key=PATTERN,
        help=(
            "An address without iterations, in which * stands for any text: main/*/state. An "
            "operation's menu in Inspect fills this in."
        ),
    )
    to.segmented_control("To", NARROWER, key=TYPE, format_func=narrower_type, required=True)


def _source() -> None:
    program, code = st.columns([3, 1], gap="medium")
    code.text_input(
        "Code from the terminal",
        key=CODE,
        help=(
            "A program runs code of this machine. Compare prints a code where Loopscope was "
            "started; enter it here once for each program."
        ),
    )
    program.text_input(
        "The program that the model was converted from",
        key=WHERE,
        placeholder="/path/to/model.pt2, the folder of a SavedModel, or module:function",
        help=(
            "torch or TensorFlow runs it, in a process of its own. A module is imported from "
            "the folder that Loopscope was started in."
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
        markup.show(
            "Narrower floats often do that. The same run here, with everything rounded "
            "to what a "
            "device computes in:"
        )
        for to in DEVICES:
            st.button(
                to,
                key=f"other_precision_{to}",
                on_click=side_by_side.round_this,
                args=(other_runs.EVERYTHING, to),
            )
