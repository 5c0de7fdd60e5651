"""The iteration matrix of the loop in focus: a row per value, a column per iteration."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import Matrix, MatrixRow, iteration_matrix, step_of_cell
from loopscope_app.actions import moves, selection
from loopscope_app.describe.matrix_chart import chart_of, words_of
from loopscope_app.parts.run_views import until_a_loop_runs
from loopscope_app.parts.widgets import lanes, markup
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession, current

KEY = "matrix"

_charts: WeakKeyDictionary[
    loopscope.Debugger, tuple[object, lanes.Chart, Matrix, list[MatrixRow | None]]
] = WeakKeyDictionary()


def show(session: UserSession, loop: LoopInFocus | None, key: str = KEY) -> None:
    debugger = session.run.debugger
    if debugger is None or loop is None or not loop.iterations:
        until_a_loop_runs.show(
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
        _go(matrix, rows[pick.lane] if pick.lane >= 0 else None, pick)

    column = matrix.column_of(loop.current) if loop.current is not None else None
    markup.show(words_of(matrix, chart), "quiet")
    lanes.show(chart, key=key, cursor=column, wide=1, on_pick=picked)


def _go(matrix: Matrix, row: MatrixRow | None, pick: lanes.Pick) -> None:
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


def _chart(
    debugger: loopscope.Debugger, loop: LoopInFocus
) -> tuple[lanes.Chart, Matrix, list[MatrixRow | None]]:
    state = (debugger.steps, debugger.state, loop.address)
    cached = _charts.get(debugger)
    if cached is None or cached[0] != state:
        matrix = iteration_matrix(debugger, loop.address)
        chart, rows = chart_of(matrix)
        cached = _charts[debugger] = (state, chart, matrix, rows)
    return cached[1], cached[2], cached[3]
