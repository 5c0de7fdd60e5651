"""Sampling of images: positions and weights of a resized axis, and GridSample-9.

The positions and weights are those of every mode of Interpolate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.gradients import sampling as gradients
from loopscope.ops.kernel_arithmetic import (
    COMPUTED,
    INTEGER_DTYPES,
    saturate,
    to_element_type,
    widened,
)
from loopscope.ops.kernel_checks import check_elements, shape_of_rank

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


_MAX_POSITION = 2.0**62


def grid_sample(
    data: Array,
    grid: Array,
    /,
    *,
    align_corners: bool = False,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Array:
    """Sample an image [N, C, H, W] at grid points [N, H', W', 2] (x, then y, from -1 to 1).

    The result is [N, C, H', W'].
    """
    if data.ndim != 4 or grid.ndim != 4 or data.shape[0] != grid.shape[0] or grid.shape[3] != 2:
        raise ValueError(
            f"an image of shape {data.shape} and a grid of shape {grid.shape}: "
            "expected [N, C, H, W] and [N, H', W', 2]"
        )
    check_elements(math.prod(data.shape[:2]) * math.prod(grid.shape[1:3]), "the sampled image")
    points = np.asarray(widened(grid))
    xs = _pixels(points[..., 0], data.shape[3], align_corners)
    ys = _pixels(points[..., 1], data.shape[2], align_corners)
    values = np.asarray(data if mode == "nearest" else widened(data))
    sample = _Sampler(values, padding_mode, align_corners)
    match mode:
        case "nearest":
            return sample(np.rint(ys), np.rint(xs))
        case "bilinear":
            return _to_type(_bilinear(sample, ys, xs), data.dtype)
        case _:
            return _to_type(_bicubic(sample, ys, xs), data.dtype)


def _to_type(values: np.ndarray, dtype: np.dtype) -> Array:
    """Convert to the type; integers are truncated as in the runtimes (Interpolate rounds
    instead).
    """
    return saturate(values, dtype) if dtype in INTEGER_DTYPES else to_element_type(values, dtype)


def _pixels(coordinates: np.ndarray, length: int, align_corners: bool) -> np.ndarray:
    """Map coordinates from -1 .. 1 to pixel positions; the ends are the outer pixels' centres or
    outer edges.
    """
    dtype = coordinates.dtype.type
    if align_corners:
        return (coordinates + dtype(1)) * dtype(length - 1) / dtype(2)
    return ((coordinates + dtype(1)) * dtype(length) - dtype(1)) / dtype(2)


class _Sampler:
    """A reader of pixels [N, C, H', W'] at integer positions [N, H', W'], with padding outside."""

    def __init__(self, data: np.ndarray, padding: str, align_corners: bool) -> None:
        self._data = data
        self._padding = padding
        self._align = align_corners

    def __call__(self, ys: np.ndarray, xs: np.ndarray) -> np.ndarray:
        height, width = self._data.shape[2:]
        rows, columns = self._inside(ys, height), self._inside(xs, width)
        batch = np.arange(len(self._data))[:, None, None]
        if not height or not width:
            pixels = np.zeros((*rows.shape, self._data.shape[1]), self._data.dtype)
        else:
            pixels = self._data[batch, :, rows, columns]
        pixels = np.moveaxis(pixels, -1, 1)
        if self._padding == "zeros":
            outside = (
                (ys < 0) | (ys >= height) | (xs < 0) | (xs >= width) | np.isnan(ys) | np.isnan(xs)
            )
            pixels = np.where(outside[:, None], pixels.dtype.type(0), pixels)
        return pixels

    def _inside(self, positions: np.ndarray, length: int) -> np.ndarray:
        whole = np.clip(np.nan_to_num(positions), -_MAX_POSITION, _MAX_POSITION).astype(np.int64)
        if self._padding == "reflection" and length > 0:
            whole = (
                _reflect_at_centres(whole, length)
                if self._align
                else _reflect_at_edges(whole, length)
            )
        return np.clip(whole, 0, max(length - 1, 0))


def _reflect_at_centres(positions: np.ndarray, length: int) -> np.ndarray:
    period = 2 * (length - 1) or 1
    around = np.abs(positions) % period
    return np.where(around >= length, period - around, around)


def _reflect_at_edges(positions: np.ndarray, length: int) -> np.ndarray:
    around = positions % (2 * length)
    return np.where(around >= length, 2 * length - 1 - around, around)


def _bilinear(sample: _Sampler, ys: np.ndarray, xs: np.ndarray) -> np.ndarray:
    top, left = np.floor(ys), np.floor(xs)
    down, right = (ys - top)[:, None], (xs - left)[:, None]
    upper = (1 - right) * sample(top, left) + right * sample(top, left + 1)
    lower = (1 - right) * sample(top + 1, left) + right * sample(top + 1, left + 1)
    return down * lower + (1 - down) * upper


def _bicubic(sample: _Sampler, ys: np.ndarray, xs: np.ndarray) -> np.ndarray:
    top, left = np.floor(ys), np.floor(xs)
    down = cubic_weights(ys - top, -0.75)[:, :, None]
    right = cubic_weights(xs - left, -0.75)[:, :, None]
    rows = [
        sum(right[column] * sample(top + row - 1, left + column - 1) for column in range(4))
        for row in range(4)
    ]
    total = down[0] * rows[0]
    for row in range(1, 4):
        total = total + down[row] * rows[row]
    return np.asarray(total)


def _infer(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, grid = shape_of_rank(inputs[0], 4, "the image"), shape_of_rank(inputs[1], 4, "the grid")
    if not grid.at(3).contains(2):
        raise ValueError(f"the grid has shape {grid}, expected a last dimension of 2")
    batch = data.at(0).intersect(grid.at(0))
    if batch is None:
        raise ValueError(f"batches of {data.at(0)} and {grid.at(0)} differ")
    return (
        Known(inputs[0].element_type, PartialShape((batch, data.at(1), grid.at(1), grid.at(2)))),
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="GridSample",
        version=9,
        opsets=(9, 16),
        page="image/grid-sample-9",
        kernel=grid_sample,
        infer=_infer,
        inputs=(2, 2),
        types=(COMPUTED, REAL_FLOATS),
        attributes=(
            Attribute("align_corners", "bool", False),
            Attribute("mode", "str", "bilinear", allowed=("bilinear", "bicubic", "nearest")),
            Attribute("padding_mode", "str", "zeros", allowed=("zeros", "border", "reflection")),
        ),
        gradient=gradients.grid_sample,
    ),
)
