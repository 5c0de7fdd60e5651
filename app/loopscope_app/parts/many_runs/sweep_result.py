"""The result of many runs: verdict, pictures, findings and a table, driven by one threshold."""

from __future__ import annotations

import streamlit as st

from loopscope_app.describe import sweep_words
from loopscope_app.parts.many_runs import (
    finding_lines,
    pictures,
    runs_table,
    sweeps_compared,
    threshold,
)
from loopscope_app.parts.widgets import markup
from loopscope_app.state.background_sweep import Sweeping
from loopscope_app.state.user_session import UserSession


def show(session: UserSession, sweeping: Sweeping) -> None:
    """Draw verdict, threshold, pictures, findings and table of a finished sweep."""
    summary = sweeping.sweep.summary
    verdict = st.container(key="many_verdict")
    with st.container(key="many_threshold", horizontal=True, vertical_alignment="center"):
        markup.show("Runs above the threshold", "quiet nowrap")
        chosen = threshold.choose(session, sweeping)
        ran = sweep_words.outcome(
            summary.rows, sweeping.samples.count, sweeping.cut, sweeping.seconds
        )
        markup.show(f"{markup.text(ran)} · click a bar, point or row to open its run", "quiet")
    with verdict:
        parts = [sweep_words.headline(summary)]
        parts += [threshold.sentence(sweeping, chosen)] if chosen is not None else []
        if any(parts):
            words = "<br>".join(markup.prose(part, 4000) for part in parts if part)
            markup.show(words, "headline")
    if chosen is not None:
        pictures.show(session, sweeping, chosen)
    left, right = st.columns([1, 1.6], gap="medium")
    with left, st.container(key="many_findings_room"):
        finding_lines.show(summary)
        sweeps_compared.show(session, sweeping)
    with right:
        runs_table.show(session, sweeping.rows, chosen)
