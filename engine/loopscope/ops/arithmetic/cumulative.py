"""Arithmetic along an axis that keeps the shape: cumulative sums."""

from __future__ import annotations

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.elements import COMPUTED, INTEGER_DTYPES, as_numbers, widened
from loopscope.ops.gradients import arithmetic as gradients
from loopscope.ops.index import axis_within
from loopscope.ops.infer import same


def cumulative_sum(
    data: Array, axis: Array | None = None, /, *, exclusive: bool = False, reverse: bool = False
) -> Array:
    """Sum all elements before and including each one along an axis.

    ``axis`` is a scalar or one element, 0 by default. ``exclusive`` leaves the element itself out,
    ``reverse`` sums from the far end. Page arithmetic/cumsum-3.
    """
    if axis is not None and axis.size != 1:
        raise ValueError(f"axis has {axis.size} elements, expected one")
    along = axis_within(0 if axis is None else int(axis.item()), data.ndim)
    numbers = as_numbers(data) if data.dtype in INTEGER_DTYPES else widened(data)
    if reverse:
        numbers = np.flip(numbers, along)
    sums = np.cumsum(numbers, axis=along, dtype=numbers.dtype)
    if exclusive:
        sums = _shift(sums, along)
    if reverse:
        sums = np.flip(sums, along)
    return sums.astype(data.dtype, copy=False)


def _shift(sums: Array, axis: int) -> Array:
    """Return each sum one position later, after a zero."""
    result = np.zeros_like(sums)
    ahead = [slice(None)] * sums.ndim
    ahead[axis] = slice(1, None)
    behind = [slice(None)] * sums.ndim
    behind[axis] = slice(None, -1)
    result[tuple(ahead)] = sums[tuple(behind)]
    return result


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="CumSum",
        version=3,
        opsets=(3, 16),
        page="arithmetic/cumsum-3",
        kernel=cumulative_sum,
        infer=same,
        inputs=(1, 2),
        attributes=(Attribute("exclusive", "bool", False), Attribute("reverse", "bool", False)),
        types=(COMPUTED, INDEX_TYPES),
        gradient=gradients.cumulative_sum,
    ),
)
