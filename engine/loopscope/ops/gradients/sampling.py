"""Derivatives of sampling between pixels: GridSample, and ROIAlign with means.

A point of GridSample is a weighted sum of pixels; sampling the pixels' numbers with the same grid
identifies them. A bin of ROIAlign is a weighted sum over rows and columns with separate weights, so
both sides are separate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.element_places import numbered, sent_back

_CUBE = -0.75
"""Parameter of Keys' cubic kernel in this operation."""


@dataclass(frozen=True, slots=True)
class _Tap:
    """A pixel that contributes to each point, along one axis."""

    place: Value
    """Position in pixels, [N, H', W']."""
    weight: Value | None
    """Weight of the pixel; None means 1 everywhere."""
    slope: Value | None
    """Derivative of the weight by the point's position in pixels; None means 0."""


def grid_sample(node: Reverse, /) -> Adjoints:
    """Return the adjoints of the image and, where weights depend on the position, of the grid."""
    image, grid = node.inputs
    points = [
        node.ops.gather(grid, np.array(number), np.array(3), batch_dims=0) for number in range(2)
    ]
    lengths = [
        node.ops.convert_like(
            node.ops.gather(node.shape_of(image), np.array(axis), np.array(0), batch_dims=0), grid
        )
        for axis in (3, 2)
    ]
    columns, rows = (
        _taps(node, _pixels(node, point, length))
        for point, length in zip(points, lengths, strict=True)
    )
    of_image: Value | None = None
    slopes: list[Value | None] = [None, None]
    numbers = numbered(node, image)
    for row in rows:
        for column in columns:
            coordinates = [
                _grid_coordinate(node, tap.place, length)
                for tap, length in zip((column, row), lengths, strict=True)
            ]
            grid_of_taps = node.ops.concat(
                *(node.ops.unsqueeze(coordinate, np.array([3])) for coordinate in coordinates),
                axis=3,
            )
            source_numbers = _sample_nearest(node, numbers, grid_of_taps)
            share = _product(node, node.adjoint, column.weight, row.weight)
            part = sent_back(node, source_numbers, image, share).of_data
            of_image = part if of_image is None else of_image + part
            if column.slope is None or row.slope is None:
                continue
            sampled_sum = node.ops.reduce_sum(
                node.adjoint * _sample_nearest(node, image, grid_of_taps),
                np.array([1]),
                keep_dims=False,
            )
            for number, (slope, weight) in enumerate(
                ((column.slope, row.weight), (row.slope, column.weight))
            ):
                change = sampled_sum * slope if weight is None else sampled_sum * slope * weight
                before = slopes[number]
                slopes[number] = change if before is None else before + change
    scales = [_pixel_span(node, length) / 2.0 for length in lengths]
    of_grid = [
        node.ops.unsqueeze(total * scale, np.array([3]))
        for total, scale in zip(slopes, scales, strict=True)
        if total is not None
    ]
    return of_image, node.ops.concat(*of_grid, axis=3) if of_grid else None


def _sample_nearest(node: Reverse, image: Value, grid: Value) -> Value:
    rest = {
        "align_corners": node.attributes["align_corners"],
        "padding_mode": node.attributes["padding_mode"],
    }
    return node.ops.grid_sample(image, grid, mode="nearest", **rest)


def _pixel_span(node: Reverse, length: Value) -> Value:
    """Return the number of pixels that the grid range from -1 to 1 spans."""
    return length - 1.0 if node.attributes["align_corners"] else length


def _pixels(node: Reverse, point: Value, length: Value) -> Value:
    return (
        (point + 1.0) * _pixel_span(node, length)
        - (0.0 if node.attributes["align_corners"] else 1.0)
    ) / 2.0


def _grid_coordinate(node: Reverse, pixel: Value, length: Value) -> Value:
    """Return the grid coordinate of a pixel position: the inverse of ``_pixels``.

    On an axis of one pixel with aligned corners, every coordinate maps to that pixel.
    """
    if node.attributes["align_corners"]:
        return pixel * 2.0 / node.ops.maximum(length - 1.0, np.array(1)) - 1.0
    return (pixel * 2.0 + 1.0) / length - 1.0


def _taps(node: Reverse, pixels: Value) -> Sequence[_Tap]:
    ops, mode = node.ops, node.attributes["mode"]
    if mode == "nearest":
        return (_Tap(ops.round(pixels, mode="half_to_even"), None, None),)
    left = ops.floor(pixels)
    share = pixels - left
    if mode == "bilinear":
        unit = node.filled(1, share)
        return _Tap(left, 1.0 - share, -unit), _Tap(left + 1.0, share, unit)
    return (
        _Tap(left - 1.0, _far(share + 1.0), _slope_far(share + 1.0)),
        _Tap(left, _near(share), _slope_near(share)),
        _Tap(left + 1.0, _near(1.0 - share), -_slope_near(1.0 - share)),
        _Tap(left + 2.0, _far(2.0 - share), -_slope_far(2.0 - share)),
    )


