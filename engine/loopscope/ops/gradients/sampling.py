"""Derivatives of GridSample: each point is a weighted sum of pixels.

Sampling the pixels' numbers with the same grid identifies the pixels.
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
