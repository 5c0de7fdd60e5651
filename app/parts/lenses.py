"""Below the canvas: one of several ways to look at the whole run, and why it ended; only the chosen one is computed."""

from __future__ import annotations

import streamlit as st

from app.focus import loop_in_focus
from app.looks import LENS
from app.parts import ask, compare, export, loop_panel, matrix, proof, verdict, whole_run
from app.session import Session


def show(session: Session) -> None:
    if session.opened is None or session.debugger is None:
        return
    loop = loop_in_focus(session)
    LENS.begin(LENS.options[0], LENS.options)
    with st.container(key="lens_bar", horizontal=True, vertical_alignment="top"):
        lens = st.segmented_control(
            "Look at the run as",
            LENS.options,
            key=LENS.key,
            required=True,
            label_visibility="collapsed",
        )
        verdict.show(session, loop)
    with st.container(key="lens_content"):
        match lens:
            case "Timeline":
                whole_run.show(session)
            case "Matrix":
                matrix.show(session, loop)
            case "Ask":
                ask.show(session, loop)
            case "Why":
                proof.show(session, loop)
            case "Compare":
                compare.show(session)
            case "Export":
                export.show(session)
            case _:
                loop_panel.show(session, loop)
