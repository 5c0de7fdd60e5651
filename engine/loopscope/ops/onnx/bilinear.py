"""Linear interpolation at positions of a line, a plane or a volume, in the steps of ONNX Runtime,
because the last bit decides how quantized values are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_checks import check_elements

_Neighbours = tuple[tuple[Array, Array], tuple[Array, Array]]


def between(data: Array, axes: Sequence[int], around: Sequence[_Neighbours]) -> Array:
    """Return the weighted mean of the two neighbours along each of the axes, for each position. The
    last axis runs fastest.
    """
    last = tuple(range(-len(axes), 0))
    data = np.moveaxis(data, axes, last)
    shape = (*data.shape[: data.ndim - len(axes)], *(len(neighbour[0][0]) for neighbour in around))
    check_elements(math.prod(shape), "the output of Resize")
    result: Array | None = None
    lines = {
        corner: _take_sides(data, corner, around, last)
        for corner in product((0, 1), repeat=len(axes) - 1)
    }
    for corner in product((0, 1), repeat=len(axes)):
        weight = reduce(
            np.multiply,
            (
                _along_axis(neighbour[1][side], axis)
                for axis, side, neighbour in zip(
                    last[::-1], corner[::-1], around[::-1], strict=True
                )
            ),
        )
        part = lines[corner[:-1]].take(around[-1][0][corner[-1]], -1)
        part = np.multiply(weight, part, out=part)
        result = part if result is None else np.add(result, part, out=result)
    assert result is not None
    return np.moveaxis(result, last, axes)


def _take_sides(
    data: Array, corner: Sequence[int], around: Sequence[_Neighbours], axes: Sequence[int]
) -> Array:
    """Return the neighbours on one side along each axis except the last."""
    for side, axis, neighbour in zip(corner, axes, around, strict=False):
        data = data.take(neighbour[0][side], axis)
    return data


def _along_axis(numbers: Array, axis: int) -> Array:
    return numbers.reshape(-1, *[1] * (-1 - axis))


def neighbours(length: int, exact: Array) -> _Neighbours:
    """Return the elements on both sides of each position along an axis, and their weights: a half
    each if both are the same element.
    """
    exact = np.clip(exact, exact.dtype.type(0), exact.dtype.type(length - 1))
    first = np.minimum(exact.astype(np.int64), length - 1)
    second = np.minimum(first + 1, length - 1)
    weights = (np.abs(exact - element.astype(exact.dtype)) for element in (second, first))
    near, far = (np.where(first == second, exact.dtype.type(0.5), element) for element in weights)
    return (first, second), (near, far)