def _near(distance: Value) -> Value:
    """Return Keys' kernel for a distance of at most 1."""
    return ((_CUBE + 2) * distance - (_CUBE + 3)) * distance * distance + 1.0


def _slope_near(distance: Value) -> Value:
    return (3 * (_CUBE + 2) * distance - 2 * (_CUBE + 3)) * distance


def _far(distance: Value) -> Value:
    """Return Keys' kernel for a distance from 1 to 2."""
    return ((_CUBE * distance - 5 * _CUBE) * distance + 8 * _CUBE) * distance - 4 * _CUBE


def _slope_far(distance: Value) -> Value:
    return (3 * _CUBE * distance - 10 * _CUBE) * distance + 8 * _CUBE


def _product(node: Reverse, adjoint: Value, *weights: Value | None) -> Value:
    """Multiply the adjoint [N, C, H', W'] by weights [N, H', W']."""
    for weight in weights:
        adjoint = adjoint if weight is None else adjoint * node.ops.unsqueeze(weight, np.array([1]))
    return adjoint


@dataclass(frozen=True, slots=True)
class Corners:
    """Mapping of the corners of a region to positions in the features."""

    before: float
    """Offset before scaling."""
    scale: float
    after: float
    """Offset after scaling."""
    least: float | None
    """Shortest side; None if a region may be inverted, in which case it has no samples."""

    @staticmethod
    def of(aligned_mode: str, spatial_scale: float) -> Corners:
        """Return the mapping for the attributes of ROIAlign."""
        before, after = {"asymmetric": (0.0, 0.0), "half_pixel_for_nn": (0.0, -0.5)}.get(
            aligned_mode, (0.5, -0.5)
        )
        return Corners(
            before,
            float(np.float32(spatial_scale)),
            after,
            1.0 if aligned_mode == "asymmetric" else None,
        )


@dataclass(frozen=True, slots=True)
class _Side:
    """The samples ``[n, bins, samples, 1]`` along one side of each region."""

    weights: Value
    """Share of each pixel in each bin, ``[n, bins, length]``."""
    slopes: Value
    """Derivative of a pixel's share by a sample's position, ``[n, bins, samples, length]``."""
    steps: Value
    """Derivative of a sample's position by the length of the side."""
    counts: Value
    """Mask ``[n, 1]``: 1 if the corners determine the side's length, 0 if it is the minimum."""


def roi_align(node: Reverse, /) -> Adjoints:
    """Return the adjoints of features and regions.

    ``ValueError`` for bins that take the maximum.
    """
    mode = str(node.attributes["mode"]).lower()
    if mode != "avg":
        raise ValueError(f"its mode is {mode!r}: only that of avg is walked back here")
    attributes = node.attributes
    corners = Corners.of(
        str(attributes.get("aligned_mode", "asymmetric")), float(attributes["spatial_scale"])
    )
    return of_means(
        node,
        (int(attributes["pooled_h"]), int(attributes["pooled_w"])),
        int(attributes["sampling_ratio"]),
        corners,
    )


def of_means(node: Reverse, bins: tuple[int, int], ratio: int, corners: Corners) -> Adjoints:
    """Return the adjoints of features ``[N, C, H, W]`` and regions ``[n, 4]``.

    None for images ``[n]``. The pooled regions are ``rows @ features @ columns``.
    """
    ops, (features, regions, images) = node.ops, node.inputs
    placed = (ops.convert_like(regions, features) + corners.before) * corners.scale + corners.after
    count, height, width = (
        ops.gather(node.shape_of(features), np.array(axis), np.array(0), batch_dims=0)
        for axis in (0, 2, 3)
    )
    vertical = _side(
        node, placed, (1, 3), bins[0], ratio, ops.convert_like(height, features), corners.least
    )
    horizontal = _side(
        node, placed, (0, 2), bins[1], ratio, ops.convert_like(width, features), corners.least
    )
    on, off = node.filled_to(1, features, ()), node.filled_to(0, features, ())
    image_of_region = ops.one_hot(images, count, on, off, axis=-1)  # [n, N]
    tall = ops.einsum(node.adjoint, horizontal.weights, equation="rcij,rjx->rcix")
    wide = ops.einsum(node.adjoint, vertical.weights, equation="rcij,riy->rcyj")
    rows = ops.einsum(image_of_region, vertical.weights, equation="rn,riy->rniy")
    of_features = ops.einsum(rows, tall, equation="rniy,rcix->ncyx")
    of_rows = ops.einsum(
        ops.einsum(tall, features, equation="rcix,ncyx->rniy"),
        image_of_region,
        equation="rniy,rn->riy",
    )
    of_columns = ops.einsum(
        ops.einsum(wide, features, equation="rcyj,ncyx->rnjx"),
        image_of_region,
        equation="rnjx,rn->rjx",
    )
    left, right = _of_corners(node, horizontal, of_columns)
    top, bottom = _of_corners(node, vertical, of_rows)
    of_regions = ops.concat(left, top, right, bottom, axis=1) * corners.scale
    return of_features, ops.convert_like(of_regions, regions), None


