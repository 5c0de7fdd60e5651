"""One value over all iterations of its loop: scalars in full, larger tensors as summaries, with
first changes and NaNs.
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
from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.slots import Slot
from loopscope.ir.address import ANY_ITERATION, Address, Segment
from loopscope.ops.values import as_array, holds_unusual, is_tensor, rows_with
from loopscope.timeline.vectorised import Columns, Recorded

_MAX_REPLAYED = 20_000
"""Maximum number of iterations replayed one by one; above it, only column-wise bodies are
supported.
"""
_NUMERIC_KINDS = "biufV"


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """Summary of a tensor in one iteration; min, max and mean are None without finite numbers."""

    shape: tuple[int, ...]
    minimum: float | None
    """Smallest finite element; an exact integer for integers and booleans."""
    maximum: float | None
    mean: float | None
    not_finite: int
    """Number of NaN and infinite elements."""
    digest: str


@dataclass(frozen=True, eq=False)
class History:
    """Values at one address over the iterations of the innermost enclosing loop."""

    address: str
    """Address with ``[*]`` for the loop."""
    column: np.ndarray | None
    """All values stacked along the first axis, if all have the same shape and type; otherwise None.
    """
    values: tuple[Any, ...] = ()
    """Value of each iteration if ``column`` is None; None for iterations in which the value was not
    computed.
    """

    def __len__(self) -> int:
        return len(self.values if self.column is None else self.column)

    @cached_property
    def scalars(self) -> np.ndarray | None:
        """One number per iteration, if every value is a scalar or has one element."""
        if (
            self.column is None
            or self.column.dtype.kind not in _NUMERIC_KINDS
            or self.column[:1].size != 1
        ):
            return None
        return self.column.reshape(-1)

    @cached_property
    def summaries(self) -> tuple[TensorSummary | None, ...]:
        """One summary per iteration."""
        return tuple(
            None if item is None else summarise(item)
            for item in (self.values if self.column is None else self.column)
        )

    @cached_property
    def first_not_finite(self) -> int | None:
        """First iteration whose value contains a NaN or an infinity."""
        if self.column is None:
            return next(
                (
                    iteration
                    for iteration, value in enumerate(self.values)
                    if value is not None and not is_finite(value)
                ),
                None,
            )
        is_unusual = ~finite_rows(self.column)
        return int(is_unusual.argmax()) if is_unusual.any() else None

    @cached_property
    def first_change(self) -> int | None:
        """First iteration whose value differs from the previous iteration."""
        changed = self._changes
        return int(changed[0]) + 1 if len(changed) else None

    @cached_property
    def fixed_from(self) -> int | None:
        """Iteration from which the value stays constant; None if the last iteration still changes
        it.
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
        for iteration, value in enumerate(self.values):
            if value is None:
                continue
            shape = np.shape(as_array(value))
            if runs and runs[-1][2] == shape and runs[-1][1] == iteration - 1:
                runs[-1] = (runs[-1][0], iteration, shape)
            else:
                runs.append((iteration, iteration, shape))
        return tuple(runs)

    @cached_property
    def _changes(self) -> np.ndarray:
        """Iterations after which shape, type or content changes; NaN equals NaN, -0 equals 0."""
        if self.column is None:
            pairs = enumerate(pairwise(self.values))
            return np.array(
                [
                    iteration
                    for iteration, (before, after) in pairs
                    if not _are_equal(before, after)
                ],
                np.int64,
            )
        before, after = self.column[:-1], self.column[1:]
        same = (before == after) | ((before != before) & (after != after))
        return np.flatnonzero(~same.all(axis=tuple(range(1, same.ndim))))


