"""A value of two runs in all compared rows, and the moments at which it differs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from loopscope.comparison.compared_values import ComparedValues
from loopscope.comparison.deviation import Deviations
from loopscope.comparison.divergence import AlignedRows
from loopscope.comparison.growth import Growth, growth
from loopscope.comparison.matching import How
from loopscope.debug.run import Run
from loopscope.executor.plan.plan import Program
from loopscope.ir.address import decode


@dataclass(frozen=True, slots=True)
class Moment:
    """Deviation of one value in one iteration."""

    address: str
    """Address in the first run, such as ``main/loop[12]/body/delta``."""
    step: int
    """Step of the first run after which the value is available."""
    iteration: int | None
    """Iteration of the innermost enclosing loop; None outside loops."""
    absolute: float
    relative: float
    cosine: float


def cosine_words(moment: Moment) -> str:
    """Return the end of a sentence with the cosine.

    Return an empty text if a side does not have a direction: all zeros, or not finite.
    """
    return f", cosine {moment.cosine:.6f}" if math.isfinite(moment.cosine) else ""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedSlot:
    """A value of the first run in all compared rows."""

    one: str
    """Address in the first model, without iterations."""
    program: Program
    """Graph of the value."""
    position: int
    """Number of the instruction after which the value is available."""
    rows: AlignedRows
    deviations: Deviations

    def moment(self, run: Run, row: int) -> Moment:
        """Return the deviation in a row (index into ``rows``); ``run`` is the first run."""
        number, iteration = int(self.rows.left[row]), int(self.rows.iteration[row])
        address = f"{run.timeline.address(self.program, number)}/{self.one.rpartition('/')[2]}"
        errors = (
            float(column[row])
            for column in (
                self.deviations.absolute,
                self.deviations.relative,
                self.deviations.cosine,
            )
        )
        step = run.timeline.step_at(self.program, number, self.position)
        return Moment(address, step, iteration if iteration >= 0 else None, *errors)


@dataclass(frozen=True, slots=True, eq=False)
class MatchedSlots(ComparedSlot):
    """A value of the first run and its match in the second, in all aligned rows."""

    other: str
    """Address in the second model, without iterations."""
    how: How
    beside: Program
    """Graph of the second value."""
    worst: Moment
    first: Moment | None
    """First moment over the tolerance."""
    growth: Growth | None
    """Growth over the execution of the innermost loop with the first moment over the tolerance, or
    the worst.

    None outside loops.
    """

    def address_beside(self, run: Run, row: int) -> str:
        """Return the address of the second value in a row; ``run`` is the second run."""
        graph = run.timeline.address(self.beside, int(self.rows.right[row]))
        return f"{graph}/{self.other.rpartition('/')[2]}"


def matched_slots(
    run: Run, rows: AlignedRows, values: ComparedValues, deviations: Deviations, tolerance: float
) -> MatchedSlots:
    """Return the comparison of two values from their deviations in each row."""
    over = np.flatnonzero(~(deviations.relative <= tolerance))
    worst = int(np.argmax(deviations.relative))
    begin = int(over[0]) if len(over) else None
    execution = np.flatnonzero(rows.execution == rows.execution[worst if begin is None else begin])
    error_growth = (
        growth(deviations.relative[execution], tolerance) if rows.iteration[worst] >= 0 else None
    )
    program, beside = values.programs
    place = ComparedSlot(values.one, program, values.position, rows, deviations)
    first = None if begin is None else place.moment(run, begin)
    return MatchedSlots(
        place.one,
        program,
        values.position,
        rows,
        deviations,
        values.other,
        values.how,
        beside,
        place.moment(run, worst),
        first,
        error_growth,
    )


def first_over(pairs: Iterable[MatchedSlots]) -> MatchedSlots | None:
    """Return the pair that is first over the tolerance in the first run."""
    over = [(pair.first.step, pair) for pair in pairs if pair.first is not None]
    return min(over, key=lambda entry: entry[0])[1] if over else None


def place_words(pair: MatchedSlots, moment: Moment) -> str:
    """Describe a value by its loop, iteration and name."""
    name = decode(pair.one.rpartition("/")[2])
    if moment.iteration is None:
        return f"`{name}`"
    loop = decode(
        next(
            segment.partition("[")[0]
            for segment in reversed(moment.address.split("/"))
            if "[" in segment
        )
    )
    chunked = pair.rows.chunked
    if chunked is not None:
        is_step = chunked.per_step or not chunked.chunks.longer
        chunk = moment.iteration // chunked.chunks.size if is_step else moment.iteration
        words = chunked.chunks.step_words(chunk, chunked.total)
        if chunked.per_step:
            return f"`{loop}` at step {moment.iteration:,} in `{name}`, in {words}"
        return f"`{loop}` in {words} in `{name}`"
    return f"`{loop}` at iteration {moment.iteration:,} in `{name}`"
