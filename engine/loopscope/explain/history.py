"""One value over all iterations of its loop: scalars as they are, larger tensors as summaries,
with the first changes and NaNs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.errors import AddressError, EngineError
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Program
from loopscope.ir.address import ANY_ITERATION, Address, Segment
from loopscope.ops.unusual_floats import holds_unusual, rows_with
from loopscope.ops.values import as_array, is_tensor
from loopscope.timeline.vectorised import Columns, Recorded

_MOST_COMPUTED = 20_000
"""Iterations that are computed one by one; beyond that, only bodies whose operations work on
whole columns.
"""
_NUMBERS = "biufV"


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """What is kept of a tensor in one iteration; min, max and mean are None for tensors without
    finite numbers.
    """

    shape: tuple[int, ...]
    least: float | None
    """Of integers and booleans an integer, exactly."""
    most: float | None
    mean: float | None
    not_finite: int
    """NaN and infinite elements."""
    digest: str


@dataclass(frozen=True, eq=False)
class History:
    """The values at one place over the iterations of the innermost loop around it."""

    address: str
    """With ``[*]`` for the loop."""
    column: np.ndarray | None
    """All values, one along the first axis for each iteration, where every one has the same
    shape and type.
    """
    values: tuple[Any, ...] = ()
    """The value of each iteration where they have not; None where the place did not run in that
    iteration.
    """

    def __len__(self) -> int:
        return len(self.values if self.column is None else self.column)

    @cached_property
    def scalars(self) -> np.ndarray | None:
        """One number for each iteration, where every value is a scalar or has one element."""
        if (
            self.column is None
            or self.column.dtype.kind not in _NUMBERS
            or self.column[:1].size != 1
        ):
            return None
        return self.column.reshape(-1)

    @cached_property
    def summaries(self) -> tuple[TensorSummary | None, ...]:
        """One summary for each iteration."""
        return tuple(
            None if item is None else summarise(item)
            for item in (self.values if self.column is None else self.column)
        )

    @cached_property
    def first_not_finite(self) -> int | None:
        """The first iteration whose value holds a NaN or an infinity."""
        if self.column is None:
            return next(
                (
                    at
                    for at, one in enumerate(self.values)
                    if one is not None and not is_finite(one)
                ),
                None,
            )
        odd = ~finite_rows(self.column)
        return int(odd.argmax()) if odd.any() else None

    @cached_property
    def first_change(self) -> int | None:
        """The first iteration whose value differs from that of the iteration before."""
        changed = self._changes
        return int(changed[0]) + 1 if len(changed) else None

    @cached_property
    def fixed_from(self) -> int | None:
        """The iteration from which the value stays the same to the end; None when it still
        changes in the last.
        """
        if len(self) < 2:
            return None
        changed = self._changes
        start = int(changed[-1]) + 1 if len(changed) else 0
        return start if start < len(self) - 1 else None

    @cached_property
    def shapes(self) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        """Runs of equal shape: first iteration, last iteration, shape."""
        if self.column is not None:
            return ((0, len(self) - 1, self.column.shape[1:]),) if len(self) else ()
        runs: list[tuple[int, int, tuple[int, ...]]] = []
        for at, one in enumerate(self.values):
            if one is None:
                continue
            shape = np.shape(as_array(one))
            if runs and runs[-1][2] == shape and runs[-1][1] == at - 1:
                runs[-1] = (runs[-1][0], at, shape)
            else:
                runs.append((at, at, shape))
        return tuple(runs)

    @cached_property
    def _changes(self) -> np.ndarray:
        """The iterations after which the value is another: of another shape, type or content;
        NaN equals NaN, and -0 equals 0.
        """
        if self.column is None:
            pairs = enumerate(pairwise(self.values))
            return np.array(
                [at for at, (one, other) in pairs if not _are_equal(one, other)], np.int64
            )
        one, other = self.column[:-1], self.column[1:]
        same = (one == other) | ((one != one) & (other != other))
        return np.flatnonzero(~same.all(axis=tuple(range(1, same.ndim))))


def history(run: Run, address: str) -> History:
    """The values at an address over all recorded iterations of the innermost loop that it lies in.

    Outer iterations that are left out are those shown at the cursor. ``AddressError`` when the
    place is in no loop.
    """
    parsed = Address.parse(address)
    program, slot, first_row, end_row = run.iteration_rows(parsed)
    place = _starred(parsed)
    if end_row > first_row:
        column = Columns(Recorded(run.timeline), program, np.arange(first_row, end_row)).column(
            slot
        )
        if column is not None:
            return History(place, np.asarray(column.of(end_row - first_row)))
    if end_row - first_row > _MOST_COMPUTED:
        raise EngineError(
            f"{place}: {end_row - first_row:,} iterations are more than the {_MOST_COMPUTED:,} that are computed one by one"
        )
    values = tuple(_value(run, program, row, slot) for row in range(first_row, end_row))
    return of_values(place, values)


def of_values(address: str, values: tuple[Any, ...]) -> History:
    """The history of values that are at hand, one for each iteration."""
    arrays = [np.asarray(value) for value in values if value is not None and is_tensor(value)]
    alike = (
        bool(arrays)
        and len(arrays) == len(values)
        and len({(one.shape, one.dtype) for one in arrays}) == 1
    )
    if (
        alike
        and arrays[0].dtype.kind in _NUMBERS
        and not arrays[0].dtype.names
        and arrays[0].size == 1
    ):
        return History(address, np.stack(arrays))
    return History(address, None, values)


def is_finite(value: Any) -> bool:
    """Whether a value, or a sequence of them, holds neither a NaN nor an infinity; what is not a
    tensor of floats holds none.
    """
    return not holds_unusual(value, None)


def finite_rows(column: np.ndarray) -> np.ndarray:
    """For each entry along the first axis, whether it holds neither a NaN nor an infinity."""
    return ~rows_with(column, None)


def _are_equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    first, second = as_array(one), as_array(other)
    if (first.shape, first.dtype) != (second.shape, second.dtype):
        return False
    if first.dtype.names or first.dtype == object:
        return bool(first.reshape(-1).tolist() == second.reshape(-1).tolist())
    return bool(((first == second) | ((first != first) & (second != second))).all())


def evenly(total: int, most: int) -> list[int]:
    """At most so many of the numbers from 0 to ``total`` - 1, the first and the last among them.

    >>> evenly(5, 3), evenly(2, 3), evenly(0, 3)
    ([0, 2, 4], [0, 1], [])
    """
    found: list[int] = np.unique(
        np.linspace(0, max(total - 1, 0), min(total, most)).round().astype(np.int64)
    ).tolist()
    return found


def summarise(value: Any) -> TensorSummary:
    """Shape, extremes, mean, NaN count and digest of one tensor."""
    array = as_array(value)
    digest = hashlib.blake2b(
        repr(array.reshape(-1).tolist()).encode()
        if array.dtype == np.dtype(object)
        else array.tobytes(),
        digest_size=8,
    ).hexdigest()
    if array.dtype.kind not in "biufV" or array.dtype.names:
        return TensorSummary(array.shape, None, None, None, 0, digest)
    numbers = _numbers(array)
    finite = numbers[np.isfinite(numbers)]
    odd = int(numbers.size - finite.size)
    if not finite.size:
        return TensorSummary(array.shape, None, None, None, odd, digest)
    mean = float(finite.mean(dtype=np.float64))
    if array.dtype.kind in "biu":
        return TensorSummary(array.shape, int(array.min()), int(array.max()), mean, odd, digest)
    return TensorSummary(array.shape, float(finite.min()), float(finite.max()), mean, odd, digest)


def _numbers(array: np.ndarray) -> np.ndarray:
    return (
        array.astype(np.float64) if array.dtype.kind != "f" or array.dtype.itemsize < 4 else array
    )


def _value(run: Run, program: Program, row: int, slot: Slot) -> Any:
    try:
        if not run.has_run(program, row, slot):
            return None
        return run.values.get(run.timeline, program, row, slot)
    except (EngineError, ValueError, TypeError):
        return None


def _starred(address: Address) -> str:
    """The address with ``[*]`` at its innermost loop."""
    segments = list(address.segments)
    for place in range(len(segments) - 2, 0, -1):
        if segments[place + 1].label == "body":
            segments[place] = Segment(segments[place].label, ANY_ITERATION)
            return str(Address(tuple(segments), address.output))
    raise AddressError(f"{address} lies in no loop")
