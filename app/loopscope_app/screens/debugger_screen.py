"""The debugger screen: the graph at the cursor, the controls that move it, and panels about the
moment.
"""

from __future__ import annotations

import streamlit as st

from loopscope_app.parts.frame import header, moment, page_address, stage
from loopscope_app.parts.inspector import inspector
from loopscope_app.parts.panels import (
    breakpoints_panel,
    code_panel,
    inputs_panel,
    problems,
    sample_lesson,
)
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import PANEL


def show(session: UserSession) -> None:
    with st.container(key="header"):
        header.show(session)
    moment.show(session, _moment)


def _moment(session: UserSession) -> None:
    """Draw everything that changes with a step, so that a step draws nothing else."""
    stage.show(session, beside=_panel)
    page_address.show(session)


def _panel(session: UserSession) -> None:
    if session.model.opened is None:
        return
    report = session.model.opened.report.about(session.model.checked_for)
    found = len(report.errors) + len(report.warnings)
    titles = {"Problems": f"Problems {found}" if found else "Problems"}
    offered = [name for name in PANEL.options if name != "Lesson" or session.model.opened.sample]
    to_look_at = session.model.opened.report.ok and session.model.opened.model.graph.nodes
    PANEL.begin(PANEL.options[0] if to_look_at else "Problems", offered)
    panel = st.segmented_control(
        "Panel",
        offered,
        key=PANEL.key,
        required=True,
        format_func=lambda name: titles.get(name, name),
        label_visibility="collapsed",
        width="stretch",
    )
    match panel:
        case "Code":
            code_panel.show(session)
        case "Inputs":
            inputs_panel.show(session)
        case "Breakpoints":
            breakpoints_panel.show(session)
        case "Lesson":
            sample_lesson.show(session)
        case "Problems":
            problems.show(session, session.model.opened)
        case _:
            inspector.show(session)
