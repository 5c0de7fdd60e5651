"""Operations along axes: reductions, cumulative sums, and the largest element of each segment.

Segments are consecutive rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import elementwise as elementwise_gradients
from loopscope.ops.gradients import reduction as gradients
from loopscope.ops.infer import axes_of, same
from loopscope.ops.kernel_arithmetic import (
    COMPUTED,
    COMPUTED_INTEGERS,
    INTEGER_DTYPES,
    accumulator,
    as_numbers,
    widened,
)
from loopscope.ops.kernel_checks import axis_within, check_elements, positions, whole_number

_ACCUMULATED_AS_THEY_ARE = frozenset("fd?bBhHiIlLqQ")
"""numpy's codes of f32, f64, boolean and the integers of 8 to 64 bits."""

Fold = Callable[[np.ndarray, tuple[int, ...], bool], Array]
"""Function that reduces an array along normalised axes; the flag keeps them with length 1."""


def _reduction(fold: Fold, text: str) -> Callable[..., Array]:
    """Return a kernel of data and axes (a scalar or a list; empty reduces nothing) that keeps the
    element type.

    Floats of 16 bits or fewer are accumulated in f32 and rounded once; integers wrap.
    """

    def kernel(data: Array, axes: Array, /, *, keep_dims: bool = False) -> Array:
        dtype = data.dtype
        numbers = (
            data
            if dtype.char in _ACCUMULATED_AS_THEY_ARE
            else as_numbers(data)
            if dtype in INTEGER_DTYPES
            else widened(data)
        )
        result = fold(np.asarray(numbers), _axes(axes.tobytes(), axes.dtype, data.ndim), keep_dims)
        return result if result.dtype is dtype else result.astype(dtype)

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = fold.__name__.strip("_")
    return kernel


@lru_cache(maxsize=1024)
def _axes(raw: bytes, dtype: np.dtype, rank: int) -> tuple[int, ...]:
    """Return normalised axes, cached by their bytes because a loop's reductions use the same axes
    in every iteration.
    """
    normal = tuple(axis_within(int(axis), rank) for axis in np.frombuffer(raw, dtype))
    if len(set(normal)) != len(normal):
        raise ValueError(f"axes {normal} name a dimension twice")
    return normal


def _fold(
    ufunc: np.ufunc, data: np.ndarray, axes: tuple[int, ...], keep_dims: bool, dtype: Any = None
) -> Array:
    result: Array = ufunc.reduce(data, axes, dtype, keepdims=keep_dims)
    return result


