"""Regions pooled in bins: ROIPooling, PSROIPooling and DeformablePSROIPooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.kernel_arithmetic import to_element_type, widened
from loopscope.ops.kernel_checks import check_elements, positions_within, shape_of_rank

_F32 = np.float32
_MAX_COORDINATE = 2.0**40
"""Limit for coordinates, applied before they become integers."""


def roi_pooling(
    features: Array,
    regions: Array,
    /,
    *,
    pooled_h: int,
    pooled_w: int,
    spatial_scale: float,
    method: str = "max",
) -> Array:
    """Pool features [N, C, H, W] in regions [n, 5] (image, x1, y1, x2, y2).

    The result is [n, C, pooled_h, pooled_w]. ``max``: the largest value of each bin, corners
    rounded to pixels. ``bilinear``: one sample per bin, corners as fractions of the image.
    """
    values, rows, images = _check(features, regions)
    check_elements(len(rows) * values.shape[1] * pooled_h * pooled_w, "the pooled regions")
    pooled = np.zeros((len(rows), values.shape[1], pooled_h, pooled_w), values.dtype)
    for number, (image, row) in enumerate(zip(images, rows, strict=True)):
        if method == "max":
            pooled[number] = _pool_maximum(values[image], row, (pooled_h, pooled_w), spatial_scale)
        else:
            pooled[number] = _pool_bilinear(values[image], row, (pooled_h, pooled_w))
    return to_element_type(pooled, features.dtype)


def _check(features: Array, regions: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return wide features, corners [n, 4] and images [n] of the regions."""
    if features.ndim != 4 or regions.ndim != 2 or regions.shape[1] != 5:
        raise ValueError(
            f"features of shape {list(features.shape)} and regions of shape "
            f"{list(regions.shape)}: expected rank 4 and [n, 5]"
        )
    if not features.shape[2] or not features.shape[3]:
        raise ValueError(f"features of shape {list(features.shape)} have no pixels")
    rows = np.asarray(widened(np.asarray(regions)))
    images = _whole(np.trunc(rows[:, 0]))
    if (images < 0).any():
        raise ValueError(f"image {images.min()} of a region is negative")
    return (
        np.asarray(widened(np.asarray(features))),
        rows[:, 1:],
        positions_within(images, len(features), "image"),
    )


def _whole(values: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(values), -_MAX_COORDINATE, _MAX_COORDINATE).astype(np.int64)


def _half_away(values: np.ndarray) -> np.ndarray:
    return np.trunc(values + np.copysign(values.dtype.type(0.5), values))


def _pool_maximum(
    image: np.ndarray, corners: np.ndarray, bins: tuple[int, int], scale: float
) -> np.ndarray:
    left, top, right, bottom = _whole(_half_away(corners * _F32(scale)))
    rows = _bounds(int(top), int(bottom), bins[0], image.shape[1])
    columns = _bounds(int(left), int(right), bins[1], image.shape[2])
    pooled = np.zeros((len(image), *bins), image.dtype)
    for down, (first_row, last_row) in enumerate(rows):
        for across, (first, last) in enumerate(columns):
            if first_row < last_row and first < last:
                pooled[:, down, across] = image[:, first_row:last_row, first:last].max((1, 2))
    return pooled


def _bounds(start: int, end: int, bins: int, length: int) -> list[tuple[int, int]]:
    """Return first and last (excluded) pixel of each bin of a side."""
    size = _F32(max(end - start + 1, 1)) / _F32(bins)
    firsts = np.floor(np.arange(bins, dtype=_F32) * size)
    lasts = np.ceil(np.arange(1, bins + 1, dtype=_F32) * size)
    inside = np.clip(np.stack([firsts, lasts], -1).astype(np.int64) + start, 0, length)
    return [(first, last) for first, last in inside.tolist()]


def _pool_bilinear(image: np.ndarray, corners: np.ndarray, bins: tuple[int, int]) -> np.ndarray:
    left, top, right, bottom = corners
    ys = _samples(top, bottom, bins[0], image.shape[1])[:, None]
    xs = _samples(left, right, bins[1], image.shape[2])[None, :]
    outside = ~((ys >= 0) & (ys <= image.shape[1] - 1) & (xs >= 0) & (xs <= image.shape[2] - 1))
    return np.where(outside, image.dtype.type(0), _sample(image, ys, xs))


