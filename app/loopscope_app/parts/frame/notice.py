"""Messages of the engine, each shown once as a sentence."""

from __future__ import annotations

import streamlit as st

from loopscope.errors import MOST_OF_A_SENTENCE
from loopscope_app.actions import memory_budget, reopening
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession

_LINES = 6
"""Number of lines that are visible; a click shows the rest."""


def show(session: UserSession) -> None:
    memory_budget.report_dropped_values(session)
    reopening.report_difference(session)
    message = session.message
    if message is None:
        return
    lines = [markup.plain(line, MOST_OF_A_SENTENCE) for line in message.text.splitlines()]
    box, icon = (
        (st.error, ":material/error:") if message.kind == "error" else (st.info, ":material/info:")
    )
    box(_joined(lines[:_LINES]), icon=icon)
    if len(lines) > _LINES:
        with st.expander(f"{len(lines) - _LINES} more line{'s' * (len(lines) > _LINES + 1)}"):
            st.markdown(_joined(lines[_LINES:]))


def _joined(lines: list[str]) -> str:
    return "\n\n".join(lines)
