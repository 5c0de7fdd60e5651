"""The table of a loop: carried values, branches, condition and a formula, one row per iteration."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

import loopscope
from loopscope_app.actions import moves
from loopscope_app.describe.iteration_table import (
    PAGE,
    IterationRow,
    LoopTableColumns,
    loop_columns,
    rows,
)
from loopscope_app.describe.loop_tape import tape
from loopscope_app.describe.node_index import IndexedNode
from loopscope_app.parts.dock.formula_column import FormulaCells
from loopscope_app.parts.widgets import row_table
from loopscope_app.state.focus import LoopInFocus


def show(
    debugger: loopscope.Debugger, loop: LoopInFocus, formula: FormulaCells | None, key: str
) -> list[IterationRow]:
    """Draw the rows around the cursor and return them. A click on a row goes to its iteration."""
    columns = loop_columns(loop.place)
    first, last = _page(loop)
    page_rows = rows(debugger, loop.address, columns, range(first, last))
    has_margin = any(row.margin for row in page_rows)
    titles = _titles(columns) + (["margin"] if has_margin else [])
    cells = [_cells(row, columns, loop) + ([row.margin] if has_margin else []) for row in page_rows]
    if formula is not None:
        titles.append(formula.title)
        for row, row_cells in zip(page_rows, cells, strict=True):
            row_cells.append(formula.texts.get(row.iteration, ""))
    with st.container(key=f"{key}_rows"):
        row_table.show(
            titles,
            cells,
            key=key,
            now=None if loop.current is None else loop.current - first,
            in_view=len(cells) - 1,
            on_pick=lambda number: _go(page_rows[number]),
        )
    return page_rows


def show_titles(loop: IndexedNode, key: str) -> None:
    """Draw the titles of a loop before it runs."""
    with st.container(key=f"{key}_rows"):
        row_table.show(
            _titles(loop_columns(loop)), [], key=key, now=None, on_pick=lambda number: None
        )


def courses(page_rows: Sequence[IterationRow], loop: LoopInFocus) -> str:
    """Return the branches and carried numbers of the rows as strips of HTML."""
    return tape(page_rows, loop_columns(loop.place), loop.current)


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
    return ["#", *(column.title for column in columns.carried + columns.branches), *last]


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