def _sum(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return _fold(np.add, data, axes, keep_dims, data.dtype)


def _mean(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    count = math.prod(data.shape[axis] for axis in axes)
    if data.dtype.kind == "f":
        total = _fold(np.add, data, axes, keep_dims, data.dtype)
        # The mean of no elements is 0 in OpenVINO's core and CPU, not NaN.
        return total / data.dtype.type(count) if count else total
    # Summed in 64 bits, so that the sum of small integers does not wrap.
    unsigned = data.dtype.kind == "u"
    total = _fold(np.add, data, axes, keep_dims, np.uint64 if unsigned else np.int64)
    quotient = abs(total) // total.dtype.type(max(count, 1))
    return quotient if unsigned else np.sign(total) * quotient


def _product(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return _fold(np.multiply, data, axes, keep_dims, data.dtype)


def _maximum(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    if data.size == 0:
        return _neutral(data, axes, keep_dims, lowest=True)
    return _fold(np.maximum, data, axes, keep_dims)


def _minimum(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    if data.size == 0:
        return _neutral(data, axes, keep_dims, lowest=False)
    return _fold(np.minimum, data, axes, keep_dims)


def _neutral(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool, *, lowest: bool) -> Array:
    """Return the neutral element of max (the lowest number) or min (the highest) for every element
    of the result.
    """
    zeros = _fold(np.add, data, axes, keep_dims, data.dtype)
    if data.dtype.kind == "f":
        return np.full(zeros.shape, -np.inf if lowest else np.inf, data.dtype)
    limits = np.iinfo(data.dtype)
    return np.full(zeros.shape, limits.min if lowest else limits.max, data.dtype)


def _sum_of_magnitudes(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return _fold(np.add, np.abs(data), axes, keep_dims, data.dtype)


def _root_of_squares(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    wide = data if data.dtype.kind == "f" else data.astype(np.float64)
    return np.sqrt(_fold(np.add, wide * wide, axes, keep_dims, wide.dtype))


def _all(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return _fold(np.logical_and, data, axes, keep_dims)


def _any(data: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return _fold(np.logical_or, data, axes, keep_dims)


def _infer_reduction(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the type of the data, with its axes dropped or kept with length 1."""
    data = inputs[0]
    dimensions, keep = data.shape.dimensions, attributes["keep_dims"]
    if dimensions is None:
        return (Known(data.element_type, DYNAMIC),)
    axes = axes_of(inputs[1], len(dimensions))
    if axes is None:
        return (Known(data.element_type, _shape_without_axes(inputs[1], len(dimensions), keep)),)
    remaining = [
        static(1) if axis in axes else dimension
        for axis, dimension in enumerate(dimensions)
        if keep or axis not in axes
    ]
    return (Known(data.element_type, PartialShape(tuple(remaining))),)


def _shape_without_axes(axes: Known, rank: int, keep: bool) -> PartialShape:
    """Infer the rank of the result from the number of axes only."""
    if keep:
        return PartialShape.unknown(rank)
    count = (
        1
        if axes.shape.rank == 0
        else axes.shape.lengths[0]
        if axes.shape.rank == 1 and axes.shape.is_static
        else None
    )
    return DYNAMIC if count is None else PartialShape.unknown(max(rank - count, 0))


reduce_l1 = _reduction(_sum_of_magnitudes, "Sum the magnitudes along axes.")
reduce_l2 = _reduction(
    _root_of_squares, "Compute the square root of the sum of squares along axes."
)
reduce_logical_and = _reduction(_all, "Return True where all elements along axes are true.")
reduce_logical_or = _reduction(_any, "Return True where any element along axes is true.")
reduce_max = _reduction(_maximum, "Return the largest element along axes.")
reduce_mean = _reduction(_mean, "Compute the mean along axes; for integers, truncated.")
reduce_min = _reduction(_minimum, "Return the smallest element along axes.")
reduce_prod = _reduction(_product, "Multiply the elements along axes.")
reduce_sum = _reduction(_sum, "Sum the elements along axes.")

_KEEP_DIMS = (Attribute("keep_dims", "bool", False),)
_TYPES = (COMPUTED, COMPUTED_INTEGERS)
_LOGICAL = (frozenset({ElementType.BOOLEAN}), COMPUTED_INTEGERS)

row = family(
    "reduction", infer=_infer_reduction, inputs=(2, 2), attributes=_KEEP_DIMS, types=_TYPES
)

REDUCTIONS: tuple[Operation, ...] = (
    row("ReduceL1", reduce_l1, version=4, gradient=gradients.reduce_l1),
    row("ReduceL2", reduce_l2, version=4, gradient=gradients.reduce_l2),
    row("ReduceLogicalAnd", reduce_logical_and, types=_LOGICAL),
    row("ReduceLogicalOr", reduce_logical_or, types=_LOGICAL),
    row("ReduceMax", reduce_max, gradient=gradients.reduce_extreme),
    row("ReduceMean", reduce_mean, gradient=gradients.reduce_mean),
    row("ReduceMin", reduce_min, gradient=gradients.reduce_extreme),
    row("ReduceProd", reduce_prod, gradient=gradients.reduce_prod),
    row("ReduceSum", reduce_sum, gradient=gradients.reduce_sum),
)


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


CUMULATIVE_SUMS: tuple[Operation, ...] = (
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
        gradient=elementwise_gradients.cumulative_sum,
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
