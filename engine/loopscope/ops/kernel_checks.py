"""Checks in kernels: whole numbers (axes, shapes, indices) of any integer type, required ranks, and
the limit on the size of arrays.

Integers become Python integers and int64 arrays. Ranks are checked for arrays and known shapes.
Kernels whose output size depends on a value check it before they allocate.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

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


MOST_ELEMENTS = 2**31
_allowed: ContextVar[int] = ContextVar("allowed_elements", default=MOST_ELEMENTS)


_at_once: ContextVar[int] = ContextVar("elements_at_once", default=MOST_ELEMENTS)


class TooLarge(Exception):
    """Error for an array that is larger than ``at_once`` allows, though within the limit of the
    run.
    """

    def __init__(self, elements: int) -> None:
        self.elements = elements
        super().__init__(f"an array of {elements} elements")


def check_elements(elements: int, what: str) -> None:
    """Raise ``ValueError`` if an array of ``elements`` elements exceeds the run's limit; ``what``
    names the array.

    >>> check_elements(2**40, "the range")
    Traceback (most recent call last):
    ValueError: the range would have 1099511627776 elements, more than the limit of 2147483648
    """
    check_whole(elements, what)
    if elements > _at_once.get():
        raise TooLarge(elements)


def check_whole(elements: int, what: str) -> None:
    """Raise ``ValueError`` like ``check_elements``, but never ``TooLarge``, for an array that
    cannot be computed in parts.
    """
    if elements > _allowed.get():
        raise ValueError(
            f"{what} would have {elements} elements, more than the limit of {_allowed.get()}"
        )


class _Bound:
    """A limit on elements, set while the context is open."""

    __slots__ = ("_elements", "_token", "_variable")

    def __init__(self, variable: ContextVar[int], elements: int | None) -> None:
        self._variable = variable
        self._elements = MOST_ELEMENTS if elements is None else elements

    def __enter__(self) -> None:
        self._token = self._variable.set(self._elements)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


def at_most(elements: int | None) -> _Bound:
    """Limit the elements of every array within the context; None sets the engine's own limit."""
    return _Bound(_allowed, elements)


def at_once(elements: int | None) -> _Bound:
    """Make ``check_elements`` raise ``TooLarge`` for larger arrays within the context."""
    return _Bound(_at_once, elements)
