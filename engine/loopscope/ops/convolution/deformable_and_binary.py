"""The operations DeformableConvolution and BinaryConvolution.

Window elements of the first are sampled at shifted positions between the grid points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.shape import UNKNOWN, PartialShape
from loopscope.ops.convolution.dense import group_convolution, infer_convolution
from loopscope.ops.declare import Array, Known
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.window import Lengths, pad_data, pads, per_axis, places, span


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
    """Convolve samples at positions shifted by ``offsets`` and weighted by ``mask``.

    Offsets are y and x for each kernel element. ``[N, C, Y, X], [N, D*2*K, Oy, Ox], [O, C/group,
    Ky, Kx], [N, D*K, Oy, Ox] -> [N, O, Oy, Ox]``. Spec: convolution/deformable-convolution-1, -8.
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
            f"offsets of shape {list(offsets.shape)} do not fit {channels} channels, "
            f"kernel {kernel} and {deformable_group} groups"
        )
    wide = computable(data)
    shifts = computable(offsets).reshape(batch, deformable_group, prod(kernel), 2, *counts)
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
            coordinates = [corner[axis] + shifts[image, part, :, axis] for axis in (0, 1)]
            samples = _sample(
                wide[image, part * share : (part + 1) * share],
                coordinates[0],
                coordinates[1],
                bilinear_interpolation_pad,
            )
            if weight is not None:
                samples *= weight[image, part]
            columns[part * share : (part + 1) * share] = samples.reshape(share, prod(kernel), -1)
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
    """Return batch, channels, kernel, number of windows, and the unshifted position of each kernel
    element.

    The positions are ``[K, Oy, 1]`` and ``[K, 1, Ox]``.
    """
    if data.ndim != 4 or filters.ndim != 4 or offsets.ndim != 4:
        raise ValueError(
            f"shapes {[list(array.shape) for array in (data, offsets, filters)]}: expected rank 4"
        )
    if group < 1 or data.shape[1] != group * filters.shape[1] or filters.shape[0] % group:
        raise ValueError(
            f"the data has {data.shape[1]} channels, filters of shape "
            f"{list(filters.shape)} in {group} groups do not fit"
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


def _sample(image: Array, y: Array, x: Array, beyond: bool) -> Array:
    """Return bilinear samples of ``[C, Y, X]`` at positions ``[...]``: ``[C, ...]``, 0 outside.

    With ``beyond``, one row of zeros surrounds the image. Otherwise positions between the last
    points and the border have the border's value.
    """
    height, width = image.shape[1:]
    lower = -1 if beyond else 0
    inside = (
        (y > lower if beyond else y >= 0)
        & (y < height)
        & (x > lower if beyond else x >= 0)
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
            index = np.clip(row, 0, height - 1).astype(np.int64) * width + np.clip(
                column, 0, width - 1
            ).astype(np.int64)
            result += flat[:, index] * np.where(exists, by_row * by_column, 0)
    return result


def infer_deformable_convolution(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch of the data, channels of the filters, and the number of windows along each
    axis.
    """
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


def binary_convolution(
    data: Array,
    filters: Array,
    /,
    *,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    dilations: Lengths,
    auto_pad: str,
    mode: str,
    pad_value: float,
) -> Array:
    """Count equal minus unequal bits under each filter, for data of 0 and 1.

    Other values equal neither bit. ``[N, I, Y, X] x u1 [O, I, Y, X] -> [N, O, Y, X]``; ``mode`` is
    xnor-popcount. Spec: convolution/binary-convolution-1.
    """
    if data.ndim != 4 or filters.ndim != 4:
        raise ValueError(
            f"data of shape {list(data.shape)} and filters of shape "
            f"{list(filters.shape)}: expected rank 4"
        )
    kernel = filters.shape[2:]
    strides, dilations = per_axis(strides, 2, 1, "strides"), per_axis(dilations, 2, 1, "dilations")
    begin, end = per_axis(pads_begin, 2, 0, "pads_begin"), per_axis(pads_end, 2, 0, "pads_end")
    begin, end = pads(data.shape[2:], kernel, strides, dilations, begin, end, auto_pad)
    surrounded = pad_data(computable(data), begin, end, pad_value)
    bits = (filters["u1"] if filters.dtype.names else filters).astype(np.float32)[None]
    ones, zeros = (surrounded == 1).astype(np.float32), (surrounded == 0).astype(np.float32)
    window: dict[str, Any] = {
        "strides": strides,
        "dilations": dilations,
        "pads_begin": (),
        "pads_end": (),
        "auto_pad": "valid",
    }
    equal = group_convolution(ones, bits, **window) + group_convolution(zeros, 1 - bits, **window)
    return rounded(2 * equal - np.float32(np.prod(filters.shape[1:])), data.dtype)


def infer_binary_convolution(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the shape as for Convolution; the element type is the data's."""
    (known,) = infer_convolution(
        [Known(None, inputs[0].shape), Known(None, inputs[1].shape)], attributes
    )
    return (Known(inputs[0].element_type, known.shape),)
