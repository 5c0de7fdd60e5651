"""Convolution and GroupConvolution as products of filters with columns of windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Known
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.window import (
    Lengths,
    inferred,
    overlap,
    pad_data,
    pads,
    per_axis,
    places,
    span,
    windows,
)

_BLOCK_ELEMENTS = 1 << 18
"""Approximate size of a block of columns, which stays in a processor's cache while it is
multiplied.
"""
_ROWS_ELEMENTS = 1 << 22
"""Maximum size of the columns of kernel rows, which are built once and used by all kernel rows."""
_GROUPS_ELEMENTS = 1 << 19
"""Approximate size of the columns of the groups that are processed together."""
_STACK_ELEMENTS = 1 << 18
_MAX_GATHERED_ELEMENTS = 1 << 14
"""Number of column elements up to which they are gathered one by one, because the overhead of calls
dominates.
"""
_MIN_PLACES_FOR_ROWS = 600
"""Number of output positions from which one product per kernel row is faster than copying columns
for one product.
"""


def convolution(
    data: Array,
    filters: Array,
    /,
    *,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    dilations: Lengths,
    auto_pad: str,
) -> Array:
    """Correlate 1 to 3 spatial axes with filters.

    ``[N, I, lengths...] x [O, I, kernel...] -> [N, O, places...]``. Spec:
    convolution/convolution-1.
    """
    return group_convolution(
        data,
        filters[None],
        strides=strides,
        pads_begin=pads_begin,
        pads_end=pads_end,
        dilations=dilations,
        auto_pad=auto_pad,
    )


def group_convolution(
    data: Array,
    filters: Array,
    /,
    *,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    dilations: Lengths,
    auto_pad: str,
) -> Array:
    """Correlate within each group of channels.

    ``[N, G*I, lengths...] x [G, O, I, kernel...] -> [N, G*O, places...]``. Spec:
    convolution/group-convolution-1.
    """
    axes = data.ndim - 2
    if not 1 <= axes <= 3 or filters.ndim != axes + 3:
        raise ValueError(
            f"data of shape {list(data.shape)} and filters of rank {filters.ndim - 1} do not fit"
        )
    groups, outputs, inputs, *sizes = filters.shape
    if data.shape[1] != groups * inputs:
        raise ValueError(
            f"the data has {data.shape[1]} channels, the filters expect {groups * inputs}"
        )
    placed = window_placement(
        data.shape[2:], tuple(sizes), strides, dilations, pads_begin, pads_end, auto_pad
    )
    batch = data.shape[0]
    check_elements(batch * groups * outputs * placed.places, "the result of the convolution")
    grouped = computable(data).reshape(batch, groups, inputs, *data.shape[2:])
    result = _correlate(grouped, computable(filters), placed)
    return rounded(result.reshape(batch, groups * outputs, *placed.counts), data.dtype)


class WindowPlacement(NamedTuple):
    """Positions of the windows on the spatial axes, with the number of windows per axis and in
    all.
    """

    kernel: Lengths
    strides: Lengths
    dilations: Lengths
    begin: Lengths
    end: Lengths
    counts: Lengths
    places: int
    is_bare: bool
    """True if a window is one element and padding is 0."""


@lru_cache(maxsize=256)
def window_placement(
    lengths: Lengths,
    kernel: Lengths,
    strides: Lengths,
    dilations: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    auto_pad: str,
) -> WindowPlacement:
    """Return the windows of a kernel on axes of these lengths.

    The result is cached, because a model uses few placements many times.
    """
    axes = len(kernel)
    strides = per_axis(strides, axes, 1, "strides")
    dilations = per_axis(dilations, axes, 1, "dilations")
    begin = per_axis(pads_begin, axes, 0, "pads_begin")
    end = per_axis(pads_end, axes, 0, "pads_end")
    begin, end = pads(lengths, kernel, strides, dilations, begin, end, auto_pad)
    each = zip(lengths, kernel, dilations, strides, begin, end, strict=True)
    counts = tuple(
        places(length, span(size, dilation), stride, low, high)
        for length, size, dilation, stride, low, high in each
    )
    is_bare = all(size == 1 for size in kernel) and not any(begin) and not any(end)
    return WindowPlacement(kernel, strides, dilations, begin, end, counts, prod(counts), is_bare)


@lru_cache(maxsize=64)
def _taps(lengths: Lengths, placed: WindowPlacement) -> tuple[Array, Array | None]:
    """Return for each kernel element and window the flat index over all spatial axes.

    The second result is True for the indices outside the data, or None if all are inside.
    """
    indices, outside = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.bool_)
    for length, size, stride, dilation, low, count in zip(
        lengths,
        placed.kernel,
        placed.strides,
        placed.dilations,
        placed.begin,
        placed.counts,
        strict=True,
    ):
        along = np.arange(count) * stride + np.arange(size)[:, None] * dilation - low
        beyond = (along < 0) | (along >= length)
        taps, window_count = len(indices) * size, indices.shape[1] * count
        indices = (indices[:, None, :, None] * length + along.clip(0, length - 1)[:, None]).reshape(
            taps, window_count
        )
        outside = (outside[:, None, :, None] | beyond[:, None]).reshape(taps, window_count)
    return indices, outside if outside.any() else None


def _multiply_gathered(data: Array, filters: Array, placed: WindowPlacement) -> Array:
    """Multiply filters with all columns at once; the few elements are gathered one by one, without
    a padded copy.
    """
    groups, outputs, inputs = filters.shape[:3]
    indices, outside = _taps(data.shape[3:], placed)
    columns = data.reshape(len(data), groups, inputs, -1).take(indices, 3)
    if outside is not None:
        np.copyto(columns, 0, where=outside)
    return np.matmul(
        filters.reshape(groups, outputs, -1), columns.reshape(len(data), groups, -1, placed.places)
    )


def _correlate(data: Array, filters: Array, placed: WindowPlacement) -> Array:
    """Compute ``[N, G, I, lengths...] x [G, O, I, kernel...] -> [N, G, O, places]``."""
    groups, outputs, inputs = filters.shape[:3]
    kernel, strides, dilations, begin, end, counts, spots, is_bare = placed
    batch = data.shape[0]
    if is_bare:
        strided: tuple[Any, ...] = (..., *(slice(None, None, stride) for stride in strides))
        sampled = data[strided] if any(stride > 1 for stride in strides) else data
        return np.matmul(
            filters.reshape(groups, outputs, inputs), sampled.reshape(batch, groups, inputs, spots)
        )
    if (
        data.size > 0
        and 0 < batch * groups * inputs * prod(kernel) * spots <= _MAX_GATHERED_ELEMENTS
    ):
        return _multiply_gathered(data, filters, placed)
    result = np.empty((batch, groups, outputs, spots), data.dtype)
    if not result.size:
        return result
    if (
        len(kernel) == 2
        and strides[0] == 1
        and kernel[0] > 1
        and (inputs > 1 or (groups > outputs == 1 and kernel[1] > 1))
    ):
        lines = (counts[0] + (kernel[0] - 1) * dilations[0]) * counts[1]
        groups_at_once = max(1, _GROUPS_ELEMENTS // (inputs * kernel[1] * lines))
        for start in range(0, groups, groups_at_once):
            group_slice = slice(start, start + groups_at_once)
            _multiply_kernel_rows(
                data[:, group_slice],
                filters[group_slice],
                result[:, group_slice],
                counts,
                strides[1],
                dilations,
                begin,
            )
    else:
        _multiply_blocks(
            windows(pad_data(data, begin, end), kernel, counts, strides, dilations),
            filters.reshape(groups, outputs, -1),
            result,
        )
    return result


def _multiply_blocks(view: Array, filters: Array, result: Array) -> None:
    """Multiply filters ``[G, O, C]`` with columns, one product per block of positions along the
    first spatial axis.
    """
    batch, groups = view.shape[:2]
    counts = view.shape[3 + (view.ndim - 3) // 2 :]
    column = filters.shape[2]
    row = prod(counts[1:])
    step = max(1, _BLOCK_ELEMENTS // max(1, groups * column * row))
    images_at_once = max(1, step // counts[0])
    middle = (slice(None),) * ((view.ndim - 3) // 2 + 1)
    for start in range(0, batch, images_at_once):
        for top in range(0, counts[0], step):
            block = view[
                (slice(start, start + images_at_once), slice(None), *middle, slice(top, top + step))
            ]
            rows = block.shape[3 + len(counts)]
            columns = np.ascontiguousarray(block).reshape(
                block.shape[0], groups, column, rows * row
            )
            np.matmul(
                filters,
                columns,
                out=result[start : start + images_at_once, :, :, top * row : (top + rows) * row],
            )


def _multiply_kernel_rows(
    data: Array,
    filters: Array,
    result: Array,
    counts: Lengths,
    stride: int,
    dilations: Lengths,
    begin: Lengths,
) -> None:
    """Build the columns of one kernel row and use them for all kernel rows, shifted by whole
    lines.
    """
    groups, _, inputs, height, width = filters.shape
    reach = (height - 1) * dilations[0]
    whole = prod(counts) >= _MIN_PLACES_FOR_ROWS or inputs == 1
    multiply = _multiply_row_by_row if whole else _multiply_stacked
    channel_count = (
        inputs
        if whole or groups > 1
        else min(inputs, max(1, _STACK_ELEMENTS // (height * width * prod(counts))))
    )
    step = min(counts[0], max(1, _ROWS_ELEMENTS // (groups * inputs * width * counts[1])))
    columns = np.empty((groups, channel_count, width, step + reach, counts[1]), data.dtype)
    for image in range(data.shape[0]):
        for top in range(0, counts[0], step):
            rows = min(step, counts[0] - top)
            target = result[image, :, :, top * counts[1] : (top + rows) * counts[1]]
            for start in range(0, inputs, channel_count):
                channels = slice(start, min(start + channel_count, inputs))
                part = columns[:, : channels.stop - start, :, : rows + reach]
                _fill_rows(
                    part, data[image, :, channels], top - begin[0], stride, dilations[1], begin[1]
                )
                shifted = [
                    part[:, :, :, place : place + rows]
                    for place in range(0, reach + 1, dilations[0])
                ]
                multiply(filters[:, :, channels], shifted, target, start > 0)


def _multiply_row_by_row(
    filters: Array, shifted: Sequence[Array], target: Array, add: bool
) -> None:
    """Multiply ``[G, O, C, Y, X]`` with columns ``[G, C, X, lines, places]`` for each kernel row.

    The sum of the products is stored in ``target [G, O, P]``.
    """
    groups, outputs, inputs, height, width = filters.shape
    by_row = np.ascontiguousarray(filters.transpose(3, 0, 1, 2, 4)).reshape(
        height, groups, outputs, inputs * width
    )
    scratch = np.empty(target.shape, target.dtype)
    for row, columns in enumerate(shifted):
        fresh = not row and not add
        # The lines of a channel are contiguous, so merging the axes does not copy.
        np.matmul(
            by_row[row],
            columns.reshape(groups, inputs * width, -1),
            out=target if fresh else scratch,
        )
        if not fresh:
            target += scratch


def _multiply_stacked(filters: Array, shifted: Sequence[Array], target: Array, add: bool) -> None:
    """Compute the same as ``_row_by_row`` by one product, with the columns of all kernel rows
    copied together.
    """
    groups, outputs, inputs, height, width = filters.shape
    stacked = np.empty((groups, inputs, height, width, target.shape[-1]), target.dtype)
    for row, columns in enumerate(shifted):
        stacked[:, :, row] = columns.reshape(groups, inputs, width, -1)
    flat = stacked.reshape(groups, inputs * height * width, -1)
    if add:
        target += np.matmul(filters.reshape(groups, outputs, -1), flat)
    else:
        np.matmul(filters.reshape(groups, outputs, -1), flat, out=target)


def _fill_rows(
    columns: Array, image: Array, first: int, stride: int, dilation: int, before: int
) -> None:
    """Fill ``columns [G, I, W, lines, places]`` from ``image [G, I, Y, X]``.

    The kernel's columns are side by side, for lines from ``first`` on. Elements outside the image
    are 0.
    """
    lines, places_along = columns.shape[3:]
    height, width = image.shape[2:]
    above, below = max(0, -first), max(0, min(lines, height - first))
    columns[:, :, :, :above] = 0
    columns[:, :, :, max(above, below) :] = 0
    for tap in range(columns.shape[2]):
        target, source = overlap(tap * dilation - before, stride, places_along, width)
        part = columns[:, :, tap, above:below]
        part[..., : source.start] = 0
        part[..., source.stop :] = 0
        part[..., source] = image[:, :, first + above : first + below, target]


def infer_convolution(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch of the data, channels of the filters, and the number of windows along each
    axis.
    """
    return _infer(inputs, attributes, grouped=False)


