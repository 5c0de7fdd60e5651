"""Sampling of an image at the points of a grid: GridSample-9."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.shape import PartialShape
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elementwise_kernels import (
    COMPUTED,
    INTEGER_DTYPES,
    saturate,
    to_element_type,
    widened,
)
from loopscope.ops.gradients import sampling as gradients
from loopscope.ops.image.sampling import cubic_weights
from loopscope.ops.input_checks import shape_of_rank

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
