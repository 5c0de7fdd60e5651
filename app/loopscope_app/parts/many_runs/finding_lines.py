"""What many runs have shown, in words; a click opens the run that a sentence is about."""

from __future__ import annotations

from loopscope.sweeps import SweepSummary
from loopscope_app.actions import running_many
from loopscope_app.describe.sweep_words import SweepFinding, findings
from loopscope_app.parts.widgets import chain

KEY = "many_findings"
_MOST = 12


def show(summary: SweepSummary, *, opens: bool = True) -> None:
    """``opens``: whether the runs may be opened, which ends nothing that is under way."""
    found = list(findings(summary))[:_MOST]
    if found:
        chain.show(
            [_line(one, opens) for one in found],
            key=KEY,
            on_pick=lambda number: _open(found[number]),
        )


def _line(one: SweepFinding, opens: bool) -> chain.ChainLine:
    live = opens and one.sample is not None
    return chain.ChainLine(
        one.text,
        one.title,
        kind="bad" if one.bad else "",
        value="open this run" if live else "",
        live=live,
    )


def _open(one: SweepFinding) -> None:
    if one.sample is not None:
        running_many.open_sample(one.sample)
