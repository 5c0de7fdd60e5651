"""A value of two runs in all compared rows: where it differs, and what its error causes.

An error grows over rows, and changes the largest logit of a language model's output, and so the
next token.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.comparison.divergence import AlignedRows
from loopscope.comparison.matching import How
from loopscope.debug.run import Run
from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.slots import Slot
from loopscope.ir.address import decode
from loopscope.ir.readable import significant


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


@dataclass(frozen=True, slots=True, eq=False)
class ComparedValues:
    """A pair of matching values."""

    one: str
    other: str
    how: How
    programs: tuple[Program, Program]
    slots: tuple[Slot, Slot]
    position: int
    """Number of the first run's instruction after which the value is available."""
    at_chunk_ends: bool = True
    """True if the values at the ends of chunks belong together; inner values do not."""
    at_chunk_starts: bool = False
    """True for the states that both loops receive."""


_MIN_ITERATIONS = 4
"""Minimum number of iterations for a verdict."""
_GROWTH_FACTOR = 2.0
"""Factor from which an error counts as grown."""
_LATE_GROWTH_FACTOR = 1.25
"""Ratio of the last to the second quarter above which an error is still growing."""
_JUMP_FACTOR = 10.0
"""Factor between two iterations from which an error counts as beginning at the later one."""
_BEGINNING_DIVISOR = 128
"""The beginning is the first 1/128 of the iterations."""

Shape = Literal["flat", "grows", "saturates", "at once", "fades"]


@dataclass(frozen=True, slots=True)
class Growth:
    """Development of an error over one execution of a loop."""

    shape: Shape
    factor: float
    """Factor per iteration, fitted to the logarithms of the errors."""
    last: float
    """Median of the last quarter."""

    @property
    def words(self) -> str:
        """End of a sentence about the error."""
        match self.shape:
            case "flat":
                return "stays flat"
            case "grows":
                return f"grows {self._factor} times per iteration"
            case "saturates":
                return f"grows, then saturates near {significant(self.last, 2)}"
            case "fades":
                return f"then fades to {significant(self.last, 2)}"
            case "at once":
                return f"is there at once, near {significant(self.last, 2)}, and does not grow"

    @property
    def _factor(self) -> str:
        """Factor with enough digits to differ from 1."""
        digits = 2
        while digits < 6 and abs(self.factor - 1) < 2 * 10.0**-digits:
            digits += 1
        return f"{self.factor:.{digits}f}"


def growth(errors: np.ndarray, tolerance: float) -> Growth | None:
    """Return the growth of the errors of consecutive iterations; None with too few finite nonzero
    errors.

    An error that jumps over the tolerance begins there; earlier iterations are ignored. If the last
    quarter is less than twice the beginning, the error is ``flat``, or ``at once`` if the beginning
    is over the tolerance. It ``fades`` if it then falls to less than a tenth of the beginning.
    Otherwise it ``saturates`` if the last quarter is about the second quarter, and ``grows`` if it
    is more.

    >>> growth(np.full(20, 0.01), 1e-3).words
    'is there at once, near 0.01, and does not grow'
    >>> growth(1e-4 * 1.07 ** np.arange(60), 1e-3).words
    'grows 1.07 times per iteration'
    """
    errors = _from_its_beginning(errors[np.isfinite(errors)], tolerance)
    iterations = np.flatnonzero(errors > 0)
    if len(iterations) < _MIN_ITERATIONS:
        return None
    values = errors[iterations]
    count = len(values)
    begin = float(np.median(values[: max(1, count // _BEGINNING_DIVISOR)]))
    quarter = max(1, count // 4)
    second, last = (
        float(np.median(part)) for part in (values[quarter : 2 * quarter], values[-quarter:])
    )
    factor = float(np.exp(np.polyfit(iterations, np.log(values), 1)[0]))
    if last < _GROWTH_FACTOR * begin:
        if begin > tolerance and last * _JUMP_FACTOR < begin:
            return Growth("fades", factor, last)
        return Growth("at once" if begin > tolerance else "flat", factor, last)
    return Growth("grows" if last > _LATE_GROWTH_FACTOR * second else "saturates", factor, last)


def _from_its_beginning(errors: np.ndarray, tolerance: float) -> np.ndarray:
    over = np.flatnonzero(errors > tolerance)
    if not len(over) or not over[0]:
        return errors
    before = float(errors[over[0] - 1])
    return errors[over[0] :] if errors[over[0]] > _JUMP_FACTOR * before else errors


_LOGITS_MARK = "logit"
"""Part of the name of an output with logits: [..., tokens, vocabulary]."""
_MAX_ROWS = 20_000
"""Maximum number of iterations whose logits are read."""


def other_choice(sides: Iterable[tuple[str, object, object]]) -> str:
    """Return a sentence about the first output whose largest logits differ; empty if there is none.

    ``sides``: name and both values of each output.

    >>> left = np.eye(3, dtype=np.float32)
    >>> other_choice([("logits", left, left[[0, 0, 0]])])
    'The largest logit is another one from token 1 on.'
    >>> other_choice([("logits", left, left[[0, 0, 2]])])
    'The largest logit is another one at 1 of 3 tokens, first at token 1.'
    """
    for name, left, right in sides:
        if (
            _LOGITS_MARK not in name.lower()
            or not isinstance(left, np.ndarray)
            or not isinstance(right, np.ndarray)
        ):
            continue
        if (
            left.shape != right.shape
            or left.ndim < 2
            or not left.size
            or left.dtype.kind != "f"
            or right.dtype.kind != "f"
        ):
            continue
        differ = np.argmax(left, axis=-1) != np.argmax(right, axis=-1)
        tokens = differ.reshape(-1, differ.shape[-1]).any(axis=0)
        if tokens.any():
            return _describe(tokens)
    return ""


def choice_in_loop(runs: tuple[Run, Run], pairs: Sequence[MatchedSlots]) -> str:
    """Return a sentence about logits that a loop computes in each iteration.

    Return an empty text if the largest logit is the same in all iterations.
    """
    for pair in pairs:
        if _LOGITS_MARK not in pair.one.rpartition("/")[2].lower():
            continue
        differs = np.zeros(len(pair.rows.left), np.bool_)
        for row in np.flatnonzero(pair.deviations.absolute > 0)[:_MAX_ROWS].tolist():
            left = np.asarray(runs[0].value(pair.moment(runs[0], row).address))
            right = np.asarray(runs[1].value(pair.address_beside(runs[1], row)))
            if left.ndim and left.size and left.shape == right.shape:
                choices = (np.argmax(side.astype(np.float64), axis=-1) for side in (left, right))
                differs[row] = not np.array_equal(*choices)
        if differs.any():
            return _describe(differs)
    return ""


def _describe(differs: np.ndarray) -> str:
    first = int(np.argmax(differs))
    if differs[first:].all():
        return f"The largest logit is another one from token {first:,} on."
    return (
        f"The largest logit is another one at {int(differs.sum()):,} of {len(differs):,} tokens, "
        f"first at token {first:,}."
    )
