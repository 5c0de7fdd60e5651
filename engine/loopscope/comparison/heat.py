"""A drift as one picture: loops, or the values of one loop, by iterations, each cell with the
largest error that falls into it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.comparison.drift import Drift, MatchedSlots, Moment
from loopscope.debug.suggestions import value_names
from loopscope.executor.plan.plan import Program

OUTSIDE = ""
"""In place of a loop: the values that lie in none."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One value of one iteration of a drift."""

    pair: int
    """Number of the pair in ``Drift.pairs``."""
    row: int
    """Number of the row in it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """All that falls into one row and column of the picture."""

    error: float
    """The largest relative error; infinite where one side is not finite."""
    spot: Spot
    """Where it is."""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One row of the picture: a loop, or a value."""

    address: str
    """Without iterations; ``OUTSIDE`` for the values that lie in no loop."""
    cells: tuple[Cell | None, ...]
    """One for each column; None where nothing was compared."""


@dataclass(frozen=True, slots=True)
class Heat:
    """The picture, its iterations in at most so many columns as were asked for."""

    rows: tuple[HeatRow, ...]
    columns: tuple[tuple[int, int], ...]
    """The first iteration of each, and the one after its last."""


def loops(drift: Drift) -> tuple[str, ...]:
    """The bodies of loops that values were compared in, by their addresses, in the order of the
    graphs.
    """
    return tuple(
        dict.fromkeys(body for pair in drift.pairs if (body := body_of(pair.program)) != OUTSIDE)
    )


def body_of(program: Program) -> str:
    """The body of the innermost loop that a graph is in; ``OUTSIDE`` for one that is in none."""
    return next((one.address for one in program.around() if one.loop is not None), OUTSIDE)


def heat_of_loops(drift: Drift, most: int) -> Heat:
    """A row for each loop, and one for what lies in none, over at most ``most`` columns."""
    grouped: dict[str, list[int]] = {}
    for number, pair in enumerate(drift.pairs):
        grouped.setdefault(body_of(pair.program), []).append(number)
    return _heat(drift, tuple(grouped.items()), most)


def heat_of_values(drift: Drift, body: str, most: int) -> Heat:
    """A row for each value of one loop, the branches in its body too, over at most ``most``
    columns.
    """
    mine = (
        (number, pair) for number, pair in enumerate(drift.pairs) if body_of(pair.program) == body
    )
    return _heat(drift, [(pair.one, [number]) for number, pair in mine], most)


def _heat(drift: Drift, grouped: Sequence[tuple[str, Sequence[int]]], most: int) -> Heat:
    asked = [number for _, numbers in grouped for number in numbers]
    total = max(
        (int(drift.pairs[number].rows.iteration.max(initial=-1)) + 1 for number in asked), default=0
    )
    width = max(1, math.ceil(total / most))
    columns = tuple((begin, min(begin + width, total)) for begin in range(0, max(total, 1), width))
    rows = (
        HeatRow(address, tuple(_cells(drift.pairs, numbers, len(columns), width)))
        for address, numbers in grouped
    )
    return Heat(tuple(rows), columns)


def _cells(
    pairs: Sequence[MatchedSlots], numbers: Sequence[int], count: int, width: int
) -> Iterator[Cell | None]:
    """What lies in no loop has one cell, the first."""
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
    """What the value of a spot was computed from in its own graph, as far as it was compared:
    names, and the relative error of each.
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
    sides = {one.one: one for one in drift.pairs if one.program is pair.program}
    return tuple(
        (name, float(sides[place].deviations.relative[spot.row]))
        for place, name in read.items()
        if place in sides
    )


def spot_of(drift: Drift, pair: MatchedSlots, moment: Moment) -> Spot:
    """Where a pair's first or worst moment is."""
    errors = pair.deviations.relative
    row = (
        int(np.argmax(errors))
        if moment is not pair.first
        else int(np.argmax(~(errors <= drift.tolerance)))
    )
    return Spot(drift.pairs.index(pair), row)
