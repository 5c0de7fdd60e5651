"""The choice of inputs for many runs: a grid of values, random samples, or a file."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from loopscope_app.actions import running_many
from loopscope_app.describe.suggested_inputs import suggested_grid, suggested_random
from loopscope_app.links.codec import LONGEST_RUNS
from loopscope_app.parts.widgets import markup
from loopscope_app.state.many_runs import DATA, FILE, GRID, KINDS, RANDOM_NUMBERS, THE_DATA
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, place, widget

KIND = "many_kind"
_HINTS = {
    DATA: "Many inputs that lie beside this sample, made by its recipe.",
    GRID: "A range of one input or of several: all combinations run. Write <code>1..500</code>, "
    "<code>0..1/11</code> for 11 values, or <code>0,0.5,1</code>. Inputs without a range keep "
    "their value.",
    RANDOM_NUMBERS: "Number of runs, a seed, and ranges or distributions: "
    "<code>random:1000 seed=3 x=normal(0,1) n=1..9</code>. Other inputs are drawn as usual for "
    "their type.",
    FILE: "An <code>.npz</code> of arrays whose first axis counts the runs, or several files with "
    "one run each; or a <code>.parquet</code> or <code>.csv</code> with a column for each input "
    "of one number.",
}


def show(session: UserSession, opened: Opened) -> None:
    grid = suggested_grid(opened.model, session.model.inputs)
    offered = [
        kind
        for kind in KINDS
        if kind != DATA or (opened.sample is not None and opened.sample.data is not None)
    ]
    if widget(KIND) not in offered:
        place(KIND, _kind(session, grid, offered))
    with st.container(key="many_choice", horizontal=True, vertical_alignment="center"):
        kind = st.segmented_control(
            "Inputs",
            offered,
            key=KIND,
            required=True,
            label_visibility="collapsed",
            width="content",
        )
        if kind == FILE:
            _file(session)
        elif kind == DATA:
            st.button(
                "Run all",
                key="many_run",
                type="primary",
                icon=":material/play_arrow:",
                on_click=running_many.run_data_set,
            )
        else:
            _words(
                session,
                str(kind),
                grid if kind == GRID else suggested_random(opened.model, session.model.inputs),
            )
    if session.many.sweeping is None:
        markup.show(_HINTS[str(kind)], "quiet")


def _kind(session: UserSession, grid: str, offered: Sequence[str]) -> str:
    words = session.many.words
    if not words:
        return (
            FILE
            if session.many.file
            else offered[0]
            if DATA in offered
            else GRID
            if grid
            else RANDOM_NUMBERS
        )
    if words == THE_DATA:
        return DATA
    return RANDOM_NUMBERS if words.startswith("random:") else GRID


def _words(session: UserSession, kind: str, usual: str) -> None:
    words = session.many.words if _kind(session, usual, (GRID, RANDOM_NUMBERS)) == kind else ""
    key = f"many_words_{kind}_{session.many.generation}"
    with st.container(key="many_inputs", horizontal=True, vertical_alignment="center"):
        st.text_input(
            "Inputs",
            (words or usual)[:LONGEST_RUNS],
            key=key,
            max_chars=LONGEST_RUNS,
            label_visibility="collapsed",
            placeholder="number=1..500",
        )
        st.button(
            "Run all",
            key="many_run",
            type="primary",
            icon=":material/play_arrow:",
            on_click=running_many.run_words,
            args=(key,),
        )


def _file(session: UserSession) -> None:
    key = f"many_file_{session.many.generation}"
    st.file_uploader(
        "Inputs from a file",
        type=["npz", "parquet", "csv"],
        accept_multiple_files=True,
        key=key,
        on_change=running_many.run_file,
        args=(key,),
    )
    if session.many.file:
        markup.show(f"These runs are on {markup.text(session.many.file, 80)}.", "quiet")
