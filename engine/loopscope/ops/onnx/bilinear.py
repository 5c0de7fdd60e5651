"""Means of the nearest elements around places of a line, a plane or a volume, in the steps of ONNX
Runtime: its bits decide how quanta are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array

_Neighbours = tuple[tuple[Array, Array], tuple[Array, Array]]


def between(data: Array, axes: Sequence[int], around: Sequence[_Neighbours]) -> Array:
    """Each place weighs the two neighbours along each of the axes; the last axis is the fastest."""
    last = tuple(range(-len(axes), 0))
    data = np.moveaxis(data, axes, last)
    shape = (*data.shape[: data.ndim - len(axes)], *(len(one[0][0]) for one in around))
    check_elements(math.prod(shape), "the output of Resize")
    made: Array | None = None
    lines = {
        corner: _taken(data, corner, around, last)
        for corner in product((0, 1), repeat=len(axes) - 1)
    }
    for corner in product((0, 1), repeat=len(axes)):
        weight = reduce(
            np.multiply,
            (
                _lying(one[1][side], axis)
                for axis, side, one in zip(last[::-1], corner[::-1], around[::-1], strict=True)
            ),
        )
        part = lines[corner[:-1]].take(around[-1][0][corner[-1]], -1)
        part = np.multiply(weight, part, out=part)
        made = part if made is None else np.add(made, part, out=made)
    assert made is not None
    return np.moveaxis(made, last, axes)


def _taken(
    data: Array, corner: Sequence[int], around: Sequence[_Neighbours], axes: Sequence[int]
) -> Array:
    """The neighbours on one side along each axis but the last."""
    for side, axis, one in zip(corner, axes, around, strict=False):
        data = data.take(one[0][side], axis)
    return data


def _lying(numbers: Array, axis: int) -> Array:
    return numbers.reshape(-1, *[1] * (-1 - axis))


def neighbours(length: int, exact: Array) -> _Neighbours:
    """The elements on both sides of each place along an axis, and what they weigh; halves where
    both are one.
    """
    exact = np.clip(exact, exact.dtype.type(0), exact.dtype.type(length - 1))
    first = np.minimum(exact.astype(np.int64), length - 1)
    second = np.minimum(first + 1, length - 1)
    weights = (np.abs(exact - one.astype(exact.dtype)) for one in (second, first))
    near, far = (np.where(first == second, exact.dtype.type(0.5), one) for one in weights)
    return (first, second), (near, far)
