"""Charts of lanes: blocks over one axis, with marks; the browser's data of iterations or steps.

The iteration matrix of a loop is such a chart: a lane per value, a column per iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from loopscope.errors import neutral
from loopscope.explain import Matrix, MatrixCell, MatrixRow
from loopscope.ir import iteration_words, significant
from loopscope.object_cache import cache_by_object
from loopscope.view import value_preview

LONGEST_NAME = 80
Kind = Literal["none", "idle", "even", "odd", "then", "else", "heat", "nan", "failed", "shape"]
Block = (
    tuple[float, float, Kind, float, str, str]
    | tuple[float, float, Kind, float, str, str, int, int]
)
"""Begin, end, kind, level, text inside, tooltip; optionally the row and the number of rows in the
lane.

The level is heat from -1 to 1, or the number of a shape. Rows count from the top.
"""


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of blocks."""

    name: str
    blocks: Sequence[Block]
    height: int = 22
    line: Sequence[float | None] | None = None
    """Levels from 0 to 1, one for each unit of the axis, drawn as a curve."""
    second_line: Sequence[float | None] | None = None
    """Levels of a second run, drawn as a dashed curve."""
    strong: bool = False
    note: str = ""
    """Tooltip of the name."""
    pick: bool = False
    """True if a click on the name has an effect."""
    verdict: str = ""
    """Short text below the name, if the lane has room for two lines."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark at a position: in one lane, or across all (``lane`` -1)."""

    at: float
    kind: Literal["nan", "stop", "now", "fixed"]
    text: str
    lane: int = -1
    until: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Chart:
    """A chart."""

    label: str
    """Text alternative for users who cannot see the chart."""
    unit: str
    extent: float
    lanes: Sequence[Lane]
    marks: Sequence[Mark] = field(default_factory=tuple[Mark, ...])
    ticks: Sequence[str] | None = None
    """A name for each unit; None for numbers from ``first`` on."""
    first: int = 0


@cache_by_object(newest_only=True)
def message(chart: Chart, key: str) -> dict[str, Any]:
    """Return the browser's data of a chart, computed once; names of the model are cut and
    escaped.
    """
    # Not `asdict`, which copies every block.
    lanes = [
        _fields(lane) | {"name": neutral(lane.name, LONGEST_NAME), "note": neutral(lane.note, 200)}
        for lane in chart.lanes
    ]
    marks = [_fields(mark) for mark in chart.marks]
    return _fields(chart) | {"lanes": lanes, "marks": marks, "key": key}


def _fields(item: Chart | Lane | Mark) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in fields(item)}


WORDS_UP_TO = 60
"""Number of columns up to which cells have room for text."""


def matrix_chart(matrix: Matrix) -> tuple[Chart, list[MatrixRow | None]]:
    """Return the chart of a matrix, and the row that each of its lanes shows."""
    lanes: list[Lane] = []
    rows: list[MatrixRow | None] = []
    marks: list[Mark] = []
    for row in matrix.rows:
        marks += _cell_marks(matrix, row, len(lanes))
        lanes.append(_value_lane(matrix, row))
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


def _value_lane(matrix: Matrix, row: MatrixRow) -> Lane:
    numbers = [cell.number if cell else None for cell in row.cells]
    low, high = _low_and_high(numbers)
    words = len(matrix.iterations) <= WORDS_UP_TO
    blocks = [
        _cell_block(matrix, position, row, cell, low, high, words)
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


def _low_and_high(numbers: list[float | None]) -> tuple[float, float]:
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


def _cell_block(
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


def _cell_marks(matrix: Matrix, row: MatrixRow, lane: int) -> list[Mark]:
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


def matrix_words(matrix: Matrix, chart: Chart) -> str:
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
