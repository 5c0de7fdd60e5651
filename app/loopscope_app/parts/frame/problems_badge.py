"""The badge with the number of problems; a click opens their list."""

from __future__ import annotations

import streamlit as st

from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import DRAWER, HIDDEN


def show(session: UserSession, opened: Opened) -> None:
    """Draw the badge if the check found errors or warnings."""
    report = opened.report.about(session.model.checked_for)
    count = len(report.errors) + len(report.warnings)
    if not count:
        return
    is_open = DRAWER.shown() == "Problems"
    st.button(
        f"{count:,}",
        key="header_problems",
        icon=":material/error:" if report.errors else ":material/warning:",
        help=f"{count:,} problem{'s' * (count > 1)}: {'close' if is_open else 'show'} the list",
        on_click=DRAWER.show,
        args=(HIDDEN if is_open else "Problems",),
    )
