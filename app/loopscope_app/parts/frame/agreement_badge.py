"""The badge that says whether the model's runtime computes the same values."""

from __future__ import annotations

import re

import streamlit as st

from loopscope_app.actions import agreements
from loopscope_app.state.user_session import UserSession, current

_EVERY = 1.5
"""Seconds between two looks at a comparison that runs in the background."""


def show(session: UserSession) -> None:
    """Show the badge once the comparison is over; nothing without a report."""
    agreements.begin(session)
    agreement, opened = session.model.agreement, session.model.opened
    if agreement is None or opened is None or agreement.opened.model is not opened.model:
        return
    with st.container(key="agreement"):
        if agreement.over:
            _badge(session)
        else:
            _wait()


@st.fragment(run_every=_EVERY)
def _wait() -> None:
    """Redraw only the badge until the comparison is over."""
    agreement = current().model.agreement
    if agreement is not None and agreement.over:
        st.rerun()


def _badge(session: UserSession) -> None:
    report = session.model.agreement.report if session.model.agreement else None
    if report is None:
        return
    runtime = short_runtime(report.runtime)
    st.button(
        f"Agrees with {runtime}" if report.agrees else f"Differs from {runtime}",
        key="agreement_badge",
        type="tertiary",
        icon=":material/verified:" if report.agrees else ":material/difference:",
        help=report.sentence.replace("`", ""),
        on_click=agreements.show_comparison,
    )


def short_runtime(name: str) -> str:
    """Return the name of a runtime with the first two numbers of its version.

    >>> short_runtime("ONNX Runtime 1.31.0"), short_runtime("OpenVINO 2026.4.1-22982")
    ('ONNX Runtime 1.31', 'OpenVINO 2026.4')
    """
    return re.sub(r"(\d+\.\d+)[.\-\w]*$", r"\1", name)
