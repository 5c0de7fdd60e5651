"""Derivatives of GridSample: each point is a weighted sum of pixels; the same sampling of the
pixels' numbers says which ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.element_places import numbered, sent_back

_CUBE = -0.75
"""The parameter of Keys' kernel that the operation has."""


@dataclass(frozen=True, slots=True)
class _Tap:
    """One pixel of each point along one axis."""

    place: Value
    """In pixels, [N, H', W']."""
    weight: Value | None
    """None: 1, everywhere."""
    slope: Value | None
    """How the weight changes with the point's place in pixels; None: not at all."""


def grid_sample(at: Reverse, /) -> Adjoints:
    """Of the image and, where weights change with the place, of the grid."""
    image, grid = at.inputs
    points = [
        at.ops.gather(grid, np.array(number), np.array(3), batch_dims=0) for number in range(2)
    ]
    lengths = [
        at.ops.convert_like(
            at.ops.gather(at.shape_of(image), np.array(axis), np.array(0), batch_dims=0), grid
        )
        for axis in (3, 2)
    ]
    columns, rows = (
        _taps(at, _pixels(at, point, length)) for point, length in zip(points, lengths, strict=True)
    )
    of_image: Value | None = None
    slopes: list[Value | None] = [None, None]
    numbers = numbered(at, image)
    for row in rows:
        for column in columns:
            places = [
                _grid(at, tap.place, length)
                for tap, length in zip((column, row), lengths, strict=True)
            ]
            grid_of_taps = at.ops.concat(
                *(at.ops.unsqueeze(one, np.array([3])) for one in places), axis=3
            )
            came_from = _nearest(at, numbers, grid_of_taps)
            share = _product(at, at.adjoint, column.weight, row.weight)
            part = sent_back(at, came_from, image, share).of_data
            of_image = part if of_image is None else of_image + part
            if column.slope is None or row.slope is None:
                continue
            found = at.ops.reduce_sum(
                at.adjoint * _nearest(at, image, grid_of_taps), np.array([1]), keep_dims=False
            )
            for number, (one, other) in enumerate(
                ((column.slope, row.weight), (row.slope, column.weight))
            ):
                change = found * one if other is None else found * one * other
                before = slopes[number]
                slopes[number] = change if before is None else before + change
    scales = [_steps(at, length) / 2.0 for length in lengths]
    given = [
        at.ops.unsqueeze(one * scale, np.array([3]))
        for one, scale in zip(slopes, scales, strict=True)
        if one is not None
    ]
    return of_image, at.ops.concat(*given, axis=3) if given else None


def _nearest(at: Reverse, image: Value, grid: Value) -> Value:
    rest = {
        "align_corners": at.attributes["align_corners"],
        "padding_mode": at.attributes["padding_mode"],
    }
    return at.ops.grid_sample(image, grid, mode="nearest", **rest)


def _steps(at: Reverse, length: Value) -> Value:
    """How many pixels the grid's way from -1 to 1 is."""
    return length - 1.0 if at.attributes["align_corners"] else length


def _pixels(at: Reverse, point: Value, length: Value) -> Value:
    return (
        (point + 1.0) * _steps(at, length) - (0.0 if at.attributes["align_corners"] else 1.0)
    ) / 2.0


def _grid(at: Reverse, pixel: Value, length: Value) -> Value:
    """The other way round; of an axis of one pixel whose corners are its centre, every point is
    that pixel.
    """
    if at.attributes["align_corners"]:
        return pixel * 2.0 / at.ops.maximum(length - 1.0, np.array(1)) - 1.0
    return (pixel * 2.0 + 1.0) / length - 1.0


def _taps(at: Reverse, pixels: Value) -> Sequence[_Tap]:
    ops, mode = at.ops, at.attributes["mode"]
    if mode == "nearest":
        return (_Tap(ops.round(pixels, mode="half_to_even"), None, None),)
    left = ops.floor(pixels)
    share = pixels - left
    if mode == "bilinear":
        one = at.filled(1, share)
        return _Tap(left, 1.0 - share, -one), _Tap(left + 1.0, share, one)
    return (
        _Tap(left - 1.0, _far(share + 1.0), _slope_far(share + 1.0)),
        _Tap(left, _near(share), _slope_near(share)),
        _Tap(left + 1.0, _near(1.0 - share), -_slope_near(1.0 - share)),
        _Tap(left + 2.0, _far(2.0 - share), -_slope_far(2.0 - share)),
    )


def _near(distance: Value) -> Value:
    """Keys' kernel up to a distance of 1."""
    return ((_CUBE + 2) * distance - (_CUBE + 3)) * distance * distance + 1.0


def _slope_near(distance: Value) -> Value:
    return (3 * (_CUBE + 2) * distance - 2 * (_CUBE + 3)) * distance


def _far(distance: Value) -> Value:
    """Keys' kernel from a distance of 1 to one of 2."""
    return ((_CUBE * distance - 5 * _CUBE) * distance + 8 * _CUBE) * distance - 4 * _CUBE


def _slope_far(distance: Value) -> Value:
    return (3 * _CUBE * distance - 10 * _CUBE) * distance + 8 * _CUBE


def _product(at: Reverse, adjoint: Value, *weights: Value | None) -> Value:
    """The adjoint [N, C, H', W'] times weights [N, H', W']."""
    for one in weights:
        adjoint = adjoint if one is None else adjoint * at.ops.unsqueeze(one, np.array([1]))
    return adjoint
