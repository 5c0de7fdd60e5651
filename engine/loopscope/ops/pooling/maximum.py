"""Max pooling, with and without the indices of the maxima, one axis after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Known
from loopscope.ops.index import axis_within
from loopscope.ops.pooling.pooling_windows import WindowFrame, combined, frame_of, pooled_shape
from loopscope.ops.precision import computable
from loopscope.ops.window import Lengths


def max_pool(
    data: Array,
    /,
    *,
    kernel: Lengths,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    rounding_type: str,
    auto_pad: str,
) -> Array:
    """Return the largest element of each window; padding is smaller than every number.

    ``[N, C, lengths...] -> [N, C, places...]``. Spec: pooling/max-pool-1.
    """
    return largest(
        data,
        frame_of(data.shape, kernel, strides, (), pads_begin, pads_end, auto_pad, rounding_type),
    )


def largest(data: Array, frame: WindowFrame) -> Array:
    """Return the largest element of each window without its index, which takes a quarter of the
    time.
    """
    values = _comparable(data)
    return combined(values, frame, _lowest(values.dtype), np.maximum).astype(data.dtype, copy=False)


def max_pool_with_indices(
    data: Array,
    /,
    *,
    kernel: Lengths,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    rounding_type: str,
    auto_pad: str,
    dilations: Lengths,
    index_element_type: ElementType,
    axis: int,
) -> tuple[Array, Array]:
    """Return the largest element of each window, and the index of the first such element.

    Indices count over the axes from ``axis`` on. If no element exceeds the padding value, the index
    is that of the channel's first element, as in OpenVINO. ``[N, C, lengths...] -> [N, C,
    places...]`` twice. Spec: pooling/max-pool-8, -14.
    """
    frame = frame_of(
        data.shape, kernel, strides, dilations, pads_begin, pads_end, auto_pad, rounding_type
    )
    axis = axis_within(axis, data.ndim)
    values = _comparable(data)
    planes = prod(data.shape[:2])
    check_elements(
        planes * max(prod(frame.counts), prod(frame.surrounded)), "the data of the pooling"
    )
    maxima = np.empty((planes, *frame.counts), values.dtype)
    places = np.empty((planes, *frame.counts), np.uint8 if prod(kernel) <= 256 else np.uint32)
    for block, part in frame.blocks(values, _lowest(values.dtype)):
        maxima[block], places[block] = _find_largest(part, frame, places.dtype)
    where = _indices(
        places, maxima <= _lowest(values.dtype), data.shape, frame, axis, index_element_type.dtype
    )
    return maxima.reshape(where.shape).astype(data.dtype, copy=False), where


def _comparable(data: Array) -> Array:
    return data if data.dtype.kind in "iu" else computable(data)


def _lowest(dtype: np.dtype) -> float:
    """Return the padding value: the lowest finite number, as in OpenVINO, where the page has minus
    infinity.

    A window may be all padding.
    """
    return float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _find_largest(values: Array, frame: WindowFrame, small: np.dtype) -> tuple[Array, Array]:
    """Return the largest elements of ``[planes, lengths...]`` and the kernel position of each,
    flattened.

    Starting at the last axis keeps the first of equal elements in row order.
    """
    kernel_positions: Array | None = None
    below = 1
    for axis in reversed(range(len(frame.kernel))):
        taps = frame.taps(values, 1 + axis, axis)
        tracks = None if kernel_positions is None else frame.taps(kernel_positions, 1 + axis, axis)
        best = taps[0].copy()
        best_positions = np.zeros(best.shape, small) if tracks is None else tracks[0].copy()
        for number, tap in enumerate(taps[1:], start=1):
            is_larger = np.greater(tap, best).view(np.uint8)
            np.maximum(best, tap, out=best)
            # The position is replaced where the element is larger. Arithmetic is faster than a
            # masked copy, and wraps around to the right result.
            change = (
                (0 if tracks is None else tracks[number])
                + small.type(number * below)
                - best_positions
            )
            change *= is_larger
            best_positions += change
        values, kernel_positions, below = best, best_positions, below * frame.kernel[axis]
    return values, np.zeros(values.shape, small) if kernel_positions is None else kernel_positions


def _indices(
    kernel_positions: Array,
    is_lowest: Array,
    shape: Sequence[int],
    frame: WindowFrame,
    axis: int,
    dtype: np.dtype,
) -> Array:
    """Return flat indices from kernel positions; the first of the channel where the maximum is the
    lowest number.
    """
    steps = [prod(shape[position + 1 :]) for position in range(len(shape))]
    reach = np.zeros(1, np.int64)
    first = np.zeros((), np.int64)
    for position, (size, dilation) in enumerate(zip(frame.kernel, frame.dilations, strict=True)):
        step = steps[2 + position] if 2 + position >= axis else 0
        reach = (reach[:, None] + np.arange(size) * dilation * step).reshape(-1)
        corner = (
            np.arange(frame.counts[position]) * frame.strides[position] - frame.begin[position]
        ) * step
        first = np.add.outer(first, corner)
    planes = np.add.outer(
        *(
            np.arange(shape[position]) * (steps[position] if position >= axis else 0)
            for position in (0, 1)
        )
    )
    result = reach.astype(dtype).take(kernel_positions)
    result += first.astype(dtype)
    result[is_lowest] = 0
    result = result.reshape(*shape[:2], *frame.counts)
    result += planes.astype(dtype).reshape(*planes.shape, *(1,) * len(frame.counts))
    if frame.is_padded:
        np.maximum(result, 0, out=result)
    return result


def infer_max_pool_with_indices(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer one shape for maxima and indices."""
    shape = pooled_shape(inputs[0].shape, attributes)
    return (Known(inputs[0].element_type, shape), Known(attributes["index_element_type"], shape))
