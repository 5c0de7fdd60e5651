"""Below the canvas: one of several ways to look at the whole run, and why it ended; only the chosen one is computed."""

from __future__ import annotations

import streamlit as st

from app.focus import decided_in_focus, loop_in_focus
from app.looks import LENS
from app.parts import ask, compare, export, loop_panel, matrix, proof, verdict, whole_run
from app.places import places
from app.session import Session
from engine.ir.model import IF, Model


def _usual(model: Model) -> str:
    """What a model is first looked at with: without a loop there are no iterations, without an If no branch to explain."""
    kinds = {place.node.type for place in places(model).values() if place.node.bodies}
    return "Iterations" if kinds - {IF} else "Why" if kinds else "Timeline"


def show(session: Session) -> None:
    if session.opened is None or session.debugger is None:
        return
    loop = loop_in_focus(session)
    decided = decided_in_focus(session, loop)
    LENS.begin(_usual(session.opened.model), LENS.options)
    with st.container(key="lens_bar", horizontal=True, vertical_alignment="top"):
        lens = st.segmented_control(
            "Look at the run as",
            LENS.options,
            key=LENS.key,
            required=True,
            label_visibility="collapsed",
        )
        verdict.show(session, decided)
    with st.container(key="lens_content"):
        match lens:
            case "Timeline":
                whole_run.show(session)
            case "Matrix":
                matrix.show(session, loop)
            case "Ask":
                ask.show(session, loop)
            case "Why":
                proof.show(session, decided)
            case "Compare":
                compare.show(session)
            case "Export":
                export.show(session)
            case _:
                loop_panel.show(session, loop)
