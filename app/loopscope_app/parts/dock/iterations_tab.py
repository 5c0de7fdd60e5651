"""The Iterations tab: a row per iteration of the loop in focus, or the matrix of all its values.

A model without loops has a row per If, with the branch that it took.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

import loopscope
from loopscope.errors import EngineError, elided
from loopscope.explain import Matrix, MatrixRow, iteration_matrix, step_of_cell
from loopscope.ir import IF, iteration_range, readable
from loopscope.object_cache import cache_by_object
from loopscope_app.actions import moves, selection
from loopscope_app.describe.iteration_table import (
    PAGE,
    IterationRow,
    LoopTableColumns,
    loop_columns,
    rows,
    tape,
)
from loopscope_app.describe.lane_chart import matrix_chart, matrix_words
from loopscope_app.describe.node_index import IndexedNode, first_loop, places
from loopscope_app.describe.wording import NOT_RUN, outcome
from loopscope_app.parts.dock import formula_column
from loopscope_app.parts.dock.formula_column import FormulaCells
from loopscope_app.parts.widgets import lanes, markup, place_lists
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession, current
from loopscope_app.state.view_choices import FORMULA, HIDDEN, SHOWN, WIDE, Look

KEY, WIDE_KEY = "loop_table", "loop_table_wide"


def show(session: UserSession, loop: LoopInFocus | None) -> None:
    """Draw the table, and the field of a formula if it is open."""
    debugger = session.run.debugger
    if debugger is None:
        markup.show("The model cannot be run: see its problems.", "quiet")
    elif loop is None or not loop.iterations:
        _without_rows(debugger, loop)
    elif WIDE.shown() == SHOWN:
        markup.show("The table is open over the canvas.", "quiet")
        _button("Close the wide table", "wide_close", WIDE, HIDDEN)
    else:
        _table(session, debugger, loop, KEY)
        with st.container(key="iteration_actions", horizontal=True):
            if FORMULA.shown() == HIDDEN:
                _button("Add a column", "formula_open", FORMULA, SHOWN)
            _button("Wide", "wide_open", WIDE, SHOWN)
        if FORMULA.shown() == SHOWN:
            formula_column.show(session, debugger, loop)


def show_wide(session: UserSession, loop: LoopInFocus | None) -> None:
    """Draw table, courses of carried values, and matrix over the canvas, if requested."""
    debugger = session.run.debugger
    if WIDE.shown() == HIDDEN or debugger is None or loop is None or not loop.iterations:
        return
    with st.container(key="wide"):
        with st.container(key="wide_head", horizontal=True, vertical_alignment="center"):
            markup.show(f"<h2>Iterations of {markup.text(loop.place.node.name, 60)}</h2>")
            _button("Close", "wide_close_top", WIDE, HIDDEN)
        page_rows = _table(session, debugger, loop, WIDE_KEY)
        strips = courses(page_rows, loop)
        if strips:
            markup.show(strips)
        show_matrix(session, loop, "wide_matrix")


def _table(
    session: UserSession, debugger: loopscope.Debugger, loop: LoopInFocus, key: str
) -> list[IterationRow]:
    formula = formula_column.cells(session, debugger, loop) if FORMULA.shown() == SHOWN else None
    page_rows = _show_iterations(debugger, loop, formula, key)
    first, last = page_rows[0].iteration, page_rows[-1].iteration
    if (first, last) != (0, loop.iterations - 1):
        markup.show(f"{iteration_range(first, last)} of {loop.iterations:,}", "quiet")
    return page_rows


def _button(words: str, key: str, look: Look, option: str) -> None:
    st.button(words, key=key, on_click=look.show, args=(option,))


def _without_rows(debugger: loopscope.Debugger, loop: LoopInFocus | None) -> None:
    """Show the columns of the first loop of the model, the Ifs of a model without loops, or the
    reason for an empty table.
    """
    first = first_loop(debugger.model)
    if first is None:
        _show_branches(debugger)
        return
    if loop is not None and loop.record is not None and loop.record.ended_by is not None:
        markup.show(f"<b>{markup.text(loop.place.node.name, 60)}</b> ran no iteration.", "quiet")
        return
    _show_titles(first, KEY)
    markup.show(
        f"Once <b>{markup.text(first.node.name, 60)}</b> runs, its iterations are listed here, one "
        "row each.",
        "quiet",
    )


BRANCHES_KEY = "branch_table"
MOST_ROWS = 200


def _show_branches(debugger: loopscope.Debugger) -> None:
    """Draw a row for each If, those that ran first; a click on a row selects its If."""
    ifs = [
        (outcome(debugger, entry), entry)
        for entry in places(debugger.model).values()
        if entry.node.type == IF
    ]
    if not ifs:
        markup.show("This model has no loop and no If: its steps are under Performance.", "quiet")
        return
    shown = sorted(ifs, key=lambda row: row[0] == NOT_RUN)[:MOST_ROWS]
    markup.show("This model has no loop. Its Ifs and their branches:", "quiet")
    with st.container(key="branch_rows"):
        place_lists.show_table(
            ("took", "If"),
            [(words, elided(readable(entry.address), 40)) for words, entry in shown],
            key=BRANCHES_KEY,
            now=None,
            on_pick=lambda number: selection.reveal_place(shown[number][1].address),
        )
    if len(ifs) > len(shown):
        markup.show(f"{len(shown)} of {len(ifs):,} Ifs", "quiet")


def _show_iterations(
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
        place_lists.show_table(
            titles,
            cells,
            key=key,
            now=None if loop.current is None else loop.current - first,
            in_view=len(cells) - 1,
            on_pick=lambda number: _go_to_iteration(page_rows[number]),
        )
    return page_rows


def _show_titles(loop: IndexedNode, key: str) -> None:
    """Draw the titles of a loop before it runs."""
    with st.container(key=f"{key}_rows"):
        place_lists.show_table(
            _titles(loop_columns(loop)), [], key=key, now=None, on_pick=lambda number: None
        )


def courses(page_rows: Sequence[IterationRow], loop: LoopInFocus) -> str:
    """Return the branches and carried numbers of the rows as strips of HTML."""
    return tape(page_rows, loop_columns(loop.place), loop.current)


def _go_to_iteration(row: IterationRow) -> None:
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


MATRIX_KEY = "matrix"


def show_matrix(session: UserSession, loop: LoopInFocus | None, key: str = MATRIX_KEY) -> None:
    debugger = session.run.debugger
    if debugger is None or loop is None or not loop.iterations:
        lanes.show_before_a_loop_runs(
            session,
            "its values are laid out here: a row for each value, a column for each iteration.",
        )
        return
    try:
        chart, matrix, rows = _chart(debugger, loop)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return

    def picked(pick: lanes.Pick) -> None:
        _go_to_cell(matrix, rows[pick.lane] if pick.lane >= 0 else None, pick)

    column = matrix.column_of(loop.current) if loop.current is not None else None
    markup.show(matrix_words(matrix, chart), "quiet")
    lanes.show(chart, key=key, cursor=column, wide=1, on_pick=picked)


def _go_to_cell(matrix: Matrix, row: MatrixRow | None, pick: lanes.Pick) -> None:
    """Go to the moment when the value of a cell was computed and select its node; a click on a name
    selects only.
    """
    debugger = current().run.debugger
    if debugger is None:
        return
    iteration = matrix.iterations[int(pick.at)]
    if not pick.on_name:
        begin = debugger.timeline.step_at(matrix.program, matrix.first_row + iteration, 0)
        moves.seek(begin if row is None else step_of_cell(debugger, matrix, row, iteration))
    if row is not None:
        selection.select(f"{matrix.program.address}/{row.label}")


@cache_by_object(
    key=lambda debugger, loop: (debugger.steps, debugger.state, loop.address), newest_only=True
)
def _chart(
    debugger: loopscope.Debugger, loop: LoopInFocus
) -> tuple[lanes.Chart, Matrix, list[MatrixRow | None]]:
    matrix = iteration_matrix(debugger, loop.address)
    chart, rows = matrix_chart(matrix)
    return chart, matrix, rows