def history(run: Run, address: str) -> History:
    """Return the values at an address over all recorded iterations of the innermost enclosing loop.

    Iterations of outer loops that the address omits are those at the cursor. Raise ``AddressError``
    if the address is not inside a loop.
    """
    parsed = Address.parse(address)
    program, slot, first_row, end_row = run.iteration_rows(parsed)
    place = _with_wildcard(parsed)
    if end_row > first_row:
        column = Columns(Recorded(run.timeline), program, np.arange(first_row, end_row)).column(
            slot
        )
        if column is not None:
            return History(place, np.asarray(column.of(end_row - first_row)))
    if end_row - first_row > _MAX_REPLAYED:
        raise EngineError(
            f"{place}: {end_row - first_row:,} iterations are more than the {_MAX_REPLAYED:,} "
            f"that are computed one by one"
        )
    values = tuple(_value(run, program, row, slot) for row in range(first_row, end_row))
    return of_values(place, values)


def of_values(address: str, values: tuple[Any, ...]) -> History:
    """Return the history of values that are available already, one per iteration."""
    arrays = [np.asarray(value) for value in values if value is not None and is_tensor(value)]
    is_uniform = (
        bool(arrays)
        and len(arrays) == len(values)
        and len({(array.shape, array.dtype) for array in arrays}) == 1
    )
    if (
        is_uniform
        and arrays[0].dtype.kind in _NUMERIC_KINDS
        and not arrays[0].dtype.names
        and arrays[0].size == 1
    ):
        return History(address, np.stack(arrays))
    return History(address, None, values)


def is_finite(value: Any) -> bool:
    """Return True if a value, or sequence of values, contains neither NaN nor infinity.

    Values that are not tensors of floats are finite.
    """
    return not holds_unusual(value, None)


def finite_rows(column: np.ndarray) -> np.ndarray:
    """Return for each entry along the first axis True if it contains neither NaN nor infinity."""
    return ~rows_with(column, None)


def _are_equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    left_array, right_array = as_array(left), as_array(right)
    if (left_array.shape, left_array.dtype) != (right_array.shape, right_array.dtype):
        return False
    if left_array.dtype.names or left_array.dtype == object:
        return bool(left_array.reshape(-1).tolist() == right_array.reshape(-1).tolist())
    return bool(
        (
            (left_array == right_array)
            | ((left_array != left_array) & (right_array != right_array))
        ).all()
    )


def evenly(total: int, limit: int) -> list[int]:
    """Return at most ``limit`` evenly spaced numbers from 0 to ``total`` - 1, including the first
    and last.

    >>> evenly(5, 3), evenly(2, 3), evenly(0, 3)
    ([0, 2, 4], [0, 1], [])
    """
    numbers: list[int] = np.unique(
        np.linspace(0, max(total - 1, 0), min(total, limit)).round().astype(np.int64)
    ).tolist()
    return numbers


def summarise(value: Any) -> TensorSummary:
    """Return shape, extremes, mean, count of non-finite elements and digest of a tensor."""
    array = as_array(value)
    digest = hashlib.blake2b(
        repr(array.reshape(-1).tolist()).encode()
        if array.dtype == np.dtype(object)
        else array.tobytes(),
        digest_size=8,
    ).hexdigest()
    if array.dtype.kind not in "biufV" or array.dtype.names:
        return TensorSummary(array.shape, None, None, None, 0, digest)
    numbers = _as_floats(array)
    finite = numbers[np.isfinite(numbers)]
    not_finite = int(numbers.size - finite.size)
    if not finite.size:
        return TensorSummary(array.shape, None, None, None, not_finite, digest)
    mean = float(finite.mean(dtype=np.float64))
    if array.dtype.kind in "biu":
        return TensorSummary(
            array.shape, int(array.min()), int(array.max()), mean, not_finite, digest
        )
    return TensorSummary(
        array.shape, float(finite.min()), float(finite.max()), mean, not_finite, digest
    )


def _as_floats(array: np.ndarray) -> np.ndarray:
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


def _with_wildcard(address: Address) -> str:
    """Return the address with ``[*]`` at its innermost loop."""
    segments = list(address.segments)
    for index in range(len(segments) - 2, 0, -1):
        if segments[index + 1].label == "body":
            segments[index] = Segment(segments[index].label, ANY_ITERATION)
            return str(Address(tuple(segments), address.output))
    raise AddressError(f"{address} lies in no loop")
