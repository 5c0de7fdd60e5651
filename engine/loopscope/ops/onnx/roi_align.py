"""ONNX's RoiAlign and MaxRoiPool. RoiAlign resamples regions of images without rounding; all
channels of a region take part in a few products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.input_checks import positions
from loopscope.ops.onnx.conditions import check_inputs
from loopscope.ops.precision import computable, rounded


class _Samples(NamedTuple):
    """Samples along one side of a region, ``[bins, samples]``: the two pixels on both sides of
    each, and their weights.
    """

    low: Array
    high: Array
    of_low: Array
    of_high: Array


def roi_align(
    images: Array,
    regions: Array,
    batches: Array,
    /,
    *,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    coordinate_transformation_mode: str = "output_half_pixel",
) -> Array:
    """Pool images ``[N, C, H, W]`` in regions ``[n, 4]`` (x1, y1, x2, y2) of images ``batches
    [n]``, as ``[n, C, height, width]``.

    Each bin is the mean of bilinear samples, or the greatest product of a pixel and its weight in
    these samples (as in ONNX Runtime). Samples more than a pixel outside the image count as 0.
    """
    check_inputs("RoiAlign", (images, regions, batches), {})
    if mode.lower() not in ("avg", "max") or coordinate_transformation_mode.lower() not in (
        "half_pixel",
        "output_half_pixel",
    ):
        raise ValueError(
            f"mode is {mode[:40]!r} and coordinate_transformation_mode "
            f"{coordinate_transformation_mode[:40]!r}, "
            "expected avg or max, and half_pixel or output_half_pixel"
        )
    if min(output_height, output_width) < 0 or sampling_ratio < 0:
        raise ValueError(
            f"the output is {output_height} by {output_width} and sampling_ratio {sampling_ratio}, "
            "expected no negative numbers"
        )
    count, channels = len(regions), images.shape[1]
    check_elements(count * channels * output_height * output_width, "the output of RoiAlign")
    wide = computable(images)
    half_pixel = coordinate_transformation_mode.lower() == "half_pixel"
    corners = computable(regions).astype(wide.dtype) * wide.dtype.type(
        spatial_scale
    ) - wide.dtype.type(0.5 if half_pixel else 0)
    sizes = corners[:, 2:] - corners[:, :2]
    if not half_pixel:
        sizes = np.maximum(sizes, wide.dtype.type(1))
    if not np.isfinite(sizes).all():
        raise ValueError("a region has corners that are not finite")
    # Channels come last, so that the elements of a pixel are contiguous.
    channels_last = np.ascontiguousarray(wide.transpose(0, 2, 3, 1))
    pool = _mean if mode.lower() == "avg" else _max_of_products
    pooled = np.zeros((count, output_height, output_width, channels), wide.dtype)
    if pooled.size and wide.size:
        for number, image in enumerate(positions(batches)):
            down = _samples(
                corners[number, 1], sizes[number, 1], output_height, sampling_ratio, wide.shape[2]
            )
            across = _samples(
                corners[number, 0], sizes[number, 0], output_width, sampling_ratio, wide.shape[3]
            )
            if down.low.size and across.low.size:
                pooled[number] = pool(channels_last[image], down, across)
    return rounded(np.ascontiguousarray(pooled.transpose(0, 3, 1, 2)), images.dtype)


def _samples(start: np.floating, size: np.floating, bins: int, ratio: int, length: int) -> _Samples:
    """Return the samples in the precision and order of operations of ONNX Runtime. Samples outside
    the image have weights of 0.
    """
    real = start.dtype.type
    width = size / real(bins)
    count = ratio or max(0, int(np.ceil(width)))
    check_elements(bins * count, "the samples of a region")
    within = (np.arange(count, dtype=real) + real(0.5)) * width / real(max(1, count))
    positions_along = start + np.arange(bins, dtype=real)[:, None] * width + within
    outside = ~((positions_along >= -1) & (positions_along <= length))
    positions_along = np.where(outside, real(0), np.maximum(positions_along, real(0)))
    low = np.minimum(positions_along.astype(np.int64), length - 1)
    high = np.minimum(low + 1, length - 1)
    of_high = np.where(low == high, real(0), positions_along - low)
    of_low = np.where(outside, real(0), real(1) - of_high)
    return _Samples(low, high, of_low, np.where(outside, real(0), of_high))


def _mean(image: Array, down: _Samples, across: _Samples) -> Array:
    """Return ``[H, W, C] -> [bins, bins, C]``: weighted sums of the rows in use, then of the
    columns.
    """
    rows, by_row = _pixel_shares(down)
    columns, by_column = _pixel_shares(across)
    check_elements(len(rows) * len(columns) * image.shape[2], "the pixels of a region")
    part = image[rows[:, None], columns]
    tall = (by_row @ part.reshape(len(rows), -1)).reshape(len(by_row), len(columns), -1)
    return np.asarray(np.matmul(by_column, tall))


def _pixel_shares(samples: _Samples) -> tuple[Array, Array]:
    """Return the pixels along a side that samples lie between, and the share of each in the mean of
    each bin, ``[bins, pixels]``.
    """
    pixels, places = np.unique(np.stack((samples.low, samples.high)), return_inverse=True)
    bins, count = samples.low.shape
    shares = np.zeros((bins, len(pixels)), samples.of_low.dtype)
    each = np.broadcast_to(np.arange(bins)[:, None], (bins, count))
    for pixel_indices, weight in zip(
        places.reshape(2, bins, count), (samples.of_low, samples.of_high), strict=True
    ):
        np.add.at(shares, (each, pixel_indices), weight)
    return pixels, shares / shares.dtype.type(count)


def _max_of_products(image: Array, down: _Samples, across: _Samples) -> Array:
    """Return ``[H, W, C] -> [bins, bins, C]``: the greatest product of a pixel and its weight, over
    the four pixels of all samples.
    """
    bins = (*down.low.shape, *across.low.shape)
    check_elements(down.low.size * across.low.size * image.shape[2], "the samples of a region")
    products_max: Array | None = None
    for rows, of_row in ((down.low, down.of_low), (down.high, down.of_high)):
        for columns, of_column in ((across.low, across.of_low), (across.high, across.of_high)):
            weights = np.multiply.outer(of_row.reshape(-1), of_column.reshape(-1))[..., None]
            products = image[rows.reshape(-1)[:, None], columns.reshape(-1)] * weights
            products_max = (
                products
                if products_max is None
                else np.maximum(products_max, products, out=products_max)
            )
    assert products_max is not None
    greatest: Array = products_max.reshape(*bins, -1).max((1, 3))
    return greatest


def max_roi_pool(
    data: Array, regions: Array, /, *, pooled_shape: Sequence[int], spatial_scale: float
) -> Array:
    """Return the greatest element of each cell of a grid over each region (batch, left, top, right,
    bottom).
    """
    height, width = pooled_shape
    check_elements(
        len(regions) * data.shape[1] * max(height, 0) * max(width, 0), "the output of MaxRoiPool"
    )
    result = np.zeros((len(regions), data.shape[1], height, width), data.dtype)
    for number, region in enumerate(regions):
        batch, bounds = int(region[0]), np.floor(region[1:] * spatial_scale + 0.5)
        if not 0 <= batch < len(data):
            raise ValueError(f"region {number} is in tensor {batch} of a batch of {len(data)}")
        left, top, right, bottom = bounds.tolist()
        rows = _cells(top, bottom, height, data.shape[2])
        columns = _cells(left, right, width, data.shape[3])
        for y, (above, below) in enumerate(rows):
            for x, (before, after) in enumerate(columns):
                if above < below and before < after:
                    cell = data[batch, :, above:below, before:after]
                    result[number, :, y, x] = cell.max(axis=(1, 2))
    return result


def _cells(first: float, last: float, count: int, length: int) -> list[tuple[int, int]]:
    """Return begin and end of each of ``count`` cells between two positions, cut to 0 ..
    ``length``.
    """
    size = max(last - first + 1, 1) / count
    bounds = [
        (math.floor(cell * size) + first, math.ceil((cell + 1) * size) + first)
        for cell in range(count)
    ]
    return [
        (int(min(max(begin, 0), length)), int(min(max(end, 0), length))) for begin, end in bounds
    ]
