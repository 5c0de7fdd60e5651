"""The choice of inputs for many runs: a grid of values, random samples, or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from loopscope_app.actions import running_many
from loopscope_app.describe.input_words import suggested_grid, suggested_random
from loopscope_app.links.codec import LONGEST_RUNS
from loopscope_app.parts.widgets import markup
from loopscope_app.state.many_runs import DATA, FILE, GRID, KINDS, RANDOM_NUMBERS, THE_DATA
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, place, widget

KIND = "many_kind"
_HINTS = {
    DATA: "The data set of this sample",
    GRID: "A range of one input or of several: all combinations run. Write `1..500`, `0..1/11` "
    "for 11 values, or `0,0.5,1`. Inputs without a range keep their value.",
    RANDOM_NUMBERS: "Number of runs, a seed, and ranges or distributions: "
    "`random:1000 seed=3 x=normal(0,1) n=1..9`. Other inputs are drawn as usual for their type.",
    FILE: "An `.npz` of arrays whose first axis counts the runs, or several files with one run "
    "each; or a `.parquet` or `.csv` with a column for each input of one number",
}


def show(session: UserSession, opened: Opened) -> None:
    """Show the inputs, and run the default ones at once."""
    offered = [
        kind
        for kind in KINDS
        if kind != DATA or (opened.sample is not None and opened.sample.data is not None)
    ]
    grid = suggested_grid(opened.model, session.model.inputs)
    if widget(KIND) not in offered:
        place(KIND, _kind(session, grid, offered))
    random = suggested_random(opened.model, session.model.inputs)
    usual = {DATA: THE_DATA, GRID: grid, RANDOM_NUMBERS: random}.get(str(widget(KIND)), "")
    running_many.begin_default(usual[:LONGEST_RUNS])
    with st.container(key="many_bar", horizontal=True, vertical_alignment="center"):
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
            markup.show(_HINTS[DATA], "quiet")
            _run_button(running_many.run_data_set)
        else:
            _words(session, str(kind), usual)


def _run_button(on_click: Callable[..., None], *args: str) -> None:
    st.button("Run", key="many_run", type="primary", on_click=on_click, args=args)


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
            help=_HINTS[kind],
        )
        _run_button(running_many.run_words, key)


def _file(session: UserSession) -> None:
    key = f"many_file_{session.many.generation}"
    st.file_uploader(
        "Inputs from a file",
        type=["npz", "parquet", "csv"],
        accept_multiple_files=True,
        key=key,
        on_change=running_many.run_file,
        args=(key,),
        help=_HINTS[FILE],
    )
    if session.many.file:
        markup.show(f"These runs are on {markup.text(session.many.file, 80)}.", "quiet")
