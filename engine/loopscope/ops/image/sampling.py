"""Source positions and weights of each position of a resized axis, for every mode of
Interpolate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

_F32 = np.float32


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis to resize: its lengths, and the scale that coordinates are divided by."""

    length: int
    resized: int
    scale: float


@dataclass(frozen=True, slots=True)
class Taps:
    """Positions [taps, resized] within the original axis, and their weights, of the same shape."""

    positions: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, slots=True)
class Choices:
    """Attributes that determine how an axis is sampled."""

    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cube: float = -0.75
    real: type[np.floating] = np.float32
    """Type of coordinates and weights, except for mode nearest, whose ties depend on f32."""


def original_coordinates(axis: Axis, mode: str, real: type[np.floating] = np.float32) -> np.ndarray:
    """Return the coordinate in the original axis of each resized position, in ``real`` (f32 as in
    runtimes).
    """
    resized = np.arange(axis.resized, dtype=real)
    scale, half = real(axis.scale), real(0.5)
    if axis.scale == 1 or axis.length == axis.resized:
        return resized
    match mode:
        case "pytorch_half_pixel":
            return (resized + half) / scale - half if axis.resized > 1 else np.zeros_like(resized)
        case "asymmetric":
            return resized / scale
        case "tf_half_pixel_for_nn":
            return (resized + half) / scale
        case "align_corners":
            return (
                np.zeros_like(resized)
                if axis.resized <= 1
                else resized * real(axis.length - 1) / real(axis.resized - 1)
            )
        case _:
            return (resized + half) / scale - half


def _half_away(values: np.ndarray) -> np.ndarray:
    return np.trunc(values + np.copysign(_F32(0.5), values))


def _half_down(values: np.ndarray) -> np.ndarray:
    return np.ceil(values - _F32(0.5))


ROUNDING: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": _half_down,
    "round_prefer_ceil": _half_away,
    "floor": np.floor,
    "ceil": np.ceil,
}
"""Functions from a coordinate to a position by ``nearest_mode``; ``simple`` depends on the
direction of the resize.
"""


def nearest(axis: Axis, choices: Choices) -> Taps:
    """Return the single nearest position."""
    coordinates = original_coordinates(axis, choices.coordinates)
    rounding = ROUNDING.get(choices.nearest) or (np.ceil if axis.scale < 1 else np.trunc)
    positions = _within(rounding(coordinates), axis)[None]
    return Taps(positions, np.ones_like(positions, _F32))


def linear_onnx(axis: Axis, choices: Choices) -> Taps:
    """Return the two neighbours of the coordinate, which is first clipped to the axis."""
    coordinates = np.clip(
        original_coordinates(axis, choices.coordinates, choices.real), 0, axis.length - 1
    )
    left = np.floor(coordinates)
    share = coordinates - left
    return Taps(
        np.stack([_within(left, axis), _within(left + 1, axis)]), np.stack([1 - share, share])
    )


def linear(axis: Axis, choices: Choices, *, stretch: float) -> Taps:
    """Return the positions under a triangle around the coordinate; positions outside the axis do
    not count.

    ``stretch`` is the slope of the triangle: the scale when antialiasing, else 1.
    """
    coordinates = original_coordinates(axis, choices.coordinates, choices.real)
    reach = 2 if axis.scale > 1 else int(min(np.ceil(2 / max(stretch, 1e-30)), axis.length + 1))
    positions = _half_away(coordinates) + np.arange(-reach, reach + 1, dtype=choices.real)[:, None]
    weights = np.maximum(0, 1 - np.abs(choices.real(stretch) * (coordinates - positions)))
    weights[(positions < 0) | (positions >= axis.length)] = 0
    return Taps(_within(positions, axis), _normalize(weights))


def cubic(axis: Axis, choices: Choices) -> Taps:
    """Return four neighbours, weighted by the cubic kernel with parameter ``cube``.

    Positions outside the axis repeat the border.
    """
    coordinates = original_coordinates(axis, choices.coordinates, choices.real)
    left = np.floor(coordinates)
    positions = left + np.arange(-1, 3, dtype=choices.real)[:, None]
    return Taps(
        _within(positions, axis), cubic_weights(coordinates - left, choices.real(choices.cube))
    )


def cubic_weights(share: np.ndarray, cube: np.floating | float) -> np.ndarray:
    """Return weights [4, ...] of positions -1, 0, 1, 2 for a point at ``share`` (0 to 1) between 0
    and 1.
    """
    offsets = np.arange(-1, 3).astype(share.dtype).reshape(4, *[1] * share.ndim)
    return cubic_kernel(np.abs(share - offsets), share.dtype.type(cube))


def cubic_kernel(distance: np.ndarray, cube: np.floating | float) -> np.ndarray:
    """Compute Keys' cubic convolution kernel (IEEE 1163711) with parameter ``cube``, for distances
    of at least 0.
    """
    near = ((cube + 2) * distance - (cube + 3)) * distance * distance + 1
    far = ((cube * distance - 5 * cube) * distance + 8 * cube) * distance - 4 * cube
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0)).astype(distance.dtype)


def _triangle(distance: np.ndarray, cube: float) -> np.ndarray:
    return np.maximum(1 - distance, 0)


PILLOW: Mapping[str, tuple[Callable[[np.ndarray, float], np.ndarray], float]] = {
    "bilinear_pillow": (_triangle, 1.0),
    "bicubic_pillow": (cubic_kernel, 2.0),
}
"""Kernel and its reach, by mode."""


def pillow(axis: Axis, choices: Choices, *, mode: str) -> Taps:
    """Return all positions under a kernel, stretched if the axis shrinks, as the Pillow library
    resamples.
    """
    kernel, reach = PILLOW[mode]
    step = axis.length / axis.resized if axis.resized else 1.0
    stretch = max(step, 1.0)
    centers = (np.arange(axis.resized) + 0.5) * step
    first = np.maximum((centers - reach * stretch + 0.5).astype(np.int64), 0)
    last = np.minimum((centers + reach * stretch + 0.5).astype(np.int64), axis.length)
    taps = int((last - first).max(initial=0))
    positions = first + np.arange(taps)[:, None]
    weights = kernel(np.abs((positions - centers + 0.5) / stretch), choices.cube)
    weights[positions >= last] = 0
    return Taps(_within(positions, axis), _normalize(weights))


def _normalize(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(axis=0)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)


def _within(positions: np.ndarray, axis: Axis) -> np.ndarray:
    return np.clip(positions, 0, max(axis.length - 1, 0)).astype(np.int64)
