"""ONNX operations that place elements in a tensor: Pad, updates in their order, Col2Im.

Updates are written into a copy of a tensor or reduce it. Col2Im adds up columns of blocks at the
blocks' positions in an image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_checks import axis_within, check_elements, positions_within, whole_numbers
from loopscope.ops.onnx.conditions import check_inputs


def old_pad(data: Array, /, **attributes: Any) -> Array:
    """Return the padded data, for Pad before opset 11, whose pads (in opset 1: paddings) and value
    are attributes.
    """
    pads = np.array(attributes.get("pads") or attributes.get("paddings") or (), np.int64)
    value = np.array(attributes.get("value", 0.0)).astype(data.dtype)
    return pad(data, pads, value, mode=attributes.get("mode", "constant"))


def pad(
    data: Array,
    pads: Array,
    value: Array | None = None,
    axes: Array | None = None,
    /,
    *,
    mode: str = "constant",
) -> Array:
    """Return the data with elements added at both ends of each axis. Negative pads cut off elements
    before elements are added.
    """
    chosen = (
        range(data.ndim) if axes is None else [axis_within(int(axis), data.ndim) for axis in axes]
    )
    if pads.shape != (2 * len(chosen),):
        raise ValueError(
            f"the pads have shape {list(pads.shape)}, expected {2 * len(chosen)} numbers"
        )
    both = [(0, 0)] * data.ndim
    for index, axis in enumerate(chosen):
        both[axis] = (int(pads[index]), int(pads[index + len(chosen)]))
    cut = data[
        tuple(
            slice(max(-before, 0), max(length - max(-after, 0), 0))
            for length, (before, after) in zip(data.shape, both, strict=True)
        )
    ]
    added = [(max(before, 0), max(after, 0)) for before, after in both]
    lengths = [length + sum(more) for length, more in zip(cut.shape, added, strict=True)]
    check_elements(math.prod(lengths), "the output of Pad")
    if mode != "constant":
        return _extend(cut, added, mode)
    filling = (
        ("" if data.dtype == object else data.dtype.type(0))
        if value is None
        else value.reshape(-1)[0]
    )
    result = np.full(lengths, filling, data.dtype)
    result[
        tuple(
            slice(before, before + length)
            for length, (before, _) in zip(cut.shape, added, strict=True)
        )
    ] = cut
    return result


def _extend(data: Array, added: Sequence[tuple[int, int]], mode: str) -> Array:
    """Return the data extended beyond both ends of each axis by its own elements, as the mode
    says.
    """
    if mode not in _SOURCES:
        raise ValueError(
            f"mode is {str(mode)[:40]!r}, expected one of constant, {', '.join(_SOURCES)}"
        )
    for axis, (before, after) in enumerate(added):
        if before or after:
            length = data.shape[axis]
            if not length:
                raise ValueError(f"axis {axis} is empty and cannot be padded in mode '{mode}'")
            check_elements(before + length + after, "a padded axis")
            data = data.take(_SOURCES[mode](np.arange(-before, length + after), length), axis)
    return data


def _reflect(positions: Array, length: int) -> Array:
    """Return positions mirrored at both ends; the elements at the ends are not repeated."""
    along = positions % max(2 * length - 2, 1)
    return np.minimum(along, 2 * length - 2 - along)


_SOURCES: Mapping[str, Callable[[Array, int], Array]] = {
    "reflect": _reflect,
    "edge": lambda positions, length: np.clip(positions, 0, length - 1),
    "wrap": lambda positions, length: positions % length,
}
"""Functions that map positions on an extended axis to positions on an axis of a length, by mode."""


_REDUCE: Mapping[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def scatter_elements(
    data: Array, indices: Array, updates: Array, /, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """Return ``data`` with each update at its own position, except along ``axis``, where
    ``indices`` holds the position. Negative indices count from the end.
    """
    check_inputs("ScatterElements", (data, indices, updates), {})
    if not data.ndim:
        raise ValueError("the data is a scalar, expected at least one dimension")
    along = axis_within(axis, data.ndim)
    for number, (length, whole) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if length > whole and number != along:
            raise ValueError(
                f"updates of shape {list(updates.shape)} are longer than "
                f"data {list(data.shape)} in axis {number}"
            )
    strides = [prod(data.shape[number + 1 :]) for number in range(data.ndim)]
    places = _nonnegative(indices, data.shape[along], "index") * strides[along]
    for number, length in enumerate(indices.shape):
        if number != along:
            places += (np.arange(length) * strides[number]).reshape(
                -1, *[1] * (data.ndim - number - 1)
            )
    return _update(data.reshape(-1), places.reshape(-1), updates.reshape(-1), reduction).reshape(
        data.shape
    )


def scatter_nd(data: Array, indices: Array, updates: Array, /, *, reduction: str = "none") -> Array:
    """Return ``data`` with the slices of ``updates`` at the coordinates in the last axis of
    ``indices``.

    ``updates`` have shape ``indices.shape[:-1] + data.shape[indices.shape[-1]:]``.
    """
    check_inputs("ScatterND", (data, indices, updates), {})
    depth = indices.shape[-1]
    places = np.zeros(indices.shape[:-1], np.int64)
    for number, length in enumerate(data.shape[:depth]):
        places = places * length + _nonnegative(indices[..., number], length, "index")
    slices = data.reshape(prod(data.shape[:depth]), *data.shape[depth:])
    return _update(
        slices, places.reshape(-1), updates.reshape(-1, *slices.shape[1:]), reduction
    ).reshape(data.shape)


def _nonnegative(indices: Array, length: int, what: str) -> Array:
    """Return indices counted from 0 as a new int64 array."""
    result = positions_within(indices, length, what).copy()
    if result.size and result.min() < 0:
        result[result < 0] += length
    return result


def _update(data: Array, places: Array, updates: Array, reduction: str) -> Array:
    """Return a copy in which the rows at ``places`` are replaced or reduced one after the other,
    each result rounded to the type.
    """
    result = data.copy()
    if reduction == "none":
        result[places] = updates
        return result
    if reduction not in _REDUCE:
        raise ValueError(
            f"reduction is {str(reduction)[:40]!r}, expected none, {', '.join(_REDUCE)}"
        )
    if data.dtype == object:
        raise ValueError("elements of type string have no arithmetic")
    _REDUCE[reduction].at(result, places, updates)
    return result


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
