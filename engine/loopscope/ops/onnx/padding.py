"""ONNX's Pad, in all modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.index import axis_within


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
