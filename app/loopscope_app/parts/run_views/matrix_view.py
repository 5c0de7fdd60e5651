"""The iteration matrix of the loop in focus: a row per value, a column per iteration; a click
goes to the cell.
"""

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


def show(session: UserSession, loop: LoopInFocus | None) -> None:
    debugger = session.run.debugger
    if debugger is None or loop is None or not loop.iterations:
        until_a_loop_runs.show(
            session,
            "its values are laid out here: a row for each value, a column for each iteration.",
        )
        return
    try:
        chart, found, rows = _chart(debugger, loop)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return

    def picked(pick: lanes.Pick) -> None:
        _go(found, rows[pick.lane] if pick.lane >= 0 else None, pick)

    at = found.column_of(loop.current) if loop.current is not None else None
    markup.show(words_of(found, chart), "quiet")
    lanes.show(chart, key=KEY, cursor=at, wide=1, on_pick=picked)


def _go(found: Matrix, row: MatrixRow | None, pick: lanes.Pick) -> None:
    """To the moment when the value of a cell was computed, with its node pinned; from a name
    only the pin.
    """
    debugger = current().run.debugger
    if debugger is None:
        return
    iteration = found.iterations[int(pick.at)]
    if not pick.on_name:
        begin = debugger.timeline.step_at(found.program, found.first_row + iteration, 0)
        moves.seek(begin if row is None else step_of_cell(debugger, found, row, iteration))
    if row is not None:
        selection.select(f"{found.program.address}/{row.label}")


def _chart(
    debugger: loopscope.Debugger, loop: LoopInFocus
) -> tuple[lanes.Chart, Matrix, list[MatrixRow | None]]:
    state = (debugger.steps, debugger.state, loop.address)
    kept = _charts.get(debugger)
    if kept is None or kept[0] != state:
        found = iteration_matrix(debugger, loop.address)
        chart, rows = chart_of(found)
        kept = _charts[debugger] = (state, chart, found, rows)
    return kept[1], kept[2], kept[3]
