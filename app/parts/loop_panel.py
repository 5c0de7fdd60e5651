"""The loop in focus: a row per iteration with carried values, condition and branches; a click goes there."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from app import actions, markup
from app.focus import LoopInFocus
from app.iterations import PAGE, Column, LoopColumns, Row, loop_columns, rows
from app.parts import tape
from app.session import Session

ROW = 28
"""Height of a row in pixels."""
MOST_ROWS_SEEN = 7


def show(session: Session, loop: LoopInFocus | None) -> None:
    if session.debugger is None:
        return
    if loop is None or not loop.iterations:
        markup.show("Once a loop runs, its iterations are listed here, one row each.", "quiet")
        return
    columns = loop_columns(loop.place)
    first, last = _page(loop)
    found = rows(session.debugger, loop.address, columns, range(first, last))
    tape.show(found, columns, loop.current)
    key = f"loop_table_{loop.place.address}_{session.generation}"
    st.dataframe(
        _frame(found, columns, loop.current),
        key=key,
        hide_index=True,
        width="stretch",
        row_height=ROW,
        height=ROW * (1 + min(len(found), MOST_ROWS_SEEN)) + 12,
        on_select=lambda: actions.seek_row(key, [row.place for row in found]),
        selection_mode="single-cell",
    )
    if (first, last) != (0, loop.iterations):
        markup.show(f"iterations {first + 1:,} to {last:,} of {loop.iterations:,}", "quiet")


def _page(loop: LoopInFocus) -> tuple[int, int]:
    """The rows round the iteration where the cursor is, or the last ones."""
    middle = loop.current if loop.current is not None else loop.iterations
    first = max(0, min(middle - PAGE // 2, loop.iterations - PAGE))
    return first, min(first + PAGE, loop.iterations)


def _frame(found: list[Row], columns: LoopColumns, current: int | None) -> pd.DataFrame:
    """Columns under distinct titles, because names of a model may repeat."""
    table: dict[str, list[str]] = {"iteration": [f"{'▶ ' if row.iteration == current else ''}{row.iteration + 1}" for row in found]}
    for position, column in enumerate(columns.carried):
        table[_title(column, table)] = [row.carried[position] for row in found]
    for position, column in enumerate(columns.branches):
        table[_title(column, table)] = [row.branches[position] for row in found]
    if columns.condition:
        table[_title(columns.condition, table)] = [row.condition for row in found]
    return pd.DataFrame(table)


def _title(column: Column, taken: Mapping[str, object]) -> str:
    title = column.title[:40] or "value"
    while title in taken:
        title += " "
    return title
