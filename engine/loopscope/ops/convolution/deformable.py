"""DeformableConvolution: windows whose elements are read from shifted places, between the grid's
points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.shape import UNKNOWN, PartialShape
from loopscope.ops.bounds import check_elements
from loopscope.ops.convolution.dense import infer_convolution
from loopscope.ops.declare import Array, Known
from loopscope.ops.precision import computable, rounded
from loopscope.ops.window import Lengths, pads, per_axis, places, span


def deformable_convolution(
    data: Array,
    offsets: Array,
    filters: Array,
    mask: Array | None = None,
    /,
    *,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    dilations: Lengths,
    auto_pad: str,
    group: int,
    deformable_group: int,
    bilinear_interpolation_pad: bool = False,
) -> Array:
    """Convolution over places moved by ``offsets`` (y, x for each kernel element), weighted by
    ``mask``.

    ``[N, C, Y, X], [N, D*2*K, Oy, Ox], [O, C/group, Ky, Kx], [N, D*K, Oy, Ox] -> [N, O, Oy, Ox]``.
    Spec: convolution/deformable-convolution-1, -8.
    """
    batch, channels, kernel, counts, corner = _frame(
        data, offsets, filters, strides, pads_begin, pads_end, dilations, auto_pad, group
    )
    if (
        deformable_group < 1
        or channels % deformable_group
        or offsets.shape[1] != 2 * deformable_group * prod(kernel)
    ):
        raise ValueError(
            f"offsets of shape {list(offsets.shape)} do not fit {channels} channels, kernel {kernel} and {deformable_group} groups"
        )
    wide, moved = (
        computable(data),
        computable(offsets).reshape(batch, deformable_group, prod(kernel), 2, *counts),
    )
    weight = (
        None
        if mask is None
        else computable(mask).reshape(batch, deformable_group, prod(kernel), *counts)
    )
    weights = computable(filters).reshape(group, filters.shape[0] // group, -1)
    result = np.empty((batch, group, filters.shape[0] // group, prod(counts)), wide.dtype)
    for image in range(batch):
        columns = np.empty((channels, prod(kernel), prod(counts)), wide.dtype)
        share = channels // deformable_group
        for part in range(deformable_group):
            there = [corner[axis] + moved[image, part, :, axis] for axis in (0, 1)]
            taken = _sampled(
                wide[image, part * share : (part + 1) * share],
                there[0],
                there[1],
                bilinear_interpolation_pad,
            )
            if weight is not None:
                taken *= weight[image, part]
            columns[part * share : (part + 1) * share] = taken.reshape(share, prod(kernel), -1)
        np.matmul(weights, columns.reshape(group, -1, prod(counts)), out=result[image])
    return rounded(result.reshape(batch, filters.shape[0], *counts), data.dtype)


def _frame(
    data: Array,
    offsets: Array,
    filters: Array,
    strides: Lengths,
    begin: Lengths,
    end: Lengths,
    dilations: Lengths,
    auto_pad: str,
    group: int,
) -> tuple[int, int, Lengths, Lengths, tuple[Array, Array]]:
    """Batch, channels, kernel, places, and where each kernel element lies before it is moved:
    ``[K, Oy, 1]`` and ``[K, 1, Ox]``.
    """
    if data.ndim != 4 or filters.ndim != 4 or offsets.ndim != 4:
        raise ValueError(
            f"shapes {[list(one.shape) for one in (data, offsets, filters)]}: expected rank 4"
        )
    if group < 1 or data.shape[1] != group * filters.shape[1] or filters.shape[0] % group:
        raise ValueError(
            f"the data has {data.shape[1]} channels, filters of shape {list(filters.shape)} in {group} groups do not fit"
        )
    kernel = tuple(filters.shape[2:])
    strides, dilations = per_axis(strides, 2, 1, "strides"), per_axis(dilations, 2, 1, "dilations")
    begin, end = per_axis(begin, 2, 0, "pads_begin"), per_axis(end, 2, 0, "pads_end")
    begin, end = pads(data.shape[2:], kernel, strides, dilations, begin, end, auto_pad)
    counts = tuple(
        places(
            data.shape[2 + axis],
            span(kernel[axis], dilations[axis]),
            strides[axis],
            begin[axis],
            end[axis],
        )
        for axis in (0, 1)
    )
    if tuple(offsets.shape[2:]) != counts:
        raise ValueError(
            f"offsets of shape {list(offsets.shape)} are not for {list(counts)} places"
        )
    check_elements(
        data.shape[1] * prod(kernel) * prod(counts), "the columns of the deformable convolution"
    )
    check_elements(
        data.shape[0] * filters.shape[0] * prod(counts), "the result of the deformable convolution"
    )
    base = [np.arange(counts[axis]) * strides[axis] - begin[axis] for axis in (0, 1)]
    taps = np.indices(kernel).reshape(2, -1) * np.array(dilations)[:, None]
    corner = ((taps[0][:, None] + base[0])[:, :, None], (taps[1][:, None] + base[1])[:, None, :])
    return data.shape[0], data.shape[1], kernel, counts, corner


def _sampled(image: Array, y: Array, x: Array, beyond: bool) -> Array:
    """Bilinear samples of ``[C, Y, X]`` at places ``[...]``: ``[C, ...]``, 0 outside.

    With ``beyond`` the image goes on for one point of zeros on each side, else places between the
    last points and the border take the border's value.
    """
    height, width = image.shape[1:]
    least = -1 if beyond else 0
    inside = (
        (y > least if beyond else y >= 0)
        & (y < height)
        & (x > least if beyond else x >= 0)
        & (x < width)
    )
    y, x = np.where(inside, y, 0), np.where(inside, x, 0)
    top, left = np.floor(y), np.floor(x)
    down, right = (y - top).astype(image.dtype), (x - left).astype(image.dtype)
    flat = image.reshape(image.shape[0], height * width)
    result = np.zeros((image.shape[0], *y.shape), image.dtype)
    for row, by_row in ((top, 1 - down), (top + 1, down)):
        for column, by_column in ((left, 1 - right), (left + 1, right)):
            exists = (
                inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
                if beyond
                else inside
            )
            place = np.clip(row, 0, height - 1).astype(np.int64) * width + np.clip(
                column, 0, width - 1
            ).astype(np.int64)
            result += flat[:, place] * np.where(exists, by_row * by_column, 0)
    return result


def infer_deformable_convolution(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Batch of the data, channels of the filters, places of the windows."""
    data, filters = inputs[0].shape, inputs[2].shape
    if data.dimensions is None or filters.dimensions is None:
        return (
            Known(
                inputs[0].element_type, PartialShape((data.at(0), filters.at(0), UNKNOWN, UNKNOWN))
            ),
        )
    if len(data.dimensions) != 4 or len(filters.dimensions) != 4:
        raise ValueError(f"data of shape {data} and filters of shape {filters}: expected rank 4")
    whole = PartialShape(
        (filters.at(0), filters.at(1) * attributes["group"], *filters.dimensions[2:])
    )
    (known,) = infer_convolution(
        [Known(inputs[0].element_type, data), Known(inputs[2].element_type, whole)], attributes
    )
    return (known,)
