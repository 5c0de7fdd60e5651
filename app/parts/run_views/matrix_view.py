"""The iteration matrix of the loop in focus: a row per value, a column per iteration; a click goes to the cell."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import engine
from app.actions import moves, selection
from app.parts.widgets import lanes, markup
from app.state.focus import LoopInFocus
from app.state.user_session import Session, current
from engine.errors import EngineError
from engine.explain import Matrix, MatrixCell, MatrixRow, iteration_matrix, step_of_cell
from engine.ir import iteration_words
from engine.view import value_preview

KEY = "matrix"
WORDS_UP_TO = 60
"""Columns; beyond that a cell has no room for words."""

_charts: WeakKeyDictionary[engine.Debugger, tuple[object, lanes.Chart, Matrix, list[MatrixRow | None]]] = WeakKeyDictionary()


def show(session: Session, loop: LoopInFocus | None) -> None:
    debugger = session.run.debugger
    if debugger is None or loop is None or not loop.iterations:
        markup.show("Once a loop runs, its values are laid out here: a row for each value, a column for each iteration.", "quiet")
        return
    try:
        chart, found, rows = _chart(debugger, loop)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return

    def picked(pick: lanes.Pick) -> None:
        _go(found, rows[pick.lane] if pick.lane >= 0 else None, pick)

    at = found.column_of(loop.current) if loop.current is not None else None
    markup.show(_words(found, chart), "quiet")
    lanes.show(chart, key=KEY, cursor=at, wide=1, on_pick=picked)


def _go(found: Matrix, row: MatrixRow | None, pick: lanes.Pick) -> None:
    """To the moment when the value of a cell was computed, with its node pinned; from a name only the pin."""
    debugger = current().run.debugger
    if debugger is None:
        return
    iteration = found.iterations[int(pick.at)]
    if not pick.on_name:
        begin = debugger.timeline.step_at(found.program, found.first_row + iteration, 0)
        moves.seek(begin if row is None else step_of_cell(debugger, found, row, iteration))
    if row is not None:
        selection.select(f"{found.program.address}/{row.label}")


def _chart(debugger: engine.Debugger, loop: LoopInFocus) -> tuple[lanes.Chart, Matrix, list[MatrixRow | None]]:
    state = (debugger.steps, debugger.state, loop.address)
    kept = _charts.get(debugger)
    if kept is None or kept[0] != state:
        found = iteration_matrix(debugger, loop.address)
        chart, rows = chart_of(found)
        kept = _charts[debugger] = (state, chart, found, rows)
    return kept[1], kept[2], kept[3]


def chart_of(found: Matrix) -> tuple[lanes.Chart, list[MatrixRow | None]]:
    """The picture of a matrix, and the row that each of its lanes shows."""
    drawn: list[lanes.Lane] = []
    rows: list[MatrixRow | None] = []
    marks: list[lanes.Mark] = []
    for row in found.rows:
        marks += _marks(found, row, len(drawn))
        drawn.append(_lane(found, row))
        rows.append(row)
        ribbon = _ribbon(row)
        if ribbon is not None:
            drawn.append(ribbon)
            rows.append(row)
    ticks = [f"{iteration:,}" for iteration in found.iterations]
    label = f"{len(found.rows)} values over {found.total:,} iterations"
    return lanes.Chart(label, "iteration", max(len(found.iterations), 1), drawn, marks, ticks), rows


_ROLES = {"carried": "carried from one iteration to the next", "iteration": "the iteration number", "slice": "a part of a sliced input"}


def _lane(found: Matrix, row: MatrixRow) -> lanes.Lane:
    numbers = [cell.number if cell else None for cell in row.cells]
    low, high = _ends(numbers)
    words = len(found.iterations) <= WORDS_UP_TO
    blocks = [_block(found, position, row, cell, low, high, words) for position, cell in enumerate(row.cells)]
    steady = row.role == "branch" or low == high
    line = None if steady else [None if one is None else round((one - low) / (high - low), 3) for one in numbers]
    note = _ROLES.get(row.role, "decides whether the loop goes on" if row.role == "condition" else "")
    return lanes.Lane(row.name, blocks, line=line, strong=row.role == "carried", note=note, pick=True)


def _ends(numbers: list[float | None]) -> tuple[float, float]:
    known = [one for one in numbers if one is not None]
    return min(known, default=0.0), max(known, default=0.0)


def level(number: float, low: float, high: float) -> float:
    """How strongly a number is shown: from 0 to 1 between the ends, or from -1 to 1 round zero where some are negative.

    >>> level(5, 0, 10), level(-4, -4, 8), level(3, 3, 3)
    (0.5, -0.5, 0.25)
    """
    if low == high:
        return 0.25
    return number / max(-low, high) if low < 0 else (number - low) / (high - low)


def _block(found: Matrix, position: int, row: MatrixRow, cell: MatrixCell | None, low: float, high: float, words: bool) -> lanes.Block:
    begin, end = float(position), float(position + 1)
    iteration = iteration_words(found.iterations[position])
    if cell is None:
        return (begin, end, "idle", 0, "", f"{iteration}: not computed")
    if row.role == "branch":
        branch: lanes.Kind = "then" if cell.value == "then" else "else"
        return (begin, end, branch, 0, str(cell.value) if words else "", f"{iteration}: {cell.value}")
    shown = value_preview(cell.value)
    kind: lanes.Kind = "nan" if cell.odd else "idle" if cell.number is None else "heat"
    strength = 0.0 if cell.number is None else round(level(cell.number, low, high), 3)
    mean = f" · mean {cell.number:.5g}" if cell.number is not None and cell.shape and cell.shape != (1,) else ""
    return (begin, end, kind, strength, shown if words else "", f"{iteration}: {shown}{mean}")


def _ribbon(row: MatrixRow) -> lanes.Lane | None:
    """A narrow lane of shapes; None where the shape never changes."""
    shapes = [cell.shape if cell else None for cell in row.cells]
    known = list(dict.fromkeys(shape for shape in shapes if shape is not None))
    if len(known) < 2:
        return None
    blocks: list[lanes.Block] = []
    for position, shape in enumerate(shapes):
        if shape is None:
            continue
        words = f"[{','.join(map(str, shape))}]"
        number = known.index(shape)
        if blocks and blocks[-1][3] == number and blocks[-1][1] == position:
            blocks[-1] = (blocks[-1][0], position + 1.0, "shape", number, words, f"shape {words}")
        else:
            blocks.append((float(position), position + 1.0, "shape", number, words, f"shape {words}"))
    return lanes.Lane("shape", blocks, height=14, note=f"{len(known)} shapes of {row.name}")


def _marks(found: Matrix, row: MatrixRow, lane: int) -> list[lanes.Mark]:
    marks: list[lanes.Mark] = []
    if row.first_not_finite is not None:
        first = "first NaN or infinity" if row.is_whole else "first NaN or infinity of the iterations shown"
        words = f"{first}: {iteration_words(row.first_not_finite)}"
        marks.append(lanes.Mark(found.column_of(row.first_not_finite), "nan", words, lane))
    elif row.first_change is not None and row.first_change > 1:
        marks.append(lanes.Mark(found.column_of(row.first_change), "now", f"first change: {iteration_words(row.first_change)}", lane))
    if row.fixed_from is not None and row.first_change is not None:
        at = found.column_of(row.fixed_from)
        marks.append(lanes.Mark(at, "fixed", f"stays the same from {iteration_words(row.fixed_from)} on", lane, len(found.iterations)))
    return marks


_LEGEND = {"nan": "first NaN or infinity", "now": "first change", "fixed": "stays the same from there on"}


def _words(found: Matrix, chart: lanes.Chart) -> str:
    kinds = {mark.kind for mark in chart.marks}
    parts = [f'<i class="key mark {kind}"></i>{words}' for kind, words in _LEGEND.items() if kind in kinds]
    if found.total > len(found.iterations):
        parts.append(f"{len(found.iterations)} of {found.total:,} iterations, evenly chosen")
    if found.left_out:
        parts.append(f"{found.left_out} more values are left out")
    if not found.complete:
        parts.append("what takes too long to compute again is left empty")
    return "&ensp;".join(parts) or "Click a cell to go to the moment when it was computed; hover to see more."
