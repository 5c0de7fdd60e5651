"""ONNX's Col2Im: columns of blocks added up at the blocks' positions in an image."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.index import whole_numbers
from loopscope.ops.onnx.conditions import check_inputs


def col2im(
    data: Array,
    image_shape: Array,
    block_shape: Array,
    /,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Return ``[N, C * elements of a block, L] -> [N, C, *image_shape]`` for any number of axes.
    Elements in the padding are dropped.
    """
    check_inputs(
        "Col2Im",
        (data, image_shape, block_shape),
        {"dilations": dilations, "pads": pads, "strides": strides},
    )
    image, block = whole_numbers(image_shape), whole_numbers(block_shape)
    axes = len(image)
    steps, gaps, padding = strides or [1] * axes, dilations or [1] * axes, pads or [0] * (2 * axes)
    counts = [
        (length + before + after - gap * (size - 1) - 1) // step + 1
        for length, size, step, gap, before, after in zip(
            image, block, steps, gaps, padding[:axes], padding[axes:], strict=True
        )
    ]
    channels = data.shape[1] // prod(block)
    check_elements(data.shape[0] * channels * prod(image), "the output of Col2Im")
    result = np.zeros((data.shape[0], channels, *image), data.dtype)
    parts = data.reshape(data.shape[0], channels, *block, *counts)
    whole_rows = axes > 1 and tuple(steps[-2:]) == (1, 1) and counts[-1] == image[-1]
    for place in product(*map(range, block)):
        offsets = [
            number * gap - before
            for number, gap, before in zip(place, gaps, padding[:axes], strict=True)
        ]
        cuts = [
            _positions_inside(*numbers)
            for numbers in zip(offsets, steps, counts, image, strict=True)
        ]
        if whole_rows and 0 < abs(offsets[-1]) < image[-1]:
            cuts[-1] = (slice(None), slice(None))
        targets, sources = zip(*cuts, strict=True)
        target = result[(..., *targets)]
        source = parts[(slice(None), slice(None), *place, *sources)]
        if whole_rows and 0 < abs(offsets[-1]) < image[-1]:
            _add_shifted(target, source, offsets[-1])
        else:
            target += source
    return result


def _add_shifted(rows: Array, added: Array, shift: int) -> None:
    """Add to rows ``[..., H, W]`` other rows that lie ``shift`` to the right, without the elements
    that then lie outside.

    All rows are processed as one line, because numpy adds lines several times faster than pieces of
    rows. The elements that run over the end of a row into the next are restored.
    """
    margin = rows[..., :shift] if shift > 0 else rows[..., shift:]
    before = margin.copy()
    target, source = (
        array.reshape(*array.shape[:-2], array.shape[-2] * array.shape[-1])
        for array in (rows, added)
    )
    if shift > 0:
        target[..., shift:] += source[..., :-shift]
    else:
        target[..., :shift] += source[..., -shift:]
    margin[...] = before


def _positions_inside(offset: int, step: int, count: int, length: int) -> tuple[slice, slice]:
    """Return the positions within an axis, of ``count`` positions from an offset in steps, and
    which of them they are.
    """
    first = max(0, -(offset // step))
    last = min(count, (length - 1 - offset) // step + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(offset + first * step, offset + (last - 1) * step + 1, step), slice(first, last)
