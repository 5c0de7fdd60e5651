"""The iteration matrix of a loop as lanes: a row per value, a column per iteration."""

from __future__ import annotations

from loopscope.explain import Matrix, MatrixCell, MatrixRow
from loopscope.ir import iteration_words, significant
from loopscope.view import value_preview
from loopscope_app.describe.lane_chart import Block, Chart, Kind, Lane, Mark

WORDS_UP_TO = 60
"""Number of columns up to which cells have room for text."""


def chart_of(matrix: Matrix) -> tuple[Chart, list[MatrixRow | None]]:
    """Return the chart of a matrix, and the row that each of its lanes shows."""
    lanes: list[Lane] = []
    rows: list[MatrixRow | None] = []
    marks: list[Mark] = []
    for row in matrix.rows:
        marks += _marks(matrix, row, len(lanes))
        lanes.append(_lane(matrix, row))
        rows.append(row)
        ribbon = _ribbon(row)
        if ribbon is not None:
            lanes.append(ribbon)
            rows.append(row)
    ticks = [f"{iteration:,}" for iteration in matrix.iterations]
    label = f"{len(matrix.rows)} values over {matrix.total:,} iterations"
    return Chart(label, "iteration", max(len(matrix.iterations), 1), lanes, marks, ticks), rows


_ROLES = {
    "carried": "carried from one iteration to the next",
    "iteration": "the iteration number",
    "slice": "a part of a sliced input",
}


def _lane(matrix: Matrix, row: MatrixRow) -> Lane:
    numbers = [cell.number if cell else None for cell in row.cells]
    low, high = _ends(numbers)
    words = len(matrix.iterations) <= WORDS_UP_TO
    blocks = [
        _block(matrix, position, row, cell, low, high, words)
        for position, cell in enumerate(row.cells)
    ]
    steady = row.role == "branch" or low == high
    line = (
        None
        if steady
        else [
            None if number is None else round((number - low) / (high - low), 3)
            for number in numbers
        ]
    )
    note = _ROLES.get(
        row.role, "decides whether the loop continues" if row.role == "condition" else ""
    )
    return Lane(row.name, blocks, line=line, strong=row.role == "carried", note=note, pick=True)


def _ends(numbers: list[float | None]) -> tuple[float, float]:
    known = [number for number in numbers if number is not None]
    return min(known, default=0.0), max(known, default=0.0)


def level(number: float, low: float, high: float) -> float:
    """Return the strength of a number: 0 to 1 between the ends, or -1 to 1 around zero if some are
    negative.

    >>> level(5, 0, 10), level(-4, -4, 8), level(3, 3, 3)
    (0.5, -0.5, 0.25)
    """
    if low == high:
        return 0.25
    return number / max(-low, high) if low < 0 else (number - low) / (high - low)


def _block(
    matrix: Matrix,
    position: int,
    row: MatrixRow,
    cell: MatrixCell | None,
    low: float,
    high: float,
    has_text: bool,
) -> Block:
    begin, end = float(position), float(position + 1)
    iteration = iteration_words(matrix.iterations[position])
    if cell is None:
        return (begin, end, "idle", 0, "", f"{iteration}: not computed")
    if row.role == "branch":
        branch: Kind = "then" if cell.value == "then" else "else"
        return (
            begin,
            end,
            branch,
            0,
            str(cell.value) if has_text else "",
            f"{iteration}: {cell.value}",
        )
    text = value_preview(cell.value)
    kind: Kind = "nan" if cell.odd else "idle" if cell.number is None else "heat"
    strength = 0.0 if cell.number is None else round(level(cell.number, low, high), 3)
    mean = (
        f" · mean {significant(cell.number, 5)}"
        if cell.number is not None and cell.shape and cell.shape != (1,)
        else ""
    )
    return (begin, end, kind, strength, text if has_text else "", f"{iteration}: {text}{mean}")


def _ribbon(row: MatrixRow) -> Lane | None:
    """Return a narrow lane of shapes, or None if the shape never changes."""
    shapes = [cell.shape if cell else None for cell in row.cells]
    known = list(dict.fromkeys(shape for shape in shapes if shape is not None))
    if len(known) < 2:
        return None
    blocks: list[Block] = []
    for position, shape in enumerate(shapes):
        if shape is None:
            continue
        words = f"[{','.join(map(str, shape))}]"
        number = known.index(shape)
        if blocks and blocks[-1][3] == number and blocks[-1][1] == position:
            blocks[-1] = (blocks[-1][0], position + 1.0, "shape", number, words, f"shape {words}")
        else:
            blocks.append(
                (float(position), position + 1.0, "shape", number, words, f"shape {words}")
            )
    return Lane("shape", blocks, height=14, note=f"{len(known)} shapes of {row.name}")


def _marks(matrix: Matrix, row: MatrixRow, lane: int) -> list[Mark]:
    marks: list[Mark] = []
    if row.first_not_finite is not None:
        first = (
            "first NaN or infinity"
            if row.is_whole
            else "first NaN or infinity of the iterations shown"
        )
        words = f"{first}: {iteration_words(row.first_not_finite)}"
        marks.append(Mark(matrix.column_of(row.first_not_finite), "nan", words, lane))
    elif row.first_change is not None and row.first_change > 1:
        marks.append(
            Mark(
                matrix.column_of(row.first_change),
                "now",
                f"first change: {iteration_words(row.first_change)}",
                lane,
            )
        )
    if row.fixed_from is not None and row.first_change is not None:
        column = matrix.column_of(row.fixed_from)
        marks.append(
            Mark(
                column,
                "fixed",
                f"unchanged from {iteration_words(row.fixed_from)} on",
                lane,
                len(matrix.iterations),
            )
        )
    return marks


_LEGEND = {
    "nan": "first NaN or infinity",
    "now": "first change",
    "fixed": "unchanged from there on",
}


def words_of(matrix: Matrix, chart: Chart) -> str:
    """Return the text above the chart as HTML: its marks, and what the chart omits."""
    kinds = {mark.kind for mark in chart.marks}
    parts = [
        f'<i class="key mark {kind}"></i>{words}'
        for kind, words in _LEGEND.items()
        if kind in kinds
    ]
    if matrix.total > len(matrix.iterations):
        parts.append(f"{len(matrix.iterations)} of {matrix.total:,} iterations, evenly chosen")
    if matrix.left_out:
        parts.append(f"{matrix.left_out} more values are left out")
    if not matrix.complete:
        parts.append("cells that take too long to recompute are empty")
    return (
        "&ensp;".join(parts)
        or "Click a cell to go to the moment at which it was computed; hover to see more."
    )