def infer_group_convolution(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer as for Convolution, with the channels of all groups."""
    return _infer(inputs, attributes, grouped=True)


def _infer(
    inputs: Sequence[Known], attributes: Mapping[str, Any], *, grouped: bool
) -> tuple[Known, ...]:
    element_type = common_type(inputs[:2])
    axes = spatial_axes(inputs[0], inputs[1], 3 if grouped else 2, attributes)
    if axes is None:
        return (Known(element_type),)
    data, filters = inputs[0].shape, inputs[1].shape
    leading = 2 if not grouped else 3
    expected = filters.at(1) if not grouped else filters.at(0) * filters.at(2)
    if filters.dimensions is not None and data.at(1).intersect(expected) is None:
        raise ValueError(f"the data has {data.at(1)} channels, the filters expect {expected}")
    channels = filters.at(0) if not grouped else groups_of(data, filters, 2) * filters.at(1)
    strides = per_axis(attributes["strides"], axes, 1, "strides")
    dilations = per_axis(attributes["dilations"], axes, 1, "dilations")
    begin = per_axis(attributes["pads_begin"], axes, 0, "pads_begin")
    end = per_axis(attributes["pads_end"], axes, 0, "pads_end")
    result: list[Dimension] = [data.at(0), channels if filters.dimensions is not None else UNKNOWN]
    for axis in range(axes):
        kernel = filters.at(leading + axis)
        result.append(
            inferred(
                data.at(2 + axis),
                kernel,
                strides[axis],
                dilations[axis],
                begin[axis],
                end[axis],
                attributes["auto_pad"],
            )
        )
    return (Known(element_type, PartialShape(tuple(result))),)


def groups_of(data: PartialShape, filters: PartialShape, channels: int) -> Dimension:
    """Return the number of groups from the filters, or else the data's channels divided by the
    filters' channels.

    ``channels`` is the axis of the filters with their input or output channels.
    """
    whole, part = data.at(1), filters.at(channels)
    follows = not filters.at(0).is_static and whole.is_static and part.is_static and part.length > 0
    return static(whole.length // part.length) if follows else filters.at(0)


def spatial_axes(
    data: Known, filters: Known, leading: int, attributes: Mapping[str, Any]
) -> int | None:
    """Return the number of spatial axes as far as it is known, also from the strides.

    Raise ``ValueError`` if data and filters disagree.
    """
    data_axes = None if data.shape.rank is None else data.shape.rank - 2
    filter_axes = None if filters.shape.rank is None else filters.shape.rank - leading
    if data_axes is not None and filter_axes is not None and data_axes != filter_axes:
        raise ValueError(
            f"data of shape {data.shape} and filters of shape {filters.shape} differ "
            "in spatial axes"
        )
    axes = (
        data_axes
        if data_axes is not None
        else filter_axes
        if filter_axes is not None
        else len(attributes["strides"]) or None
    )
    if axes is not None and not 1 <= axes <= 3:
        raise ValueError(f"data of shape {data.shape}: there must be 1 to 3 spatial axes")
    return axes
