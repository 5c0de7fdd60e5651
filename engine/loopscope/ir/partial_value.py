"""Partially known values of small tensors: an interval for each element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static

MOST_ELEMENTS = 64
"""Maximum number of elements of a tensor whose elements are tracked individually.

Shapes and bounds of slices have fewer elements.
"""
_EXACT = 2.0**53
"""Bound up to which float64 represents every integer exactly."""

Interval = tuple[float, float]
"""Lower and upper bound, both included."""


@dataclass(frozen=True, slots=True, eq=False)
class PartialValue:
    """An interval for each element of a small tensor.

    The bounds ``least`` and ``most`` are float64 arrays; an element without a bound has an
    infinity.
    """

    least: np.ndarray
    most: np.ndarray

    @staticmethod
    def of_array(array: np.ndarray) -> PartialValue:
        """Return the exact intervals of an array.

        Integers beyond 2**53 get an interval without end.
        """
        numbers = array.astype(np.float64)
        lower = np.where(numbers >= _EXACT, _EXACT, np.where(numbers <= -_EXACT, -np.inf, numbers))
        upper = np.where(numbers >= _EXACT, np.inf, np.where(numbers <= -_EXACT, -_EXACT, numbers))
        return PartialValue(lower, upper)

    @staticmethod
    def of_shape(shape: PartialShape) -> PartialValue | None:
        """Return the lengths of a shape as a tensor [rank].

        None when the rank is unknown or too large.
        """
        if shape.dimensions is None or len(shape.dimensions) > MOST_ELEMENTS:
            return None
        lower = np.array([dimension.least for dimension in shape.dimensions], np.float64)
        upper = np.array(
            [
                np.inf if dimension.most is None else dimension.most
                for dimension in shape.dimensions
            ],
            np.float64,
        )
        return PartialValue(lower, upper)

    @property
    def is_idle(self) -> bool:
        """Return True if no element has a bound."""
        return bool(np.isneginf(self.least).all() and np.isposinf(self.most).all())

    @property
    def intervals(self) -> list[Interval]:
        """Return the intervals of the elements in order."""
        return list(
            zip(self.least.reshape(-1).tolist(), self.most.reshape(-1).tolist(), strict=True)
        )

    @property
    def lengths(self) -> tuple[Dimension, ...]:
        """Return the elements as lengths; an element that may be negative becomes unknown.

        >>> known = PartialValue(np.array([2.0, 0.0, -1.0]), np.array([2.0, np.inf, 7.0]))
        >>> [str(length) for length in known.lengths]
        ['2', '?', '?']
        """
        return tuple(length_within(interval) for interval in self.intervals)

    def contains(self, array: np.ndarray) -> bool:
        """Return True if every element of the array lies in its interval."""
        numbers = array.astype(np.float64)
        return numbers.shape == self.least.shape and bool(
            ((self.least <= numbers) & (numbers <= self.most)).all()
        )

    def unite(self, other: PartialValue) -> PartialValue | None:
        """Return the smallest intervals that contain both; None when the shapes differ."""
        if self.least.shape != other.least.shape:
            return None
        return PartialValue(np.minimum(self.least, other.least), np.maximum(self.most, other.most))

    def widen(self, other: PartialValue) -> PartialValue | None:
        """Return these intervals, without the bounds of elements where ``other`` leaves them.

        None when the shapes differ.
        """
        if self.least.shape != other.least.shape:
            return None
        within = (self.least <= other.least) & (other.most <= self.most)
        return PartialValue(
            np.where(within, self.least, -np.inf), np.where(within, self.most, np.inf)
        )

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, PartialValue):
            return NotImplemented
        return np.array_equal(self.least, other.least) and np.array_equal(self.most, other.most)


def length_within(interval: Interval) -> Dimension:
    """Return an interval as a length; unknown where it may be negative.

    >>> str(length_within((1.0, 8.0))), str(length_within((-1.0, 8.0)))
    ('1..8', '?')
    >>> str(length_within((3.0, 3.0)))
    '3'
    """
    lower, upper = interval
    if lower < 0:
        return UNKNOWN
    return (
        static(int(lower))
        if lower == upper
        else Dimension(int(lower), None if upper >= _EXACT else int(upper))
    )
