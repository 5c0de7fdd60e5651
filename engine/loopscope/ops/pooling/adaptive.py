"""Adaptive pooling: as many windows as the second input asks for, spread evenly over each axis."""

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
    """Means over evenly spread windows, of integers rounded half to even: ``[N, C, lengths...] ->
    [N, C, output_shape...]``.

    Spec: pooling/adaptive-avg-pool-8.
    """
    values = computable(data)
    integer = values.dtype.kind in "iu" or ElementType.of(data).is_integer
    values = values.astype(np.float64) if integer else values
    for axis, count in enumerate(_counts(data, output_shape), start=2):
        windows, chosen = _windows(data.shape[axis], count)
        weights = np.zeros((len(windows), data.shape[axis]), values.dtype)
        for place, (start, end) in enumerate(windows):
            weights[place, start:end] = 1 / (end - start)
        means = np.moveaxis(np.matmul(np.moveaxis(values, axis, -1), weights.T), -1, axis)
        values = means if chosen is None else means.take(chosen, axis)
    return rounded(np.rint(values) if integer else np.ascontiguousarray(values), data.dtype)


def adaptive_max_pool(
    data: Array, output_shape: Array, /, *, index_element_type: ElementType
) -> tuple[Array, Array]:
    """Maxima over evenly spread windows, and their indices within the spatial axes (the first where
    several are equal).

    ``[N, C, lengths...] -> [N, C, output_shape...]`` twice. Spec: pooling/adaptive-max-pool-8.
    """
    counts = _counts(data, output_shape)
    values = computable(data)
    where = np.broadcast_to(np.arange(prod(data.shape[2:])).reshape(data.shape[2:]), data.shape)
    # From the last axis on, so that of equal maxima the first in row order stays.
    for axis in reversed(range(2, data.ndim)):
        windows, chosen = _windows(data.shape[axis], counts[axis - 2])
        shape = (*values.shape[:axis], len(windows), *values.shape[axis + 1 :])
        maxima, places = np.empty(shape, values.dtype), np.empty(shape, np.int64)
        before = (slice(None),) * axis
        for place, (start, end) in enumerate(windows):
            part = values[(*before, slice(start, end))]
            best = part.argmax(axis=axis, keepdims=True)
            target = (*before, slice(place, place + 1))
            maxima[target] = np.take_along_axis(part, best, axis)
            places[target] = np.take_along_axis(where[(*before, slice(start, end))], best, axis)
        values, where = (
            (maxima, places)
            if chosen is None
            else (maxima.take(chosen, axis), places.take(chosen, axis))
        )
    return rounded(values, data.dtype), where.astype(index_element_type.dtype)


def _windows(length: int, count: int) -> tuple[list[tuple[int, int]], np.ndarray | None]:
    """Where each window begins and ends; of more windows than elements only the different ones,
    and which of them each is.
    """
    places = np.arange(count)
    bounds = np.stack(
        [places * length // max(count, 1), -(-(places + 1) * length // max(count, 1))], 1
    )
    chosen = None
    if count > length:
        # Windows of the same beginning and end follow each other.
        new = np.ones(count, np.bool_)
        new[1:] = (bounds[1:] != bounds[:-1]).any(1)
        bounds, chosen = bounds[new], np.cumsum(new) - 1
    return [(int(start), int(end)) for start, end in bounds], chosen


def _counts(data: Array, output_shape: Array) -> tuple[int, ...]:
    counts = tuple(int(one) for one in np.asarray(output_shape).reshape(-1))
    if not 3 <= data.ndim <= 5 or len(counts) != data.ndim - 2:
        raise ValueError(
            f"an output shape of {len(counts)} lengths does not fit data of shape {list(data.shape)}"
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
    """Batch and channels of the data, lengths from the second input."""
    return (Known(inputs[0].element_type, _shape(inputs)),)


def infer_adaptive_max_pool(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Maxima and indices have the same shape."""
    return (
        Known(inputs[0].element_type, _shape(inputs)),
        Known(attributes["index_element_type"], _shape(inputs)),
    )


def _shape(inputs: Sequence[Known]) -> PartialShape:
    data, wanted = inputs[0].shape, inputs[1].value
    if data.dimensions is None:
        return data
    if wanted is None:
        return PartialShape((*data.dimensions[:2], *(UNKNOWN,) * (len(data.dimensions) - 2)))
    lengths = [int(one) for one in np.asarray(wanted).reshape(-1)]
    if len(lengths) != len(data.dimensions) - 2 or any(length < 0 for length in lengths):
        raise ValueError(f"output shape {lengths[:8]} does not fit data of shape {data}")
    return PartialShape((*data.dimensions[:2], *map(static, lengths)))
