"""Two runs over the iterations of a loop on one scale: branches, and the course of a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import loopscope
from loopscope.comparison import Spot
from loopscope.errors import EngineError
from loopscope.ir import decode, iteration_range, iteration_words, significant
from loopscope_app.describe.both_runs import Drifted
from loopscope_app.describe.lane_chart import Block, Chart, Kind, Lane
from loopscope_app.describe.loop_execution import (
    PlaceInLoop,
    as_number,
    branches,
    iteration_count,
    number_at,
    place_in_loop,
)

MOST_COLUMNS = 256
_TAPE, _COURSE = 24, 52
"""Heights of lanes in pixels."""


def chart_of(drifted: Drifted, title: str, address: str, other_address: str) -> Chart | None:
    """Return the tapes of the loop around ``address`` and the course of the value there.

    ``other_address`` is the place in the other run. ``title`` describes the run here. Return None
    outside loops.
    """
    place = place_in_loop(address)
    if place is None:
        return None
    beside, spot = place_in_loop(other_address), drifted.spot_at(address)
    counts = [iteration_count(drifted.run, place.loop), 0]
    if drifted.other is not None and beside is not None:
        counts[1] = iteration_count(drifted.other, beside.loop)
    elif spot is not None:
        counts[1] = _common_count(drifted, spot)
    extent = max(*counts, 1)
    width = -(-extent // MOST_COLUMNS)
    taken = branches(drifted.run, place.loop)
    name = _colouring(taken, place.rest)
    taken_there = (
        branches(drifted.other, beside.loop) if drifted.other is not None and beside else {}
    )
    lanes = [
        _tape(title, counts[0], taken.get(name), width),
        _tape(drifted.title, counts[1], taken_there.get(name), width),
    ]
    course = _course(drifted, address, other_address, spot, width, extent)
    columns = range(0, extent, width)
    ticks = [f"{begin:,}" for begin in columns]
    what = f", coloured by {decode(name)}" if name else ""
    label = f"Iterations of {decode(place.loop.rpartition('/')[2])} in both runs{what}"
    return Chart(label, "iteration", len(ticks), [*lanes, *course], ticks=ticks)


def column_of(chart: Chart, address: str) -> float | None:
    """Return the column of the iteration that an address names."""
    place = place_in_loop(address)
    return float(place.iteration // width_of(chart)) if place is not None else None


def width_of(chart: Chart) -> int:
    """Return the number of iterations in a column of the tapes."""
    ticks = chart.ticks or ()
    return int(ticks[1].replace(",", "")) if len(ticks) > 1 else 1


def _colouring(taken: Mapping[str, np.ndarray], rest: str) -> str:
    """Return the If that colours the tape: the If at the address, else the first of the body."""
    label = rest.removeprefix("/body/").partition("/")[0].partition(":")[0]
    return label if label in taken else next(iter(taken), "")


def _common_count(drifted: Drifted, spot: Spot) -> int:
    """Return the number of iterations that a runtime and the run here have in common."""
    rows = drifted.drift.pairs[spot.pair].rows
    return int(np.count_nonzero(rows.execution == rows.execution[spot.row]))


def _tape(title: str, count: int, taken: np.ndarray | None, width: int) -> Lane:
    blocks: list[Block] = []
    for column, begin in enumerate(range(0, count, width)):
        end = min(begin + width, count)
        kind: Kind = "odd" if column % 2 else "even"
        where = iteration_words(begin) if end - begin == 1 else iteration_range(begin, end - 1)
        if taken is not None and len(taken) >= end:
            ways = set(taken[begin:end].tolist())
            if len(ways) == 1:
                kind = "then" if ways == {1} else "else"
            where += f": {'both branches' if len(ways) > 1 else kind}"
        text = f"{begin:,}" if width == 1 else ""
        blocks.append((float(column), float(column + 1), kind, 0, text, where))
    return Lane(title, blocks, _TAPE, strong=True)


def _course(
    drifted: Drifted,
    address: str,
    other_address: str,
    spot: Spot | None,
    width: int,
    extent: int,
) -> Sequence[Lane]:
    """Return the lane with both curves of a number; none for a tensor, which has no curve."""
    places = place_in_loop(address), place_in_loop(other_address)
    columns = range(0, extent, width)
    left = _numbers(drifted.run, places[0], columns)
    right = (
        _numbers(drifted.other, places[1], columns)
        if drifted.other is not None
        else _runtime_numbers(drifted, spot, columns)
    )
    known = [number for number in (*left, *right) if number is not None]
    if len(known) < 2:
        return _errors(drifted, spot, width, len(columns))
    low, high = min(known), max(known)
    blocks: list[Block] = [
        (column, column + 1, "none", 0, "", _both_words(begin, left[column], right[column]))
        for column, begin in enumerate(columns)
    ]
    name = decode(address.rpartition("/")[2].partition(":")[0])
    return [
        Lane(
            name,
            blocks,
            _COURSE,
            line=_levels(left, low, high),
            second_line=_levels(right, low, high),
            note=f"{name}: the run here as a line, the other run as a dashed line",
            verdict=f"{significant(low, 3)} to {significant(high, 3)}",
        )
    ]


def _errors(drifted: Drifted, spot: Spot | None, width: int, columns: int) -> Sequence[Lane]:
    """Return the lane with the relative error of a tensor in each iteration."""
    if spot is None:
        return ()
    pair = drifted.drift.pairs[spot.pair]
    inside = np.flatnonzero(pair.rows.execution == pair.rows.execution[spot.row])
    largest: list[float | None] = [None] * columns
    for row in inside.tolist():
        column, error = int(pair.rows.iteration[row]) // width, float(pair.deviations.relative[row])
        if np.isfinite(error) and 0 <= column < columns:
            largest[column] = max(error, largest[column] or 0.0)
    top = max((error for error in largest if error is not None), default=0.0)
    blocks: list[Block] = [
        (column, column + 1, "none", 0, "", f"{iteration_words(column * width)}: error {text}")
        for column, error in enumerate(largest)
        if error is not None and (text := significant(error, 2))
    ]
    name = decode(pair.one.rpartition("/")[2].partition(":")[0])
    line = [None if error is None else error / top if top else 0.0 for error in largest]
    verdict = f"up to {significant(top, 2)}"
    note = "Largest difference relative to the largest magnitude in the tensor"
    return [Lane(f"error of {name}", blocks, _COURSE, line=line, note=note, verdict=verdict)]


def _numbers(
    run: loopscope.Debugger, place: PlaceInLoop | None, columns: Sequence[int]
) -> list[float | None]:
    if place is None:
        return [None] * len(columns)
    count = iteration_count(run, place.loop)
    return [number_at(run, place.at(begin)) if begin < count else None for begin in columns]


def _runtime_numbers(
    drifted: Drifted, spot: Spot | None, columns: Sequence[int]
) -> list[float | None]:
    if spot is None:
        return [None] * len(columns)
    pair = drifted.drift.pairs[spot.pair]
    inside = np.flatnonzero(pair.rows.execution == pair.rows.execution[spot.row])
    row_of = dict(zip(pair.rows.iteration[inside].tolist(), inside.tolist(), strict=True))
    numbers: list[float | None] = []
    for begin in columns:
        try:
            value = drifted.there(Spot(spot.pair, row_of[begin])) if begin in row_of else None
        except EngineError:
            value = None
        numbers.append(None if value is None else as_number(np.asarray(value)))
    return numbers


def _levels(numbers: Sequence[float | None], low: float, high: float) -> list[float | None]:
    """Return numbers scaled to 0 to 1.

    >>> _levels([2.0, None, 4.0], 2.0, 4.0), _levels([3.0], 3.0, 3.0)
    ([0.0, None, 1.0], [0.5])
    """
    span = high - low
    return [
        None if number is None else round((number - low) / span, 4) if span else 0.5
        for number in numbers
    ]


def _both_words(iteration: int, left: float | None, right: float | None) -> str:
    texts = ["–" if number is None else significant(number) for number in (left, right)]
    return f"{iteration_words(iteration)}: {texts[0]} here, {texts[1]} there"
