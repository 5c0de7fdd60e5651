"""Category reduction of the OpenVINO operation specs: tensors reduced along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elementwise_kernels import (
    COMPUTED,
    COMPUTED_INTEGERS,
    INTEGER_DTYPES,
    as_numbers,
    widened,
)
from loopscope.ops.family import family
from loopscope.ops.gradients import reduction as gradients
from loopscope.ops.infer import axes_of
from loopscope.ops.input_checks import axis_within

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


def _rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
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

row = family("reduction", infer=_rule, inputs=(2, 2), attributes=_KEEP_DIMS, types=_TYPES)

OPERATIONS: tuple[Operation, ...] = (
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
