"""The debugger screen: the model's graph at the cursor, the controls that move it, and everything known of the moment."""

from __future__ import annotations

import streamlit as st

from app import links
from app.parts import (
    breakpoints,
    code,
    compare,
    header,
    inputs_panel,
    inspector,
    lenses,
    lesson,
    moment,
    problems,
    stage,
)
from app.session import Session

PANEL = "debugger_panel"
PANELS = ("Inspect", "Code", "Lesson", "Inputs", "Breakpoints", "Problems")


def show(session: Session) -> None:
    header.show(session)
    moment.show(session, _moment, kept=(PANEL, lenses.KEY, compare.CHOICE, inspector.VIEW))


def _moment(session: Session) -> None:
    """Everything that changes with a step, so that a step draws nothing else."""
    left, right = st.columns([1.75, 1], gap="medium")
    with left:
        stage.show(session)
    with right, st.container(key="side"):
        _panel(session)
    links.remember(session)


def _panel(session: Session) -> None:
    if session.opened is None:
        return
    found = len(session.opened.report.diagnostics)
    titles = {"Problems": f"Problems {found}" if found else "Problems"}
    default = PANELS[0] if session.opened.report.ok else "Problems"
    offered = [name for name in PANELS if name != "Lesson" or session.opened.sample]
    panel = st.segmented_control(
        "Panel",
        offered,
        default=default,
        key=PANEL,
        format_func=lambda name: titles.get(name, name),
        label_visibility="collapsed",
        width="stretch",
    )
    match panel:
        case "Code":
            code.show(session)
        case "Inputs":
            inputs_panel.show(session)
        case "Breakpoints":
            breakpoints.show(session)
        case "Lesson":
            lesson.show(session)
        case "Problems":
            problems.show(session.opened)
        case _:
            inspector.show(session)
