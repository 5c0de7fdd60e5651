"""Findings of a sweep as sentences. A click opens the run that a sentence is about."""

from __future__ import annotations

from loopscope.sweeps import SweepSummary
from loopscope_app.actions import running_many
from loopscope_app.describe.sweep_words import SweepFinding, findings
from loopscope_app.parts.widgets import chain

KEY = "many_findings"
_MAX_LINES = 12


def show(summary: SweepSummary, *, opens: bool = True) -> None:
    """Show the findings. ``opens`` is False while the sweep is running, because opening a run would
    end it.
    """
    lines = list(findings(summary))[:_MAX_LINES]
    if lines:
        chain.show(
            [_line(finding, opens) for finding in lines],
            key=KEY,
            on_pick=lambda number: _open(lines[number]),
        )


def _line(finding: SweepFinding, opens: bool) -> chain.ChainLine:
    live = opens and finding.sample is not None
    return chain.ChainLine(
        finding.text,
        finding.title,
        kind="bad" if finding.bad else "",
        value="open" if live else "",
        live=live,
    )


def _open(finding: SweepFinding) -> None:
    if finding.sample is not None:
        running_many.open_sample(finding.sample)