def _side(
    node: Reverse,
    placed: Value,
    ends: Sequence[int],
    bins: int,
    ratio: int,
    length: Value,
    minimum: float | None,
) -> _Side:
    ops = node.ops
    first, last = (
        ops.reshape(
            ops.gather(placed, np.array([end]), np.array(1), batch_dims=0),
            np.array([-1, 1, 1]),
            special_zero=False,
        )
        for end in ends
    )
    size = last - first
    is_regular = node.filled(1, size) if minimum is None else ops.convert_like(size > minimum, size)
    size = size if minimum is None else ops.maximum(size, node.filled_to(minimum, size, ()))
    max_samples, count = _samples(node, size * (1.0 / bins), ratio)
    index = _numbers(node, max_samples, placed)
    is_sampled = ops.convert_like(index < count, placed)
    divisor = ops.maximum(count, node.filled_to(1, placed, ()))
    steps = (
        _numbers(node, node.constant(np.array(bins)), placed, (-1, 1)) + (index + 0.5) / divisor
    ) * (1.0 / bins)
    places = ops.unsqueeze(first + size * steps, np.array([3]))
    return _weigh(
        node,
        places,
        length,
        ops.unsqueeze(is_sampled / divisor, np.array([3])),
        steps,
        ops.squeeze(is_regular, np.array([2])),
    )


def _weigh(
    node: Reverse, places: Value, length: Value, share: Value, steps: Value, is_regular: Value
) -> _Side:
    """Return the samples, interpolated from their neighbour pixels.

    Beyond the outermost pixels, the value of the outermost pixel counts.
    """
    ops, last = node.ops, length - 1.0
    within = ops.logical_and(places >= -1.0, places <= length)
    share = node.where(within, share)
    pixels = _numbers(node, ops.convert(length, destination_type="i64"), places)
    gap = pixels - ops.minimum(ops.maximum(places, node.filled_to(0, places, ())), last)
    closeness = ops.relu(1.0 - ops.abs(gap))
    is_inside = ops.logical_and(places > 0.0, places < last)
    slope = node.where(ops.logical_and(is_inside, ops.abs(gap) < 1.0), ops.sign(gap))
    return _Side(
        ops.reduce_sum(closeness * share, np.array([2]), keep_dims=False),
        slope * share,
        steps,
        is_regular,
    )


def _samples(node: Reverse, size: Value, ratio: int) -> tuple[Value, Value]:
    """Return the greatest number of samples per bin, and the number for each region ``[n, 1, 1]``.

    The default is one sample per pixel.
    """
    if ratio > 0:
        return node.constant(np.array(ratio)), node.filled(ratio, size)
    count = node.ops.relu(node.ops.ceiling(size))
    flat = node.ops.reshape(count, np.array([-1]), special_zero=False)
    maximum = node.ops.reduce_max(
        node.ops.concat(flat, node.filled_to(0, size, (1,)), axis=0), np.array([0]), keep_dims=False
    )
    return node.ops.convert(maximum, destination_type="i64"), count


def _numbers(node: Reverse, count: Value, like: Value, shape: Sequence[int] = (-1,)) -> Value:
    """Return 0, 1, 2, ... in the type of a tensor."""
    numbers = node.ops.range(np.int64(0), count, np.int64(1), output_type="i64")
    return node.ops.convert_like(
        node.ops.reshape(numbers, np.array(shape), special_zero=False), like
    )


def _of_corners(node: Reverse, side: _Side, of_weights: Value) -> tuple[Value, Value]:
    """Return the adjoints ``[n, 1]`` of the first and the last corner.

    Samples move with the first corner, and spread with the distance between both.
    """
    ops = node.ops
    of_places = ops.reduce_sum(
        ops.unsqueeze(of_weights, np.array([2])) * side.slopes, np.array([3]), keep_dims=False
    )
    inner = np.array([1, 2])
    of_size = (
        ops.unsqueeze(ops.reduce_sum(of_places * side.steps, inner, keep_dims=False), np.array([1]))
        * side.counts
    )
    of_first = ops.unsqueeze(ops.reduce_sum(of_places, inner, keep_dims=False), np.array([1]))
    return of_first - of_size, of_size
