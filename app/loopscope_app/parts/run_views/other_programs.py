"""The same run in the model's runtime and in its source program: differences, and what agrees."""

from __future__ import annotations

import streamlit as st

from loopscope.comparison import Drift
from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import ComparisonReport, SourceAlone, SourceReport
from loopscope_app.actions import side_by_side
from loopscope_app.describe.differences import DifferenceLine
from loopscope_app.parts.run_views import compared_canvas, compared_page, other_run
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.compare_choice import RUNTIME
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession

KEY = "against"


def show_runtime(session: UserSession, opened: Opened, runtime: str) -> None:
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
            compared_canvas.show(session, opened)


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
    place_lists.show_table(
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


SOURCE_KEY, SOURCE_TABLE = "beside_source", "source_table"


def show_source(session: UserSession, opened: Opened) -> None:
    """Show the result; before it exists, what Compare will do."""
    report = session.run.source
    if report is None:
        markup.show(
            "torch or TensorFlow runs the program on the same inputs and watches its loops and "
            "branches. Its values are shown beside the run here and the model's runtime.",
            "quiet",
        )
        return
    is_equal = isinstance(report, SourceReport) and report.agrees
    compared_page.show_verdict(report.sentence, "good" if is_equal else "bad")
    lines = source_lines(report) if isinstance(report, SourceReport) else []
    if session.run.difference is None and lines:
        side_by_side.show_difference(lines[0].address, lines[0].step)
    left, right = st.columns([1, 1], gap="medium")
    with left, st.container(key="compare_left"):
        if lines:
            place_lists.show_table(
                ("value", "iteration", "here", "in the source"),
                [line.cells for line in lines],
                key=SOURCE_KEY,
                now=None,
                on_pick=lambda number: side_by_side.show_difference(
                    lines[number].address, lines[number].step
                ),
            )
        _source_table(session, report)
    with right:
        compared_canvas.show(session, opened)


def source_lines(report: SourceReport) -> list[DifferenceLine]:
    """Return all inner differences, the earliest first."""
    rows = [
        (region.first, "branch" if region.kind == "cond" else "iterations")
        for region in report.regions
        if region.first is not None
    ]
    rows += [
        (value.first, "")
        for region in report.regions
        for value in region.values
        if value.first is not None
    ]
    rows.sort(key=lambda row: row[0].step)
    return [
        DifferenceLine(
            elided(readable(first.address), 60) + (f" ({what})" if what else ""),
            "",
            first.here,
            first.there,
            first.address,
            first.step,
        )
        for first, what in rows
    ]


def _source_table(session: UserSession, report: SourceReport | SourceAlone) -> None:
    head, *rows = report.table()
    if not rows:
        return
    regions = report.regions if isinstance(report, SourceReport) else ()

    def pick(number: int) -> None:
        first = regions[number].first if number < len(regions) else None
        if first is not None:
            side_by_side.show_difference(first.address, first.step)

    place_lists.show_table(
        ("source = file", *head[1:]), rows, key=SOURCE_TABLE, now=None, on_pick=pick
    )
