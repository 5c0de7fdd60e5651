"""The same run in the model's runtime: the first value that differs, or the values that agree."""

from __future__ import annotations

import streamlit as st

from loopscope.comparison import Drift
from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import ComparisonReport
from loopscope_app.actions import side_by_side
from loopscope_app.describe.differences import DifferenceLine
from loopscope_app.parts.run_views import compared_page, difference_canvas, other_run
from loopscope_app.parts.widgets import markup, row_table
from loopscope_app.state.compare_choice import RUNTIME
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession

KEY = "against"


def show(session: UserSession, opened: Opened, runtime: str) -> None:
    """Show the result of a comparison; before it, what Compare will do."""
    report, drifted = session.run.other_runtime, session.run.drifted
    if report is None:
        markup.show(
            f"{runtime} runs the model on the same inputs and returns every inner value. The first "
            "that differs is shown.",
            "quiet",
        )
        return
    words = verdict(report, drifted.drift if drifted and drifted.name == RUNTIME else None)
    other_run.other_precision(session)
    if drifted is not None and drifted.name == RUNTIME and not report.agrees:
        outputs = [line for line in lines_of(report) if not line.address]
        compared_page.show(
            session, opened, drifted, verdict=words, outputs=outputs, note=_note(report)
        )
    else:
        compared_page.show_verdict(words, "good" if report.agrees else "bad")
        left, right = st.columns([1, 1], gap="medium")
        with left, st.container(key="compare_left"):
            _table(session, lines_of(report))
            markup.show(markup.sentence(_note(report)), "quiet")
        with right:
            difference_canvas.show(session, opened)


def verdict(report: ComparisonReport, drift: Drift | None) -> str:
    """Return the headline: the first difference with its cause, or what agrees."""
    first = report.first
    if report.agrees or first is None:
        return report.sentence
    place = elided(readable(first.address), 160)
    parts = [f"**First difference: {place}**, {first.here} here, {first.there} there."]
    if drift is not None and drift.first is not None and drift.first.growth is not None:
        parts.append(f"The error {drift.first.growth.words}.")
    return " ".join((*parts, *filter(None, (report.cause, report.rounding))))


def lines_of(report: ComparisonReport) -> list[DifferenceLine]:
    """Return the first different inner value and the different outputs."""
    first = [report.first] if report.first is not None else []
    return [
        *(
            DifferenceLine(
                elided(readable(value.address), 80),
                "",
                value.here,
                value.there,
                value.address,
                value.step,
            )
            for value in first
        ),
        *(
            DifferenceLine(f"{value.address} (output)", "", value.here, value.there, "", -1)
            for value in report.outputs
        ),
    ]


def _table(session: UserSession, lines: list[DifferenceLine]) -> None:
    if not lines:
        return
    if session.run.difference is None:
        side_by_side.show_difference(lines[0].address, lines[0].step)
    row_table.show(
        compared_page.TITLES,
        [line.cells for line in lines],
        key=KEY,
        now=None,
        on_pick=lambda number: side_by_side.show_difference(
            lines[number].address, lines[number].step
        ),
    )


def _note(report: ComparisonReport) -> str:
    """Return a sentence about what was not compared."""
    left_out = [f"{count:,} {reason}" for reason, count in report.left_out.items()]
    return report.refused or (f"Not compared: {', '.join(left_out)}." if left_out else "")
