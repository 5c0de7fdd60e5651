"""Inputs of kernels: whole numbers (axes, shapes, indices) of any integer type, required ranks.

Integers become Python integers and int64 arrays. Ranks are checked for arrays and known shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Known


def whole_numbers(array: np.ndarray) -> list[int]:
    """Return all elements as Python integers, also of a scalar; raise ``ValueError`` for a rank
    above 1.

    >>> whole_numbers(np.array([1, -2])), whole_numbers(np.int32(7))
    ([1, -2], [7])
    """
    if array.ndim > 1:
        raise ValueError(f"expected a list of integers, the tensor has shape {list(array.shape)}")
    kind = array.dtype.kind
    if kind == "i" or kind == "u":
        return array.reshape(-1).tolist()
    return positions(array).reshape(-1).tolist()


def whole_number(array: np.ndarray | np.generic) -> int:
    """Return the element of a scalar or one-element tensor; raise ``ValueError`` for any other
    number of elements.
    """
    if isinstance(array, np.integer):
        return int(array)
    if array.size != 1:
        raise ValueError(f"expected one integer, the tensor has shape {list(array.shape)}")
    if array.dtype.kind in "iu":
        return int(array.item())
    return whole_numbers(np.asarray(array).reshape(-1))[0]


def positions(array: np.ndarray) -> np.ndarray:
    """Return the same numbers as int64, which numpy indexes with; packed and 4-bit types
    included.
    """
    if array.dtype.names:
        return np.asarray(array[array.dtype.names[0]]).astype(np.int64)
    return array if array.dtype == np.int64 else array.astype(np.int64)


def positions_within(array: np.ndarray, length: int, what: str) -> np.ndarray:
    """Return positions along an axis of ``length``; negative ones count from the end.

    Raise ``ValueError`` that names the first position out of range.
    """
    values = np.asarray(positions(array))
    if values.size and (values.min() < -length or values.max() >= length):
        outside = values[(values < -length) | (values >= length)]
        raise ValueError(
            f"{what} {outside.reshape(-1)[0]} is out of range for an axis of length {length}"
        )
    return values


def axis_within(axis: int, rank: int) -> int:
    """Return an axis counted from the front; raise ``ValueError`` if the axis is out of range.

    >>> axis_within(-1, 3)
    2
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for rank {rank}")
    return axis + rank if axis < 0 else axis


def axes_within(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes counted from the front; raise ``ValueError`` if one is out of range or
    repeated.
    """
    result = [axis_within(axis, rank) for axis in axes]
    if len(set(result)) != len(result):
        raise ValueError(f"axes {list(axes)} name one axis of rank {rank} twice")
    return result


def shape_of_rank(known: Known, rank: int, what: str) -> PartialShape:
    """Return the shape with ``rank`` dimensions, also if it is unknown; raise ``ValueError`` for
    another rank.

    >>> str(shape_of_rank(Known(), 2, "the table"))
    '[?,?]'
    """
    if known.shape.dimensions is None:
        return PartialShape.unknown(rank)
    if len(known.shape.dimensions) != rank:
        raise ValueError(f"{what} has shape {known.shape}, expected rank {rank}")
    return known.shape


def check_rank(array: Array, rank: int, what: str) -> None:
    """Raise ``ValueError`` if an array has another rank."""
    if array.ndim != rank:
        raise ValueError(f"{what} has shape {list(array.shape)}, expected rank {rank}")
