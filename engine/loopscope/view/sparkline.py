"""Sparklines of folded loops: a carried number over the iterations, in a few points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.plan import LoopRegion
from loopscope.ir.address import Address
from loopscope.ir.model import BackEdge, Body, LayerId

MAX_POINTS = 48


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Heights from 0 to 100 at equal distances; None for numbers that are not finite."""

    points: tuple[int | None, ...]
    now: float | None
    """Position of the cursor's iteration, 0 to 1; None outside of the loop."""
    not_finite: float | None
    """Position of the first NaN or infinity, 0 to 1."""

    def as_data(self) -> list[object]:
        """Return the sparkline as lists and numbers, for JSON."""
        return [list(self.points), self.now, self.not_finite]


def carried_number(body: Body) -> LayerId | None:
    """Return the carried Parameter for the sparkline: one with one element, or of unknown shape.

    Counters rank last, then unknown shapes, then integers.
    """
    best: tuple[tuple[bool, bool, bool], LayerId] | None = None
    for edge in body.back_edges:
        node = body.graph.by_id.get(edge.to_layer)
        if node is None or not node.outputs:
            continue
        port = node.outputs[0]
        known = port.shape.is_static and math.prod(port.shape.lengths) == 1
        if (
            port.element_type is None
            or not (port.element_type.is_float or port.element_type.is_integer)
            or not (known or port.shape.rank is None)
        ):
            continue
        rank = (_is_counter(body, edge), not known, not port.element_type.is_float)
        if best is None or rank < best[0]:
            best = rank, edge.to_layer
    return best[1] if best else None


def _is_counter(body: Body, edge: BackEdge) -> bool:
    """Return True if the carried value grows by a constant, which makes a straight line."""
    source = next(iter(body.graph.sources.get(edge.from_layer, ())), None)
    if source is None or body.graph.by_id[source.layer].type != "Add":
        return False
    sources = [
        source_ref.layer
        for source_ref in body.graph.sources[source.layer]
        if source_ref is not None
    ]
    return edge.to_layer in sources and any(
        body.graph.by_id[source_ref].constant is not None for source_ref in sources
    )


def sparkline(run: Run, parameter: str, iteration: int | None) -> Sparkline | None:
    """Return the sparkline of a carried Parameter at an address, or None if there is none yet.

    It reads about 50 values at most.
    """
    try:
        program, row = run.rows_of(Address.parse(parameter))
    except EngineError:
        return None
    region = program.region
    layer = program.layer_of_label.get(parameter.rpartition("/")[2])
    if not isinstance(region, LoopRegion) or layer is None:
        return None
    first, end = run.timeline.executions.rows_of(
        region, run.timeline.executions.parent_row(program, row)[0]
    )
    slot = program.slots[layer, 0]

    def numbers_at(row_index: int) -> list[float]:
        return list(
            np.asarray(run.values.get(run.timeline, program, row_index, slot))
            .reshape(-1)[:2]
            .astype(np.float64)
            .tolist()
        )

    def number(row_index: int) -> float:
        return next(iter(numbers_at(row_index)), math.nan)

    if end - first < 2 or len(numbers_at(first)) != 1:
        return None

    rows = [
        int(row_index)
        for row_index in np.unique(
            np.linspace(first, end - 1, min(MAX_POINTS, end - first)).astype(np.int64)
        )
    ]
    samples = [numbers_at(row_index) for row_index in rows]
    if any(len(value) != 1 for value in samples):  # a carried value may change its shape
        return None
    numbers = [value for (value,) in samples]
    span = end - 1 - first
    index_not_finite = next(
        (index for index, value in enumerate(numbers) if not math.isfinite(value)), None
    )
    first_not_finite = (
        None
        if index_not_finite is None
        else _first_not_finite(
            number,
            rows[index_not_finite - 1] if index_not_finite else first,
            rows[index_not_finite],
        )
    )
    now = None if iteration is None else min(1.0, iteration / span)
    return Sparkline(
        _heights(numbers),
        now,
        None if first_not_finite is None else (first_not_finite - first) / span,
    )


def _first_not_finite(number: Callable[[int], float], finite: int, not_finite: int) -> int:
    """Bisect for the first row that is not finite, assuming that later rows are not finite
    either.
    """
    while not_finite - finite > 1:
        middle = (finite + not_finite) // 2
        if math.isfinite(number(middle)):
            finite = middle
        else:
            not_finite = middle
    return not_finite


def _heights(numbers: list[float]) -> tuple[int | None, ...]:
    finite = [value for value in numbers if math.isfinite(value)]
    if not finite:
        return (None,) * len(numbers)
    lower, upper = min(finite), max(finite)
    height = upper - lower
    return tuple(
        None
        if not math.isfinite(value)
        else 50
        if not height or not math.isfinite(height)
        else round((value - lower) / height * 100)
        for value in numbers
    )
