"""Extraction of sliding patches from images, and the sum of patches into an image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INDEX_TYPES
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import images as gradients
from loopscope.ops.kernel_arithmetic import accumulator
from loopscope.ops.kernel_checks import check_elements, whole_numbers


def extract_image_patches(
    data: Array,
    /,
    *,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    auto_pad: str,
) -> Array:
    """Extract patches from images: [N, C, H, W] to [N, rows * columns * C, H', W'].

    Patches have ``sizes``, begin ``strides`` apart, and their elements are ``rates`` apart.
    """
    if data.ndim != 4:
        raise ValueError(f"an image of shape {list(data.shape)}, expected 4 axes")
    batch, depth = data.shape[:2]
    spans = [_span(*pair) for pair in zip(sizes, rates, strict=True)]
    counts, pads = zip(
        *(_patches(*axis, auto_pad) for axis in zip(data.shape[2:], spans, strides, strict=True)),
        strict=True,
    )
    shape = (batch, math.prod(sizes) * depth, *counts)
    check_elements(math.prod(shape), "the patches")
    if math.prod(shape) == 0:
        return np.zeros(shape, data.dtype)
    lengths = [
        (count - 1) * stride + span
        for count, stride, span in zip(counts, strides, spans, strict=True)
    ]
    framed = _frame(data, pads, lengths)
    result = np.empty((batch, *sizes, depth, *counts), data.dtype)
    for row in range(sizes[0]):
        for column in range(sizes[1]):
            rows = _strided(row * rates[0], strides[0], counts[0])
            columns = _strided(column * rates[1], strides[1], counts[1])
            result[:, row, column] = framed[:, :, rows, columns]
    return result.reshape(shape)


def _frame(data: Array, pads: Sequence[int], lengths: Sequence[int]) -> np.ndarray:
    """Put ``pads`` zeros before each spatial axis, then cut or fill it with zeros to
    ``lengths``.
    """
    framed = np.zeros((*data.shape[:2], *lengths), data.dtype)
    rows, columns = (
        min(whole, length - pad)
        for whole, length, pad in zip(data.shape[2:], lengths, pads, strict=True)
    )
    framed[:, :, pads[0] : pads[0] + rows, pads[1] : pads[1] + columns] = data[
        :, :, :rows, :columns
    ]
    return framed


def _span(size: int, rate: int) -> int:
    return (size - 1) * rate + 1


def _patches(whole: int, span: int, stride: int, auto_pad: str) -> tuple[int, int]:
    """Return the number of patches along an axis, and the number of zeros before it."""
    if auto_pad == "valid":
        return (max((whole - span) // stride + 1, 0) if whole >= span else 0), 0
    count = -(-whole // stride)
    missing = max((count - 1) * stride + span - whole, 0)
    return count, missing // 2 if auto_pad == "same_upper" else missing - missing // 2


def _infer_patches(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    dimensions = inputs[0].shape.dimensions or (UNKNOWN,) * 4
    if len(dimensions) != 4:
        raise ValueError(f"an image of shape {inputs[0].shape}, expected 4 axes")
    if not len(attributes["sizes"]) == len(attributes["strides"]) == len(attributes["rates"]) == 2:
        raise ValueError("sizes, strides and rates have two numbers each, for rows and columns")
    lengths = []
    for whole, size, stride, rate in zip(
        dimensions[2:], attributes["sizes"], attributes["strides"], attributes["rates"], strict=True
    ):
        lower = _patches(whole.least, _span(size, rate), stride, attributes["auto_pad"])[0]
        upper = (
            None
            if whole.most is None
            else _patches(whole.most, _span(size, rate), stride, attributes["auto_pad"])[0]
        )
        lengths.append(Dimension(lower, upper))
    shape = PartialShape((dimensions[0], dimensions[1] * math.prod(attributes["sizes"]), *lengths))
    return (Known(inputs[0].element_type, shape),)


def col2im(
    data: Array,
    output_size: Array,
    kernel_size: Array,
    /,
    *,
    strides: tuple[int, ...] = (1, 1),
    dilations: tuple[int, ...] = (1, 1),
    pads_begin: tuple[int, ...] = (0, 0),
    pads_end: tuple[int, ...] = (0, 0),
) -> Array:
    """Sum blocks at their positions in an image.

    [N, C * rows * columns, L] (or without N) becomes [N, C, *output_size].
    """
    output, kernel = whole_numbers(output_size), whole_numbers(kernel_size)
    counts = _block_counts(output, kernel, strides, dilations, pads_begin, pads_end)
    blocks = data if data.ndim == 3 else data[None]
    if (
        blocks.ndim != 3
        or blocks.shape[1] % math.prod(kernel)
        or blocks.shape[2] != math.prod(counts)
    ):
        raise ValueError(
            f"blocks of shape {list(data.shape)}: kernel {kernel} on an image "
            f"{output} makes {math.prod(counts)} of them"
        )
    padded = [
        begin + length + end
        for begin, length, end in zip(pads_begin, output, pads_end, strict=True)
    ]
    batch, depth = blocks.shape[0], blocks.shape[1] // math.prod(kernel)
    check_elements(batch * depth * math.prod(padded), "the image")
    image = np.zeros((batch, depth, *padded), accumulator(data.dtype))
    cut = blocks.reshape((batch, depth, *kernel, *counts))
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            rows = _strided(row * dilations[0], strides[0], counts[0])
            columns = _strided(column * dilations[1], strides[1], counts[1])
            image[:, :, rows, columns] += cut[:, :, row, column].astype(image.dtype)
    inner = image[
        :, :, pads_begin[0] : pads_begin[0] + output[0], pads_begin[1] : pads_begin[1] + output[1]
    ].astype(data.dtype)
    return inner if data.ndim == 3 else inner[0]


def _strided(start: int, stride: int, count: int) -> slice:
    return slice(start, start + stride * (count - 1) + 1, stride)


def _block_counts(output: list[int], kernel: list[int], *settings: tuple[int, ...]) -> list[int]:
    if len(output) != 2 or len(kernel) != 2 or any(len(setting) != 2 for setting in settings):
        raise ValueError(
            f"output {output}, kernel {kernel} and all attributes have two numbers "
            "each, for rows and columns"
        )
    if min(output) < 0 or min(kernel) < 1:
        raise ValueError(f"output {output} and kernel {kernel} are not sizes")
    counts = []
    for length, size, stride, dilation, begin, end in zip(output, kernel, *settings, strict=True):
        counts.append((length + begin + end - dilation * (size - 1) - 1) // stride + 1)
    if min(counts) < 1:
        raise ValueError(f"a kernel {kernel} does not fit into an image {output}")
    return counts


def _infer_col2im(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, output, kernel = inputs
    lengths = (
        (UNKNOWN, UNKNOWN)
        if output.value is None
        else tuple(static(length) for length in whole_numbers(output.value))
    )
    if data.shape.dimensions is None:
        return (Known(data.element_type),)
    *batch, depth, _ = data.shape.dimensions
    channels = UNKNOWN
    if kernel.value is not None and depth.is_static:
        size = math.prod(whole_numbers(kernel.value))
        if size < 1 or depth.length % size:
            raise ValueError(f"blocks of {depth} elements are not a multiple of a kernel of {size}")
        channels = static(depth.length // size)
    return (Known(data.element_type, PartialShape((*batch, channels, *lengths))),)


row = family("movement")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Col2Im",
        col2im,
        version=15,
        page="movement/col2im-15",
        infer=_infer_col2im,
        inputs=(3, 3),
        types=(ANY_TYPE, INDEX_TYPES),
        attributes=(
            Attribute("strides", "ints", (1, 1), least=1),
            Attribute("dilations", "ints", (1, 1), least=1),
            Attribute("pads_begin", "ints", (0, 0), least=0),
            Attribute("pads_end", "ints", (0, 0), least=0),
        ),
        gradient=gradients.col2im,
    ),
    row(
        "ExtractImagePatches",
        extract_image_patches,
        version=3,
        infer=_infer_patches,
        attributes=(
            Attribute("sizes", "ints", least=1),
            Attribute("strides", "ints", least=1),
            Attribute("rates", "ints", least=1),
            Attribute("auto_pad", "str", allowed=("valid", "same_upper", "same_lower")),
        ),
        gradient=gradients.rearranged("extract_image_patches"),
    ),
)
