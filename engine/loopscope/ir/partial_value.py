"""Partially known values of small tensors: an interval for each element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static

MOST_ELEMENTS = 64
"""Of a tensor whose elements are followed one by one; shapes and bounds of slices are smaller."""
_EXACT = 2.0**53
"""Up to here every whole number is a float64."""

Interval = tuple[float, float]
"""Least and greatest number, both included."""


@dataclass(frozen=True, slots=True, eq=False)
class PartialValue:
    """Each element lies from that of ``least`` to that of ``most``; both are float64, infinite
    where there is no bound.
    """

    least: np.ndarray
    most: np.ndarray

    @staticmethod
    def of_array(array: np.ndarray) -> PartialValue:
        """Everything is known of an array of numbers at hand, but of whole numbers beyond 2**53
        only that they are beyond.
        """
        numbers = array.astype(np.float64)
        least = np.where(numbers >= _EXACT, _EXACT, np.where(numbers <= -_EXACT, -np.inf, numbers))
        most = np.where(numbers >= _EXACT, np.inf, np.where(numbers <= -_EXACT, -_EXACT, numbers))
        return PartialValue(least, most)

    @staticmethod
    def of_shape(shape: PartialShape) -> PartialValue | None:
        """The lengths of a shape as a tensor [rank]; None when the rank is unknown."""
        if shape.dimensions is None or len(shape.dimensions) > MOST_ELEMENTS:
            return None
        least = np.array([one.least for one in shape.dimensions], np.float64)
        most = np.array(
            [np.inf if one.most is None else one.most for one in shape.dimensions], np.float64
        )
        return PartialValue(least, most)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is known of any element."""
        return bool(np.isneginf(self.least).all() and np.isposinf(self.most).all())

    @property
    def intervals(self) -> list[Interval]:
        """Of the elements in order."""
        return list(
            zip(self.least.reshape(-1).tolist(), self.most.reshape(-1).tolist(), strict=True)
        )

    @property
    def lengths(self) -> tuple[Dimension, ...]:
        """The elements as lengths; one that may be negative is unknown.

        >>> known = PartialValue(np.array([2.0, 0.0, -1.0]), np.array([2.0, np.inf, 7.0]))
        >>> [str(length) for length in known.lengths]
        ['2', '?', '?']
        """
        return tuple(length_within(interval) for interval in self.intervals)

    def contains(self, array: np.ndarray) -> bool:
        """Whether a tensor may have this value."""
        numbers = array.astype(np.float64)
        return numbers.shape == self.least.shape and bool(
            ((self.least <= numbers) & (numbers <= self.most)).all()
        )

    def unite(self, other: PartialValue) -> PartialValue | None:
        """The smallest intervals that hold both; None when the shapes differ."""
        if self.least.shape != other.least.shape:
            return None
        return PartialValue(np.minimum(self.least, other.least), np.maximum(self.most, other.most))

    def widen(self, other: PartialValue) -> PartialValue | None:
        """As ``unite``, but nothing is known any more of an element that leaves its interval."""
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
    """A number as a length; unknown where it may be negative.

    >>> str(length_within((1.0, 8.0))), str(length_within((-1.0, 8.0))), str(length_within((3.0, 3.0)))
    ('1..8', '?', '3')
    """
    least, most = interval
    if least < 0:
        return UNKNOWN
    return (
        static(int(least))
        if least == most
        else Dimension(int(least), None if most >= _EXACT else int(most))
    )
