"""The progress of a sweep: rate, remaining time, findings so far, and a stop button."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import running_many
from loopscope_app.describe.sweep_words import progress
from loopscope_app.parts.many_runs import finding_lines
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import current

EVERY = 0.5
"""Seconds between two updates."""


@st.fragment(run_every=EVERY)
def show() -> None:
    """Show the progress until the sweep ends, then draw the whole page again."""
    session = current()
    sweeping = session.many.under_way
    if running_many.is_over(session) or sweeping is None:
        st.rerun()
    doing = (
        f"With {markup.text(session.many.against_title)}"
        if sweeping is session.many.against
        else "Running"
    )
    summary = sweeping.sweep.summary
    with st.container(key="many_progress", horizontal=True, vertical_alignment="center"):
        st.button(
            "Stop",
            key="many_stop",
            icon=":material/stop:",
            on_click=running_many.stop,
            type="primary",
            shortcut="Escape",
        )
        rate = progress(summary.rows, sweeping.sweep.count, sweeping.seconds)
        markup.show(f"<b>{doing}</b> &ensp;{rate}", "tabular")
    st.progress(summary.rows / max(1, sweeping.sweep.count))
    finding_lines.show(summary, opens=False)
