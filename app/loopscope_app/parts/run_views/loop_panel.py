"""The loop in focus: a row per iteration with carried values, condition and branches."""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.ir import iteration_range
from loopscope_app.actions import moves
from loopscope_app.describe.iteration_table import (
    PAGE,
    IterationRow,
    LoopTableColumns,
    loop_columns,
    rows,
)
from loopscope_app.describe.loop_tape import tape
from loopscope_app.parts.run_views import adjoint_view, until_a_loop_runs
from loopscope_app.parts.widgets import markup
from loopscope_app.parts.widgets import row_table as table
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession

KEY = "loop_table"


def show(session: UserSession, loop: LoopInFocus | None) -> None:
    if session.run.debugger is None:
        return
    if loop is None or not loop.iterations:
        _without_rows(session.run.debugger, loop)
        return
    adjoint_view.show(session, loop)
    columns = loop_columns(loop.place)
    first, last = _page(loop)
    page_rows = rows(session.run.debugger, loop.address, columns, range(first, last))
    now = None if loop.current is None else loop.current - first
    with st.container(key="loop_rows"):
        narrow = any(row.margin for row in page_rows)
        cells = [_cells(row, columns, loop) + ([row.margin] if narrow else []) for row in page_rows]
        table.show(
            _titles(columns) + (["margin"] if narrow else []),
            cells,
            key=KEY,
            now=now,
            on_pick=lambda number: _go(page_rows[number]),
        )
        strips = tape(page_rows, columns, loop.current)
        if strips:
            markup.show(strips)
    if (first, last) != (0, loop.iterations):
        markup.show(f"{iteration_range(first, last - 1)} of {loop.iterations:,}", "quiet")


def _without_rows(debugger: loopscope.Debugger, loop: LoopInFocus | None) -> None:
    """Return what the table will list for the first loop of the model, or why it is empty."""
    first = until_a_loop_runs.first_loop(debugger.model)
    if first is None:
        until_a_loop_runs.none_to_show()
    elif loop is not None and loop.record is not None and loop.record.ended_by is not None:
        markup.show(
            (
                f"<b>{markup.text(loop.place.node.name, 60)}</b> ran no iteration, so there is no "
                "row: see Why."
            ),
            "quiet",
        )
    else:
        table.show(_titles(loop_columns(first)), [], key=KEY, now=None, on_pick=lambda number: None)
        markup.show(
            (
                f"Once <b>{markup.text(first.node.name, 60)}</b> runs, its iterations are listed "
                "here, one row each."
            ),
            "quiet",
        )


def _go(row: IterationRow) -> None:
    """Go to an iteration. The selection stays, so that iterations can be compared."""
    moves.go(lambda debugger: debugger.seek(row.place))


def _page(loop: LoopInFocus) -> tuple[int, int]:
    """Return the rows around the iteration of the cursor, or the last rows."""
    middle = loop.current if loop.current is not None else loop.iterations
    first = max(0, min(middle - PAGE // 2, loop.iterations - PAGE))
    return first, min(first + PAGE, loop.iterations)


def _titles(columns: LoopTableColumns) -> list[str]:
    last = [columns.condition.title] if columns.condition else []
    return ["iteration", *(column.title for column in columns.carried + columns.branches), *last]


def _cells(row: IterationRow, columns: LoopTableColumns, loop: LoopInFocus) -> list[str]:
    """Return the cells of a row in the order of the titles."""
    last = [_goes_on(row, loop)] if columns.condition else []
    return [f"{row.iteration:,}", *row.carried, *row.branches, *last]


def _goes_on(row: IterationRow, loop: LoopInFocus) -> str:
    """Return the value of the condition as a word. The trip count ends the loop whatever the
    condition is.
    """
    counted = (
        loop.record is not None
        and loop.record.ended_by == "trip_count"
        and row.iteration == loop.iterations - 1
    )
    return "no: trip count" if counted else row.condition
