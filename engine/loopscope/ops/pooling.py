"""Category pooling of the OpenVINO operation specs: average, max and adaptive, axis by axis.

An average is a separable sum divided by the number of elements in each window. The second input of
adaptive pooling is the number of windows, which are spread evenly over each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from math import prod

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import images
from loopscope.ops.gradients import sliding_windows as gradients
from loopscope.ops.kernel_arithmetic import COMPUTED, computable, rounded
from loopscope.ops.kernel_checks import axis_within, check_elements
from loopscope.ops.pooling_windows import (
    WindowFrame,
    combined,
    frame_of,
    infer_adaptive_average_pool,
    infer_adaptive_max_pool,
    infer_max_pool_with_indices,
    infer_pool,
)
from loopscope.ops.window import AUTO_PADS, Lengths


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


def average_pool(
    data: Array,
    /,
    *,
    kernel: Lengths,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    exclude_pad: bool,
    rounding_type: str,
    auto_pad: str,
    dilations: Lengths = (),
) -> Array:
    """Average each window; with ``exclude-pad`` only over the elements that are not padding.

    ``[N, C, lengths...] -> [N, C, places...]``. The average of a window of padding only is 0.
    Integers are rounded half to even, as in the runtime. Without any padding, elements beyond the
    data that rounding ``ceil`` adds to a window never count. Spec: pooling/avg-pool-1, -14, -16.
    """
    frame = frame_of(
        data.shape, kernel, strides, dilations, pads_begin, pads_end, auto_pad, rounding_type
    )
    integer = data.dtype.kind in "iub" or data.dtype.name.startswith(("int", "uint"))
    values = combined(data.astype(np.float64) if integer else computable(data), frame, 0, np.add)
    if exclude_pad or not frame.is_padded:
        values /= _divisor(frame, values.dtype)
    else:
        values /= values.dtype.type(prod(kernel))
    return (np.rint(values) if integer else values).astype(data.dtype, copy=False)


@lru_cache(maxsize=256)
def _divisor(frame: WindowFrame, dtype: np.dtype) -> Array:
    """Return the number of data elements in each window, at least 1, cached by frame.

    The result is a single number if all windows have the same number.
    """
    counts = reduce(
        np.multiply.outer, [_count_along(frame, axis) for axis in range(len(frame.kernel))]
    )
    smallest = counts.min(initial=1)
    divisor: Array = np.maximum(
        counts if smallest != counts.max(initial=1) else smallest, 1
    ).astype(dtype)
    return divisor


def _count_along(frame: WindowFrame, axis: int) -> Array:
    """Return the number of data elements in each window along an axis."""
    first = np.arange(frame.counts[axis]) * frame.strides[axis] - frame.begin[axis]
    reached = first[:, None] + np.arange(frame.kernel[axis]) * frame.dilations[axis]
    return np.count_nonzero((reached >= 0) & (reached < frame.lengths[axis]), axis=1)


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


_WINDOW = (
    Attribute("kernel", "ints", least=1),
    Attribute("strides", "ints", (), least=1),
    Attribute("pads_begin", "ints", (), least=0),
    Attribute("pads_end", "ints", (), least=0),
    Attribute("auto_pad", "str", "explicit", allowed=AUTO_PADS),
)
_FLOOR_OR_CEIL = Attribute("rounding_type", "str", "floor", allowed=("floor", "ceil"))
_ROUNDING = Attribute("rounding_type", "str", "floor", allowed=("floor", "ceil", "ceil_torch"))
_DILATIONS = Attribute("dilations", "ints", (), least=1)
_EXCLUDE = Attribute("exclude-pad", "bool")
_INDEX_TYPE = Attribute(
    "index_element_type", "type", ElementType.I64, allowed=(ElementType.I64, ElementType.I32)
)
_INDICES = (_DILATIONS, _INDEX_TYPE, Attribute("axis", "int", 0))

row = family("pooling", infer=infer_pool, types=(COMPUTED,))
with_indices = family("pooling", infer=infer_max_pool_with_indices, outputs=2, types=(COMPUTED,))
adaptive = family("pooling", inputs=(2, 2), types=(COMPUTED, INDEX_TYPES))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "AvgPool",
        average_pool,
        opsets=(1, 13),
        attributes=(*_WINDOW, _EXCLUDE, _FLOOR_OR_CEIL),
        gradient=gradients.average_pool,
    ),
    row(
        "AvgPool",
        average_pool,
        version=14,
        opsets=(14, 15),
        attributes=(*_WINDOW, _EXCLUDE, _ROUNDING),
        gradient=gradients.average_pool,
    ),
    row(
        "AvgPool",
        average_pool,
        version=16,
        attributes=(*_WINDOW, _EXCLUDE, _ROUNDING, _DILATIONS),
        gradient=gradients.average_pool,
    ),
    row(
        "MaxPool",
        max_pool,
        opsets=(1, 7),
        attributes=(*_WINDOW, _FLOOR_OR_CEIL),
        gradient=gradients.max_pool,
    ),
    with_indices(
        "MaxPool",
        max_pool_with_indices,
        version=8,
        opsets=(8, 13),
        attributes=(*_WINDOW, _FLOOR_OR_CEIL, *_INDICES),
        gradient=gradients.max_pool,
    ),
    with_indices(
        "MaxPool",
        max_pool_with_indices,
        version=14,
        attributes=(*_WINDOW, _ROUNDING, *_INDICES),
        gradient=gradients.max_pool,
    ),
    adaptive(
        "AdaptiveAvgPool",
        adaptive_average_pool,
        version=8,
        infer=infer_adaptive_average_pool,
        gradient=images.adaptive_average_pool,
    ),
    adaptive(
        "AdaptiveMaxPool",
        adaptive_max_pool,
        version=8,
        infer=infer_adaptive_max_pool,
        outputs=2,
        attributes=(_INDEX_TYPE,),
        gradient=images.adaptive_max_pool,
    ),
)
