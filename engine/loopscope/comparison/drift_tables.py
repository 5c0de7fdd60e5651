"""Drift as a heat map and as a table.

The heat map shows loops, or the values of one loop, by iteration, with the largest error in each
cell. The table has every value of every iteration, for other tools.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loopscope.comparison.drift import Drift
from loopscope.comparison.matched_slots import MatchedSlots, Moment
from loopscope.debug.lookup import value_names
from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.plan import Program
from loopscope.explain.export import write_csv
from loopscope.replaced_file import replaced_file

OUTSIDE = ""
"""Address used for the values outside all loops."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One value of one iteration of a drift."""

    pair: int
    """Index into ``Drift.pairs``."""
    row: int
    """Index of the row in the pair."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Deviations in one row and column of the heat map."""

    error: float
    """Largest relative error; infinite if one side is not finite."""
    spot: Spot
    """Position of the largest error."""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One row of the heat map: a loop or a value."""

    address: str
    """Address without iterations; ``OUTSIDE`` for the values outside all loops."""
    cells: tuple[Cell | None, ...]
    """One cell per column; None if nothing was compared."""


@dataclass(frozen=True, slots=True)
class Heat:
    """A heat map with its iterations in a limited number of columns."""

    rows: tuple[HeatRow, ...]
    columns: tuple[tuple[int, int], ...]
    """First iteration and end (exclusive) of each column."""


def loops(drift: Drift) -> tuple[str, ...]:
    """Return the addresses of the loop bodies with compared values, in the order of the graphs."""
    return tuple(
        dict.fromkeys(body for pair in drift.pairs if (body := body_of(pair.program)) != OUTSIDE)
    )


def body_of(program: Program) -> str:
    """Return the body address of the innermost loop around a graph; ``OUTSIDE`` if there is
    none.
    """
    return next((graph.address for graph in program.around() if graph.loop is not None), OUTSIDE)


def heat_of_loops(drift: Drift, limit: int) -> Heat:
    """Return a row per loop, and one for the values outside loops, in at most ``limit`` columns."""
    grouped: dict[str, list[int]] = {}
    for number, pair in enumerate(drift.pairs):
        grouped.setdefault(body_of(pair.program), []).append(number)
    return _heat(drift, tuple(grouped.items()), limit)


def heat_of_values(drift: Drift, body: str, limit: int) -> Heat:
    """Return a row per value of a loop, including branches in its body, in at most ``limit``
    columns.
    """
    selected = (
        (number, pair) for number, pair in enumerate(drift.pairs) if body_of(pair.program) == body
    )
    return _heat(drift, [(pair.one, [number]) for number, pair in selected], limit)


def _heat(drift: Drift, grouped: Sequence[tuple[str, Sequence[int]]], limit: int) -> Heat:
    numbers_shown = [number for _, numbers in grouped for number in numbers]
    total = max(
        (int(drift.pairs[number].rows.iteration.max(initial=-1)) + 1 for number in numbers_shown),
        default=0,
    )
    width = max(1, math.ceil(total / limit))
    columns = tuple((begin, min(begin + width, total)) for begin in range(0, max(total, 1), width))
    rows = (
        HeatRow(address, tuple(_cells(drift.pairs, numbers, len(columns), width)))
        for address, numbers in grouped
    )
    return Heat(tuple(rows), columns)


def _cells(
    pairs: Sequence[MatchedSlots], numbers: Sequence[int], count: int, width: int
) -> Iterator[Cell | None]:
    """Yield the cells of a row; values outside loops fill the first cell only."""
    largest: list[Cell | None] = [None] * count
    for number in numbers:
        errors = pairs[number].deviations.relative
        columns = np.maximum(pairs[number].rows.iteration, 0) // width
        order = np.lexsort((errors, columns))
        last = np.flatnonzero(np.diff(columns[order], append=-1))
        for place in order[last].tolist():
            column, error = int(columns[place]), float(errors[place])
            known = largest[column]
            if known is None or error > known.error:
                largest[column] = Cell(error, Spot(number, place))
    yield from largest


def operands(drift: Drift, spot: Spot) -> tuple[tuple[str, float], ...]:
    """Return name and relative error of the compared values that a spot's value was computed from.

    Only values of the same graph are returned.
    """
    pair = drift.pairs[spot.pair]
    if not pair.position:
        return ()  # a Parameter
    names = value_names(pair.program)
    read = {
        f"{pair.program.address}/{names[slot]}": names[slot]
        for slot in pair.program.instructions[pair.position - 1].inputs
        if slot in names
    }
    sides = {
        candidate.one: candidate for candidate in drift.pairs if candidate.program is pair.program
    }
    return tuple(
        (name, float(sides[place].deviations.relative[spot.row]))
        for place, name in read.items()
        if place in sides
    )


def spot_of(drift: Drift, pair: MatchedSlots, moment: Moment) -> Spot:
    """Return the position of a pair's first or worst moment."""
    errors = pair.deviations.relative
    row = (
        int(np.argmax(errors))
        if moment is not pair.first
        else int(np.argmax(~(errors <= drift.tolerance)))
    )
    return Spot(drift.pairs.index(pair), row)


FORMATS = (".parquet", ".csv")


def write_table(result: Drift, run: Run, path: str | Path) -> int:
    """Write a row per matched value and iteration; return the number of rows.

    Columns: ``address`` in the first run, ``other`` (address in the second model), ``matched``
    (name, structure or shape), ``iteration`` of the innermost loop (empty outside loops),
    ``absolute``, ``relative``, ``cosine``. ``run`` is the first run. Raise ``EngineError`` unless
    the file's ending is .parquet or .csv.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        ending = target.suffix or "a file without ending"
        raise EngineError(f"a drift is written as {' or '.join(FORMATS)}, not as {ending}")
    import pandas as pd  # imported here: it takes half a second, and only tables need it

    columns = ("address", "other", "matched", "iteration", "absolute", "relative", "cosine")
    frame = pd.DataFrame(_rows(result, run), columns=list(columns)).astype({"iteration": "Int64"})
    if target.suffix.lower() == ".csv":
        write_csv(frame, target)
    else:
        with replaced_file(target) as file:
            frame.to_parquet(file, index=False)
    return len(frame)


def _rows(
    result: Drift, run: Run
) -> Iterator[tuple[str, str, str, int | None, float, float, float]]:
    for pair in result.pairs:
        name = pair.one.rpartition("/")[2]
        numbers = (pair.deviations.absolute, pair.deviations.relative, pair.deviations.cosine)
        places = zip(
            pair.rows.left.tolist(),
            pair.rows.iteration.tolist(),
            *(column.tolist() for column in numbers),
            strict=True,
        )
        for row, iteration, absolute, relative, cosine in places:
            address = f"{run.timeline.address(pair.program, row)}/{name}"
            yield (
                address,
                pair.other,
                pair.how,
                iteration if iteration >= 0 else None,
                absolute,
                relative,
                cosine,
            )