def _samples(start: np.floating, end: np.floating, bins: int, length: int) -> np.ndarray:
    """Return one coordinate per bin, from corner to corner; the middle for a single bin."""
    if bins == 1:
        return np.array([0.5 * (start + end) * (length - 1)], start.dtype)
    step = (end - start) * (length - 1) / (bins - 1)
    places = np.arange(bins, dtype=start.dtype) * step + start * (length - 1)
    places[-1] = end * (length - 1)
    return places


def _sample(image: np.ndarray, ys: np.ndarray, xs: np.ndarray) -> np.ndarray:
    """Return values [C, ...] of an image [C, H, W] between its pixels; outer coordinates are moved
    to the border.
    """
    return _lerp(image, ys, xs, lambda rows, columns: image[:, rows, columns])


def _lerp(image: np.ndarray, ys: np.ndarray, xs: np.ndarray, read: Any) -> np.ndarray:
    height, width = image.shape[-2:]
    ys, xs = np.clip(np.nan_to_num(ys), 0, height - 1), np.clip(np.nan_to_num(xs), 0, width - 1)
    top, left = np.floor(ys).astype(np.int64), np.floor(xs).astype(np.int64)
    bottom, right = np.ceil(ys).astype(np.int64), np.ceil(xs).astype(np.int64)
    down, across = (ys - top).astype(image.dtype), (xs - left).astype(image.dtype)
    upper = read(top, left) + (read(top, right) - read(top, left)) * across
    lower = read(bottom, left) + (read(bottom, right) - read(bottom, left)) * across
    return np.asarray(upper + (lower - upper) * down)


def ps_roi_pooling(
    features: Array,
    regions: Array,
    /,
    *,
    output_dim: int,
    spatial_scale: float,
    group_size: int = 1,
    mode: str = "average",
    spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
) -> Array:
    """Pool each bin of a region [n, 5] from its own channels of the features [N, C, H, W].

    The result is [n, output_dim, group_size, group_size].
    """
    values, rows, images = _check(features, regions)
    needed = output_dim * (group_size**2 if mode == "average" else spatial_bins_x * spatial_bins_y)
    if values.shape[1] < needed or needed == 0:
        raise ValueError(f"{values.shape[1]} channels: {output_dim} outputs need {needed}")
    check_elements(len(rows) * output_dim * group_size * group_size, "the pooled regions")
    pooled = np.zeros((len(rows), output_dim, group_size, group_size), values.dtype)
    for number, (image, row) in enumerate(zip(images, rows, strict=True)):
        if mode == "average":
            channels = values[image][:needed].reshape(
                output_dim, group_size, group_size, *values.shape[2:]
            )
            pooled[number] = _means(channels, row, spatial_scale)
        else:
            channels = values[image][:needed].reshape(
                spatial_bins_y, spatial_bins_x, output_dim, *values.shape[2:]
            )
            pooled[number] = _blend(channels, row, spatial_scale, group_size)
    return to_element_type(pooled, features.dtype)


def _means(channels: np.ndarray, corners: np.ndarray, scale: float) -> np.ndarray:
    """Return bin (i, j) of output c as the mean of channel (c, i, j) in it."""
    bins, (height, width) = channels.shape[1], channels.shape[3:]
    rounded = _half_away(corners.astype(_F32))
    left, top = rounded[:2] * _F32(scale)
    right, bottom = (rounded[2:] + _F32(1)) * _F32(scale)
    rows, columns = _pixels(top, bottom, bins, height), _pixels(left, right, bins, width)
    pooled = np.zeros(channels.shape[:3], channels.dtype)
    for down, (first_row, last_row) in enumerate(rows):
        for across, (first, last) in enumerate(columns):
            part = channels[:, down, across, first_row:last_row, first:last]
            if part.shape[1] and part.shape[2]:
                pooled[:, down, across] = part.mean((1, 2))
    return pooled


