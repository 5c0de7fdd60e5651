"""Adaptive pooling: the second input is the number of windows, which are spread evenly over each
axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import UNKNOWN, PartialShape, static
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Known
from loopscope.ops.precision import computable, rounded


def adaptive_average_pool(data: Array, output_shape: Array, /) -> Array:
    """Average over evenly spread windows; integers are rounded half to even.

    ``[N, C, lengths...] -> [N, C, output_shape...]``. Spec: pooling/adaptive-avg-pool-8.
    """
    values = computable(data)
    integer = values.dtype.kind in "iu" or ElementType.of(data).is_integer
    values = values.astype(np.float64) if integer else values
    for axis, count in enumerate(_counts(data, output_shape), start=2):
        windows, window_numbers = _windows(data.shape[axis], count)
        weights = np.zeros((len(windows), data.shape[axis]), values.dtype)
        for index, (start, end) in enumerate(windows):
            weights[index, start:end] = 1 / (end - start)
        means = np.moveaxis(np.matmul(np.moveaxis(values, axis, -1), weights.T), -1, axis)
        values = means if window_numbers is None else means.take(window_numbers, axis)
    return rounded(np.rint(values) if integer else np.ascontiguousarray(values), data.dtype)


def adaptive_max_pool(
    data: Array, output_shape: Array, /, *, index_element_type: ElementType
) -> tuple[Array, Array]:
    """Return maxima over evenly spread windows, and their indices within the spatial axes.

    The index is that of the first of equal maxima. ``[N, C, lengths...] -> [N, C,
    output_shape...]`` twice. Spec: pooling/adaptive-max-pool-8.
    """
    counts = _counts(data, output_shape)
    values = computable(data)
    where = np.broadcast_to(np.arange(prod(data.shape[2:])).reshape(data.shape[2:]), data.shape)
    # Starting at the last axis keeps the first of equal maxima in row order.
    for axis in reversed(range(2, data.ndim)):
        windows, window_numbers = _windows(data.shape[axis], counts[axis - 2])
        shape = (*values.shape[:axis], len(windows), *values.shape[axis + 1 :])
        maxima, indices = np.empty(shape, values.dtype), np.empty(shape, np.int64)
        before = (slice(None),) * axis
        for index, (start, end) in enumerate(windows):
            part = values[(*before, slice(start, end))]
            best = part.argmax(axis=axis, keepdims=True)
            target = (*before, slice(index, index + 1))
            maxima[target] = np.take_along_axis(part, best, axis)
            indices[target] = np.take_along_axis(where[(*before, slice(start, end))], best, axis)
        values, where = (
            (maxima, indices)
            if window_numbers is None
            else (maxima.take(window_numbers, axis), indices.take(window_numbers, axis))
        )
    return rounded(values, data.dtype), where.astype(index_element_type.dtype)


def _windows(length: int, count: int) -> tuple[list[tuple[int, int]], np.ndarray | None]:
    """Return begin and end of the distinct windows, and the window of each position (None if all
    are distinct).

    With more windows than elements, some windows are equal.
    """
    places = np.arange(count)
    bounds = np.stack(
        [places * length // max(count, 1), -(-(places + 1) * length // max(count, 1))], 1
    )
    window_numbers = None
    if count > length:
        # Equal windows are adjacent.
        new = np.ones(count, np.bool_)
        new[1:] = (bounds[1:] != bounds[:-1]).any(1)
        bounds, window_numbers = bounds[new], np.cumsum(new) - 1
    return [(int(start), int(end)) for start, end in bounds], window_numbers


def _counts(data: Array, output_shape: Array) -> tuple[int, ...]:
    counts = tuple(int(length) for length in np.asarray(output_shape).reshape(-1))
    if not 3 <= data.ndim <= 5 or len(counts) != data.ndim - 2:
        raise ValueError(
            f"an output shape of {len(counts)} lengths does not fit data of shape "
            f"{list(data.shape)}"
        )
    if any(count < 0 for count in counts) or (0 in data.shape[2:] and 0 not in counts):
        raise ValueError(
            f"output shape {list(counts)} cannot be reached from data of shape {list(data.shape)}"
        )
    check_elements(data.shape[0] * data.shape[1] * prod(counts), "the result of the pooling")
    return counts


def infer_adaptive_average_pool(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch and channels of the data, and lengths from the second input."""
    return (Known(inputs[0].element_type, _shape(inputs)),)


def infer_adaptive_max_pool(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer one shape for maxima and indices."""
    return (
        Known(inputs[0].element_type, _shape(inputs)),
        Known(attributes["index_element_type"], _shape(inputs)),
    )


def _shape(inputs: Sequence[Known]) -> PartialShape:
    data, output_shape = inputs[0].shape, inputs[1].value
    if data.dimensions is None:
        return data
    if output_shape is None:
        return PartialShape((*data.dimensions[:2], *(UNKNOWN,) * (len(data.dimensions) - 2)))
    lengths = [int(length) for length in np.asarray(output_shape).reshape(-1)]
    if len(lengths) != len(data.dimensions) - 2 or any(length < 0 for length in lengths):
        raise ValueError(f"output shape {lengths[:8]} does not fit data of shape {data}")
    return PartialShape((*data.dimensions[:2], *map(static, lengths)))
