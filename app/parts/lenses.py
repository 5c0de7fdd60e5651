"""Below the canvas: why it ended, and one of several ways to look at the whole run; only the chosen one is computed."""

from __future__ import annotations

import streamlit as st

from app.focus import loop_in_focus
from app.parts import ask, compare, export, loop_panel, matrix, proof, verdict, whole_run
from app.session import Session

KEY = "lens"
LENSES = ("Iterations", "Why", "Timeline", "Matrix", "Ask", "Compare", "Export")
_ICONS = {
    "Iterations": "table_rows",
    "Timeline": "view_timeline",
    "Matrix": "grid_on",
    "Ask": "query_stats",
    "Why": "gavel",
    "Compare": "compare_arrows",
    "Export": "download",
}


def show(session: Session) -> None:
    if session.opened is None or session.debugger is None:
        return
    loop = loop_in_focus(session)
    verdict.show(session, loop)
    lens = st.segmented_control(
        "Look at the run as",
        LENSES,
        default=LENSES[0],
        key=KEY,
        format_func=lambda name: f":material/{_ICONS[name]}: {name}",
        label_visibility="collapsed",
    )
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
