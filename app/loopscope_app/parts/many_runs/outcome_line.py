"""The result of a sweep in one line."""

from __future__ import annotations

from loopscope_app.describe.sweep_words import outcome
from loopscope_app.parts.widgets import markup
from loopscope_app.state.background_sweep import Sweeping


def show(sweeping: Sweeping) -> None:
    words = outcome(
        sweeping.sweep.summary.rows, sweeping.samples.count, sweeping.cut, sweeping.seconds
    )
    hint = " · click a bar, a point or a row to open that run"
    markup.show(f"{markup.text(words)}{hint if sweeping.sweep.summary.rows else ''}", "quiet")
