"""Integer inputs that say where or how many (axes, shapes, indices), whatever integer type they
have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def whole_numbers(array: np.ndarray) -> list[int]:
    """All elements as Python integers; scalars give one, and what is no list is a ``ValueError``.

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
    """The one element of a scalar or one-element tensor; ``ValueError`` when there are more, or
    none.
    """
    if isinstance(array, np.integer):
        return int(array)
    if array.size != 1:
        raise ValueError(f"expected one integer, the tensor has shape {list(array.shape)}")
    if array.dtype.kind in "iu":
        return int(array.item())
    return whole_numbers(np.asarray(array).reshape(-1))[0]


def positions(array: np.ndarray) -> np.ndarray:
    """The same numbers as int64, which numpy indexes with; packed and 4-bit types included."""
    if array.dtype.names:
        return np.asarray(array[array.dtype.names[0]]).astype(np.int64)
    return array if array.dtype == np.int64 else array.astype(np.int64)


def positions_within(array: np.ndarray, length: int, what: str) -> np.ndarray:
    """Positions along an axis of ``length``, negative ones counted from the end; ``ValueError``
    names the first that lies outside.
    """
    found = np.asarray(positions(array))
    if found.size and (found.min() < -length or found.max() >= length):
        outside = found[(found < -length) | (found >= length)]
        raise ValueError(
            f"{what} {outside.reshape(-1)[0]} is out of range for an axis of length {length}"
        )
    return found


def axis_within(axis: int, rank: int) -> int:
    """An axis counted from the front; ``ValueError`` when there is no such axis.

    >>> axis_within(-1, 3)
    2
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for rank {rank}")
    return axis + rank if axis < 0 else axis


def axes_within(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front; ``ValueError`` when one is out of range or named twice."""
    found = [axis_within(axis, rank) for axis in axes]
    if len(set(found)) != len(found):
        raise ValueError(f"axes {list(axes)} name one axis of rank {rank} twice")
    return found
