"""The progress and the result of many runs: findings, pictures and a table, by one threshold."""

from __future__ import annotations

import streamlit as st

from loopscope.sweeps import SweepSummary
from loopscope_app.actions import running_many
from loopscope_app.describe import sweep_words
from loopscope_app.describe.sweep_words import SweepFinding, findings, progress
from loopscope_app.parts.many_runs import pictures, runs_table, sweeps_compared
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.many_runs import Sweeping
from loopscope_app.state.user_session import UserSession, current


def show(session: UserSession, sweeping: Sweeping) -> None:
    """Draw verdict, threshold, pictures, findings and table of a finished sweep."""
    summary = sweeping.sweep.summary
    verdict = st.container(key="many_verdict")
    with st.container(key="many_threshold", horizontal=True, vertical_alignment="center"):
        markup.show("Runs above the threshold", "quiet nowrap")
        chosen = pictures.choose(session, sweeping)
        ran = sweep_words.outcome(
            summary.rows, sweeping.samples.count, sweeping.cut, sweeping.seconds
        )
        markup.show(f"{markup.text(ran)} · click a bar, point or row to open its run", "quiet")
    with verdict:
        parts = [sweep_words.headline(summary)]
        parts += [pictures.sentence(sweeping, chosen)] if chosen is not None else []
        if any(parts):
            words = "<br>".join(markup.prose(part, 4000) for part in parts if part)
            markup.show(words, "headline")
    if chosen is not None:
        pictures.show(session, sweeping, chosen)
    left, right = st.columns([1, 1.6], gap="medium")
    with left, st.container(key="many_findings_room"):
        _show_findings(summary)
        sweeps_compared.show(session, sweeping)
    with right:
        runs_table.show(session, sweeping.rows, chosen)


EVERY = 0.5
"""Seconds between two updates."""


@st.fragment(run_every=EVERY)
def show_progress() -> None:
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
    _show_findings(summary, opens=False)


KEY = "many_findings"
_MAX_LINES = 12


def _show_findings(summary: SweepSummary, *, opens: bool = True) -> None:
    """Show the findings. ``opens`` is False while the sweep is running, because opening a run would
    end it.
    """
    lines = list(findings(summary))[:_MAX_LINES]
    if lines:
        place_lists.show_list(
            [_line(finding, opens) for finding in lines],
            key=KEY,
            on_pick=lambda number: _open(lines[number]),
        )


def _line(finding: SweepFinding, opens: bool) -> place_lists.ChainLine:
    live = opens and finding.sample is not None
    return place_lists.ChainLine(
        finding.text,
        finding.title,
        kind="bad" if finding.bad else "",
        value="open" if live else "",
        live=live,
    )


def _open(finding: SweepFinding) -> None:
    if finding.sample is not None:
        running_many.open_sample(finding.sample)
