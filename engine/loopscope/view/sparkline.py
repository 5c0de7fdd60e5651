"""A loop's carried number over its iterations in a few points: what a folded loop shows of its
run.
"""

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

MOST_POINTS = 48


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Heights from 0 to 100 at even distances; None where the number is not finite."""

    points: tuple[int | None, ...]
    now: float | None
    """Where the cursor's iteration is, from 0 to 1; None when it is outside of the loop."""
    not_finite: float | None
    """Where the first NaN or infinity is, from 0 to 1."""

    def as_data(self) -> list[object]:
        """Plain lists and numbers, for JSON."""
        return [list(self.points), self.now, self.not_finite]


def carried_number(body: Body) -> LayerId | None:
    """The Parameter whose values make the line: a carried one that may be one number; known
    before unknown shapes, counters last.
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
    """Whether a constant is added in every iteration, which makes a straight line."""
    source = next(iter(body.graph.sources.get(edge.from_layer, ())), None)
    if source is None or body.graph.by_id[source.layer].type != "Add":
        return False
    fed = [one.layer for one in body.graph.sources[source.layer] if one is not None]
    return edge.to_layer in fed and any(body.graph.by_id[one].constant is not None for one in fed)


def sparkline(run: Run, parameter: str, iteration: int | None) -> Sparkline | None:
    """The line of a carried Parameter, by its address; None where there is nothing to see yet.
    Reads about 50 values at most.
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

    def numbers_at(at: int) -> list[float]:
        return list(
            np.asarray(run.values.get(run.timeline, program, at, slot))
            .reshape(-1)[:2]
            .astype(np.float64)
            .tolist()
        )

    def number(at: int) -> float:
        return next(iter(numbers_at(at)), math.nan)

    if end - first < 2 or len(numbers_at(first)) != 1:
        return None

    rows = [
        int(at)
        for at in np.unique(
            np.linspace(first, end - 1, min(MOST_POINTS, end - first)).astype(np.int64)
        )
    ]
    found_there = [numbers_at(at) for at in rows]
    if any(len(one) != 1 for one in found_there):  # what is carried may change its shape on the way
        return None
    numbers = [one for (one,) in found_there]
    span = end - 1 - first
    odd = next((place for place, one in enumerate(numbers) if not math.isfinite(one)), None)
    found = None if odd is None else _first_odd(number, rows[odd - 1] if odd else first, rows[odd])
    now = None if iteration is None else min(1.0, iteration / span)
    return Sparkline(_heights(numbers), now, None if found is None else (found - first) / span)


def _first_odd(number: Callable[[int], float], finite: int, odd: int) -> int:
    """Between a finite and a not finite row, as a number that is once not finite mostly stays
    so.
    """
    while odd - finite > 1:
        middle = (finite + odd) // 2
        if math.isfinite(number(middle)):
            finite = middle
        else:
            odd = middle
    return odd


def _heights(numbers: list[float]) -> tuple[int | None, ...]:
    finite = [one for one in numbers if math.isfinite(one)]
    if not finite:
        return (None,) * len(numbers)
    least, most = min(finite), max(finite)
    height = most - least
    return tuple(
        None
        if not math.isfinite(one)
        else 50
        if not height or not math.isfinite(height)
        else round((one - least) / height * 100)
        for one in numbers
    )