def _pixels(start: np.floating, end: np.floating, bins: int, length: int) -> list[tuple[int, int]]:
    size = (end - start) / _F32(bins)
    firsts = np.clip(np.floor(start + np.arange(bins, dtype=_F32) * size), 0, length)
    lasts = np.clip(np.ceil(start + np.arange(1, bins + 1, dtype=_F32) * size), 0, length)
    return [(int(first), int(last)) for first, last in zip(firsts, lasts, strict=True)]


def _blend(channels: np.ndarray, corners: np.ndarray, scale: float, bins: int) -> np.ndarray:
    """Return the mean of bilinear samples of the sub-bins (y, x), each with its own channels."""
    down, across, _, height, width = channels.shape
    left, top, right, bottom = corners.astype(_F32) * _F32(scale)
    total = np.zeros((channels.shape[2], bins, bins), channels.dtype)
    for y in range(down):
        ys = _spread(top, (bottom - top) / _F32(down), y, bins, height)[:, None]
        for x in range(across):
            xs = _spread(left, (right - left) / _F32(across), x, bins, width)[None, :]
            inside = (ys < height) & (xs < width) & (ys >= 0) & (xs >= 0)
            total += np.where(inside, _sample(channels[y, x], ys, xs), channels.dtype.type(0))
    return total / channels.dtype.type(down * across)


def _spread(
    start: np.floating, size: np.floating, number: int, bins: int, length: int
) -> np.ndarray:
    first = start + _F32(number) * size
    if bins == 1:
        return np.array([(first + first + size) * _F32(length - 1) / _F32(2)], _F32)
    return np.asarray(
        np.arange(bins, dtype=_F32) * (size * _F32(length - 1) / _F32(bins - 1))
        + first * _F32(length - 1)
    )


def deformable_ps_roi_pooling(
    features: Array,
    regions: Array,
    offsets: Array | None = None,
    /,
    *,
    output_dim: int,
    spatial_scale: float,
    group_size: int = 1,
    mode: str = "bilinear_deformable",
    spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
    trans_std: float = 1.0,
    part_size: int = 1,
) -> Array:
    """Pool as PSROIPooling with bilinear samples, and with each bin shifted by its offset.

    Offsets are [n, 2 * classes, part_size, part_size].
    """
    del mode  # The mode has a single value.
    values, rows, images = _check(features, regions)
    needed = output_dim * group_size**2
    if values.shape[1] < needed or spatial_bins_x * spatial_bins_y == 0:
        raise ValueError(
            f"{values.shape[1]} channels, {spatial_bins_x} by {spatial_bins_y} "
            f"sub-bins: {output_dim} outputs need {needed} channels"
        )
    check_elements(
        len(rows) * output_dim * group_size**2 * spatial_bins_x * spatial_bins_y,
        "the samples of the regions",
    )
    shifts = _shifts(offsets, len(rows), output_dim, group_size, part_size, trans_std)
    pooled = np.zeros((len(rows), output_dim, group_size, group_size), values.dtype)
    for number, (image, row) in enumerate(zip(images, rows, strict=True)):
        channels = values[image][:needed].reshape(
            output_dim, group_size, group_size, *values.shape[2:]
        )
        pooled[number] = _deformed_means(
            channels, row, shifts[number], spatial_scale, (spatial_bins_y, spatial_bins_x)
        )
    return to_element_type(pooled, features.dtype)


