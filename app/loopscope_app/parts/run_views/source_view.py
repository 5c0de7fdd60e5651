"""The same inputs in the source program, here, and in the runtime: differences and three
columns.
"""

from __future__ import annotations

import streamlit as st

from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import SourceAlone, SourceReport
from loopscope_app.actions import side_by_side
from loopscope_app.describe.differences import DifferenceLine
from loopscope_app.parts.run_views import compared_page, difference_canvas
from loopscope_app.parts.widgets import markup, row_table
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession

KEY, TABLE = "beside_source", "source_table"


def show(session: UserSession, opened: Opened) -> None:
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
    lines = lines_of(report) if isinstance(report, SourceReport) else []
    if session.run.difference is None and lines:
        side_by_side.show_difference(lines[0].address, lines[0].step)
    left, right = st.columns([1, 1], gap="medium")
    with left, st.container(key="compare_left"):
        if lines:
            row_table.show(
                ("value", "iteration", "here", "in the source"),
                [line.cells for line in lines],
                key=KEY,
                now=None,
                on_pick=lambda number: side_by_side.show_difference(
                    lines[number].address, lines[number].step
                ),
            )
        _table(session, report)
    with right:
        difference_canvas.show(session, opened)


def lines_of(report: SourceReport) -> list[DifferenceLine]:
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


def _table(session: UserSession, report: SourceReport | SourceAlone) -> None:
    head, *rows = report.table()
    if not rows:
        return
    regions = report.regions if isinstance(report, SourceReport) else ()

    def pick(number: int) -> None:
        first = regions[number].first if number < len(regions) else None
        if first is not None:
            side_by_side.show_difference(first.address, first.step)

    row_table.show(("source = file", *head[1:]), rows, key=TABLE, now=None, on_pick=pick)
