"""Sliding windows of convolution and pooling: padding, number of window positions, partial
shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.kernel_checks import check_elements

Lengths = tuple[int, ...]
AUTO_PADS = ("explicit", "same_upper", "same_lower", "valid")


def per_axis(values: Sequence[int], axes: int, default: int, name: str) -> Lengths:
    """Return one value for each spatial axis; all ``default`` when the attribute was omitted.

    >>> per_axis((), 2, 1, "strides")
    (1, 1)
    """
    if not values:
        return (default,) * axes
    if len(values) != axes:
        raise ValueError(f"{name} has {len(values)} values, the data has {axes} spatial axes")
    return tuple(values)


def span(kernel: int, dilation: int) -> int:
    """Return the length that a dilated kernel covers."""
    return (kernel - 1) * dilation + 1


def pads(
    lengths: Sequence[int],
    kernel: Lengths,
    strides: Lengths,
    dilations: Lengths,
    begin: Lengths,
    end: Lengths,
    auto_pad: str,
) -> tuple[Lengths, Lengths]:
    """Return the padding at both ends of each axis.

    ``same_upper`` and ``same_lower`` pad for ``ceil(length / stride)`` positions, ``valid`` does
    not pad, every other mode uses ``begin`` and ``end``.
    """
    match auto_pad:
        case "valid":
            return (0,) * len(kernel), (0,) * len(kernel)
        case "same_upper" | "same_lower":
            low, high = [], []
            for length, size, stride, dilation in zip(
                lengths, kernel, strides, dilations, strict=True
            ):
                total = max((-(-length // stride) - 1) * stride + span(size, dilation) - length, 0)
                low.append(total // 2)
                high.append(total - total // 2)
            return (
                (tuple(low), tuple(high)) if auto_pad == "same_upper" else (tuple(high), tuple(low))
            )
        case _:
            return begin, end


def places(
    length: int, reach: int, stride: int, begin: int, end: int, rounding: str = "floor"
) -> int:
    """Return how many windows of ``reach`` fit along a padded axis; raise ``ValueError`` if none
    fits.

    >>> places(7, 3, 2, 0, 0), places(6, 3, 2, 0, 0), places(6, 3, 2, 0, 0, "ceil")
    (3, 2, 3)
    """
    room = length + begin + end - reach
    if room < 0:
        raise ValueError(
            f"a window of {reach} does not fit in a length of {length} padded by {begin} and {end}"
        )
    if rounding == "floor":
        return room // stride + 1
    count = -(-room // stride) + 1
    if rounding == "ceil_torch" and (count - 1) * stride >= length + begin:
        count -= 1
    return count


def pad_data(data: np.ndarray, begin: Lengths, end: Lengths, value: float = 0) -> np.ndarray:
    """Return a C-contiguous array with ``value`` around the trailing axes."""
    if not any(begin) and not any(end):
        return np.ascontiguousarray(data)
    leading = data.shape[: data.ndim - len(begin)]
    inner = data.shape[len(leading) :]
    shape = (
        *leading,
        *(low + length + high for low, length, high in zip(begin, inner, end, strict=True)),
    )
    check_elements(prod(shape), "the padded data")
    result = np.full(shape, value, data.dtype) if value else np.zeros(shape, data.dtype)
    inside: tuple[Any, ...] = (
        ...,
        *(slice(low, low + length) for low, length in zip(begin, inner, strict=True)),
    )
    result[inside] = data
    return result


def windows(
    data: np.ndarray, kernel: Lengths, counts: Lengths, strides: Lengths, dilations: Lengths
) -> np.ndarray:
    """Return a read-only view ``[leading..., kernel..., counts...]`` of C-contiguous padded data
    ``[leading..., lengths...]``.
    """
    leading = data.ndim - len(kernel)
    steps = data.strides[leading:]
    shape = (*data.shape[:leading], *kernel, *counts)
    strides = (
        *data.strides[:leading],
        *(step * dilation for step, dilation in zip(steps, dilations, strict=True)),
        *(step * stride for step, stride in zip(steps, strides, strict=True)),
    )
    if data.dtype.kind not in "fiu":
        return np.lib.stride_tricks.as_strided(data, shape, strides, writeable=False)
    # Constructing the array is five times as fast as as_strided, for types that have a buffer. A
    # small convolution spends most of its time here.
    view = np.ndarray(shape, data.dtype, data, 0, strides)
    view.flags.writeable = False
    return view


def overlap(shift: int, stride: int, count: int, length: int) -> tuple[slice, slice]:
    """Return two slices for ``shift + stride * i``, ``i < count``: the positions within a length,
    and their ``i``.

    >>> overlap(-1, 2, 4, 6)
    (slice(1, 6, 2), slice(1, 4, None))
    """
    first = max(0, -(shift // stride)) if shift < 0 else 0
    last = min(count, (length - 1 - shift) // stride + 1) if length > shift else 0
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(shift + stride * first, shift + stride * (last - 1) + 1, stride), slice(
        first, last
    )


def inferred(
    lengths: Dimension,
    kernel: Dimension,
    stride: int,
    dilation: int,
    begin: int,
    end: int,
    auto_pad: str,
    rounding: str = "floor",
) -> Dimension:
    """Return the bounds of the number of positions along an axis with bounded length.

    The lower bound is 1, because a length that cannot contain a window is an error.
    """

    def count(length: int, size: int) -> int:
        low, high = pads((length,), (size,), (stride,), (dilation,), (begin,), (end,), auto_pad)
        return places(length, span(size, dilation), stride, low[0], high[0], rounding)

    # With "same" padding the kernel's size does not matter, and an empty axis has no positions.
    if auto_pad in ("same_upper", "same_lower"):
        size = kernel.length if kernel.is_static else stride
        return Dimension(
            count(lengths.least, size) if lengths.least else 0,
            None if lengths.most is None else count(lengths.most, size),
        )
    upper = None if lengths.most is None else count(lengths.most, max(1, kernel.least))
    if kernel.most is None:
        return Dimension(1, upper)
    surrounded = begin + end if auto_pad == "explicit" else 0
    shortest = max(lengths.least, span(kernel.most, dilation) - surrounded)
    fits = lengths.most is None or shortest <= lengths.most
    return Dimension(count(shortest, kernel.most) if fits else 1, upper)


def spatial(shape: PartialShape, *, axes: int = 0) -> tuple[Dimension, ...] | None:
    """Return the dimensions after batch and channels; None when the rank is unknown.

    Raise ``ValueError`` for a rank outside 3 to 5, or for other than ``axes`` spatial axes.
    """
    if shape.dimensions is None:
        return (UNKNOWN,) * axes if axes else None
    if not 3 <= len(shape.dimensions) <= 5 or (axes and len(shape.dimensions) != axes + 2):
        expected = f"rank {axes + 2}" if axes else "rank 3, 4 or 5"
        raise ValueError(f"the data has shape {shape}, expected {expected}")
    return shape.dimensions[2:]


__all__ = [
    "AUTO_PADS",
    "Lengths",
    "inferred",
    "overlap",
    "pad_data",
    "pads",
    "per_axis",
    "places",
    "span",
    "spatial",
    "static",
    "windows",
]