def _shifts(
    offsets: Array | None, count: int, outputs: int, bins: int, part: int, scale: float
) -> np.ndarray:
    """Return offsets [n, 2, outputs, bins, bins] (x, y) as fractions of the region."""
    if offsets is None:
        return np.zeros((count, 2, outputs, bins, bins), _F32)
    if (
        offsets.ndim != 4
        or len(offsets) < count
        or offsets.shape[1] < 2
        or min(offsets.shape[2:]) < part
    ):
        raise ValueError(
            f"offsets of shape {list(offsets.shape)}: expected [{count}, 2 * classes, "
            f"{part}, {part}]"
        )
    classes = offsets.shape[1] // 2
    class_numbers = np.minimum(np.arange(outputs) // max(outputs // classes, 1), classes - 1)
    cells = np.arange(bins) * part // bins
    values = np.asarray(widened(np.asarray(offsets[:count, : 2 * classes]))).reshape(
        count, classes, 2, *offsets.shape[2:]
    )
    bin_values = values[:, class_numbers][:, :, :, cells][..., cells]
    return np.asarray(np.moveaxis(bin_values, 2, 1) * _F32(scale))


def _deformed_means(
    channels: np.ndarray,
    corners: np.ndarray,
    shift: np.ndarray,
    scale: float,
    samples: tuple[int, int],
) -> np.ndarray:
    outputs, bins, _, height, width = channels.shape
    rounded = _half_away(corners.astype(_F32))
    left, top = rounded[:2] * _F32(scale) - _F32(0.5)
    right, bottom = (rounded[2:] + _F32(1)) * _F32(scale) - _F32(0.5)
    wide, high = max(right - left, _F32(0.1)), max(bottom - top, _F32(0.1))
    starts_x = left + np.arange(bins, dtype=_F32) * (wide / _F32(bins)) + shift[0] * wide
    starts_y = top + np.arange(bins, dtype=_F32)[:, None] * (high / _F32(bins)) + shift[1] * high
    ys = starts_y[..., None, None] + np.arange(samples[0], dtype=_F32)[:, None] * (
        high / _F32(bins) / _F32(samples[0])
    )
    xs = starts_x[..., None, None] + np.arange(samples[1], dtype=_F32) * (
        wide / _F32(bins) / _F32(samples[1])
    )
    ys, xs = np.broadcast_arrays(ys, xs)
    inside = (ys >= -0.5) & (ys <= height - 0.5) & (xs >= -0.5) & (xs <= width - 0.5)
    cell = np.ogrid[:outputs, :bins, :bins]
    cell_index = tuple(index[..., None, None] for index in cell)
    samples_of_bins = _lerp(
        channels, ys, xs, lambda rows, columns: channels[(*cell_index, rows, columns)]
    )
    counted = inside.sum((3, 4))
    return np.asarray(
        np.where(inside, samples_of_bins, 0).sum((3, 4))
        / np.maximum(counted, 1).astype(channels.dtype)
    )


def _infer(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /, *, grouped: bool
) -> tuple[Known, ...]:
    channels = shape_of_rank(inputs[0], 4, "the feature map").at(1)
    count = shape_of_rank(inputs[1], 2, "the table of regions").at(0)
    if grouped:
        group = static(attributes["group_size"])
        shape = PartialShape((count, static(attributes["output_dim"]), group, group))
    else:
        shape = PartialShape(
            (count, channels, static(attributes["pooled_h"]), static(attributes["pooled_w"]))
        )
    return (Known(inputs[0].element_type, shape),)


_GROUPS = (
    Attribute("output_dim", "int", least=1),
    Attribute("spatial_scale", "float"),
    Attribute("group_size", "int", 1, least=1),
    Attribute("spatial_bins_x", "int", 1, least=0),
    Attribute("spatial_bins_y", "int", 1, least=0),
)
"""Attributes of the grouped poolings; files contain 0 sub-bins where the mode ignores them."""

row = family("detection", types=(REAL_FLOATS,), inputs=(2, 2))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "ROIPooling",
        roi_pooling,
        version=2,
        page="detection/roi-pooling-1",
        infer=partial(_infer, grouped=False),
        attributes=(
            Attribute("pooled_h", "int", least=1),
            Attribute("pooled_w", "int", least=1),
            Attribute("spatial_scale", "float"),
            Attribute("method", "str", "max", allowed=("max", "bilinear")),
        ),
    ),
    row(
        "PSROIPooling",
        ps_roi_pooling,
        infer=partial(_infer, grouped=True),
        attributes=(*_GROUPS, Attribute("mode", "str", "average", allowed=("average", "bilinear"))),
    ),
    row(
        "DeformablePSROIPooling",
        deformable_ps_roi_pooling,
        infer=partial(_infer, grouped=True),
        inputs=(2, 3),
        attributes=(
            *_GROUPS,
            Attribute("mode", "str", "bilinear_deformable", allowed=("bilinear_deformable",)),
            Attribute("trans_std", "float", 1.0),
            Attribute("part_size", "int", 1, least=1),
        ),
    ),
)
