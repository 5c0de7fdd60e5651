"""The derivative of ROIAlign with means: a bin is the same weighted sum of columns in each row,
so both sides are walked back apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value


@dataclass(frozen=True, slots=True)
class Corners:
    """How the corners of a region become places in the features."""

    before: float
    """Added before they are scaled."""
    scale: float
    after: float
    """Added afterwards."""
    least: float | None
    """The shortest side; None where a region may be turned inside out, which then has no
    samples.
    """

    @staticmethod
    def of(aligned_mode: str, spatial_scale: float) -> Corners:
        """By the attributes of ROIAlign."""
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
    """``[n, bins, length]``: the share of each pixel in each bin."""
    slopes: Value
    """``[n, bins, samples, length]``: how the pixel's share in a bin changes with the place of
    one sample.
    """
    steps: Value
    """How the place of a sample changes with the length of the side."""
    counts: Value
    """``[n, 1]``: 1 where the length of the side is what the corners say, 0 where it is the
    shortest one.
    """


def roi_align(at: Reverse, /) -> Adjoints:
    """Of the features and the regions; those whose bins take the greatest sample have no
    derivative here.
    """
    mode = str(at.attributes["mode"]).lower()
    if mode != "avg":
        raise ValueError(f"its mode is {mode!r}: only that of avg is walked back here")
    given = at.attributes
    corners = Corners.of(
        str(given.get("aligned_mode", "asymmetric")), float(given["spatial_scale"])
    )
    return of_means(
        at, (int(given["pooled_h"]), int(given["pooled_w"])), int(given["sampling_ratio"]), corners
    )


def of_means(at: Reverse, bins: tuple[int, int], ratio: int, corners: Corners) -> Adjoints:
    """Features ``[N, C, H, W]``, regions ``[n, 4]``, images ``[n]``: the pooled regions are
    ``rows @ features @ columns``.
    """
    ops, (features, regions, images) = at.ops, at.inputs
    placed = (ops.convert_like(regions, features) + corners.before) * corners.scale + corners.after
    count, height, width = (
        ops.gather(at.shape_of(features), np.array(axis), np.array(0), batch_dims=0)
        for axis in (0, 2, 3)
    )
    down = _side(
        at, placed, (1, 3), bins[0], ratio, ops.convert_like(height, features), corners.least
    )
    across = _side(
        at, placed, (0, 2), bins[1], ratio, ops.convert_like(width, features), corners.least
    )
    one, none = at.filled_to(1, features, ()), at.filled_to(0, features, ())
    mine = ops.one_hot(images, count, one, none, axis=-1)  # [n, N]
    tall = ops.einsum(at.adjoint, across.weights, equation="rcij,rjx->rcix")
    wide = ops.einsum(at.adjoint, down.weights, equation="rcij,riy->rcyj")
    rows = ops.einsum(mine, down.weights, equation="rn,riy->rniy")
    of_features = ops.einsum(rows, tall, equation="rniy,rcix->ncyx")
    of_rows = ops.einsum(
        ops.einsum(tall, features, equation="rcix,ncyx->rniy"), mine, equation="rniy,rn->riy"
    )
    of_columns = ops.einsum(
        ops.einsum(wide, features, equation="rcyj,ncyx->rnjx"), mine, equation="rnjx,rn->rjx"
    )
    left, right = _of_corners(at, across, of_columns)
    top, bottom = _of_corners(at, down, of_rows)
    of_regions = ops.concat(left, top, right, bottom, axis=1) * corners.scale
    return of_features, ops.convert_like(of_regions, regions), None


def _side(
    at: Reverse,
    placed: Value,
    ends: Sequence[int],
    bins: int,
    ratio: int,
    length: Value,
    least: float | None,
) -> _Side:
    ops = at.ops
    first, last = (
        ops.reshape(
            ops.gather(placed, np.array([end]), np.array(1), batch_dims=0),
            np.array([-1, 1, 1]),
            special_zero=False,
        )
        for end in ends
    )
    size = last - first
    said = at.filled(1, size) if least is None else ops.convert_like(size > least, size)
    size = size if least is None else ops.maximum(size, at.filled_to(least, size, ()))
    most, count = _samples(at, size * (1.0 / bins), ratio)
    number = _numbers(at, most, placed)
    counted = ops.convert_like(number < count, placed)
    some = ops.maximum(count, at.filled_to(1, placed, ()))
    steps = (_numbers(at, at.constant(np.array(bins)), placed, (-1, 1)) + (number + 0.5) / some) * (
        1.0 / bins
    )
    places = ops.unsqueeze(first + size * steps, np.array([3]))
    return _weighed(
        at,
        places,
        length,
        ops.unsqueeze(counted / some, np.array([3])),
        steps,
        ops.squeeze(said, np.array([2])),
    )


def _weighed(
    at: Reverse, places: Value, length: Value, share: Value, steps: Value, said: Value
) -> _Side:
    """A sample within the features takes from the two pixels beside it, at the border from the
    outermost one.
    """
    ops, last = at.ops, length - 1.0
    within = ops.logical_and(places >= -1.0, places <= length)
    share = at.where(within, share)
    pixels = _numbers(at, ops.convert(length, destination_type="i64"), places)
    gap = pixels - ops.minimum(ops.maximum(places, at.filled_to(0, places, ())), last)
    near = ops.relu(1.0 - ops.abs(gap))
    free = ops.logical_and(places > 0.0, places < last)
    slope = at.where(ops.logical_and(free, ops.abs(gap) < 1.0), ops.sign(gap))
    return _Side(
        ops.reduce_sum(near * share, np.array([2]), keep_dims=False), slope * share, steps, said
    )


def _samples(at: Reverse, size: Value, ratio: int) -> tuple[Value, Value]:
    """The greatest number of samples in a bin of any region, and that of each region ``[n, 1,
    1]``; one for each pixel unless said.
    """
    if ratio > 0:
        return at.constant(np.array(ratio)), at.filled(ratio, size)
    count = at.ops.relu(at.ops.ceiling(size))
    flat = at.ops.reshape(count, np.array([-1]), special_zero=False)
    most = at.ops.reduce_max(
        at.ops.concat(flat, at.filled_to(0, size, (1,)), axis=0), np.array([0]), keep_dims=False
    )
    return at.ops.convert(most, destination_type="i64"), count


def _numbers(at: Reverse, count: Value, like: Value, shape: Sequence[int] = (-1,)) -> Value:
    """0, 1, 2, ... in the type of a tensor."""
    numbers = at.ops.range(np.int64(0), count, np.int64(1), output_type="i64")
    return at.ops.convert_like(at.ops.reshape(numbers, np.array(shape), special_zero=False), like)


def _of_corners(at: Reverse, side: _Side, of_weights: Value) -> tuple[Value, Value]:
    """Of the first and the last corner ``[n, 1]``: samples move with the first, and spread with
    the distance of both.
    """
    ops = at.ops
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
