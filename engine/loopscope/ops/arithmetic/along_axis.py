"""Arithmetic along an axis: cumulative sums, and the largest element of each segment of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elementwise_kernels import COMPUTED, INTEGER_DTYPES, as_numbers, widened
from loopscope.ops.gradients import elementwise as gradients
from loopscope.ops.infer import same
from loopscope.ops.input_checks import axis_within, positions, whole_number
from loopscope.ops.precision import accumulator


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


def segment_max(
    data: Array, segment_ids: Array, num_segments: Array | None = None, /, *, fill_mode: str
) -> Array:
    """Return the largest element of each segment of rows of ``data``.

    ``segment_ids`` [rows] ascends. Empty segments are zero, or the lowest value.
    """
    ids = np.asarray(positions(segment_ids))
    if (
        ids.ndim != 1
        or ids.shape != data.shape[:1]
        or (ids.size and (ids.min() < 0 or np.diff(ids).min(initial=0) < 0))
    ):
        raise ValueError(
            f"segment ids of shape {list(ids.shape)} are not ascending numbers, one "
            f"for each row of {list(data.shape)}"
        )
    count = (
        whole_number(num_segments)
        if num_segments is not None
        else int(ids[-1]) + 1
        if ids.size
        else 0
    )
    check_elements(count * max(math.prod(data.shape[1:]), 1), "the segments")
    wide = accumulator(data.dtype)
    inside = ids < count
    sizes = np.bincount(ids[inside], minlength=count)
    result = np.full(
        (count, *data.shape[1:]), 0 if fill_mode == "zero" else _lowest(data.dtype), wide
    )
    filled = np.flatnonzero(sizes)
    if filled.size:
        starts = np.cumsum(sizes) - sizes
        result[filled] = np.maximum.reduceat(data[inside].astype(wide), starts[filled], axis=0)
    return result.astype(data.dtype)


def _lowest(dtype: np.dtype) -> Any:
    element_type = ElementType.of_dtype(dtype)
    if element_type is ElementType.BOOLEAN:
        return False
    if element_type.is_float:
        return ml_dtypes.finfo(dtype).min
    return -(2 ** (element_type.bits - 1)) if element_type.is_signed else 0


def _infer_segment_max(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, ids = inputs[:2]
    rows = UNKNOWN
    if len(inputs) > 2:
        rows = UNKNOWN if inputs[2].value is None else static(whole_number(inputs[2].value))
    elif ids.value is not None:
        rows = static(int(ids.value.reshape(-1)[-1]) + 1 if ids.value.size else 0)
    dimensions = data.shape.dimensions
    return (
        Known(
            data.element_type,
            DYNAMIC if dimensions is None else PartialShape((rows, *dimensions[1:])),
        ),
    )


SEGMENTS: tuple[Operation, ...] = (
    Operation(
        name="SegmentMax",
        version=16,
        opsets=(16, 16),
        page="arithmetic/segment-max-16",
        kernel=segment_max,
        infer=_infer_segment_max,
        inputs=(2, 3),
        types=(NUMERIC, INDEX_TYPES),
        attributes=(Attribute("fill_mode", "str", allowed=("zero", "lowest")),),
    ),
)
