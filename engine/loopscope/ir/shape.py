"""Partially known shapes, and partially known values of small tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Dimension:
    """All lengths from ``least`` to ``most``, both included.

    ``most`` is None without an upper bound.
    """

    least: int = 0
    most: int | None = None

    def __post_init__(self) -> None:
        if self.least < 0 or (self.most is not None and self.most < self.least):
            raise ValueError(f"a dimension from {self.least} to {self.most} is empty")

    @property
    def is_static(self) -> bool:
        """True if there is exactly one possible length."""
        return self.least == self.most

    @property
    def length(self) -> int:
        """The only length of a static dimension; ``ValueError`` for a dynamic dimension."""
        if self.most is None or self.least != self.most:
            raise ValueError(f"dimension {self} is dynamic")
        return self.least

    def contains(self, length: int) -> bool:
        return self.least <= length and (self.most is None or length <= self.most)

    def __str__(self) -> str:
        """Return the spelling of Parameter's ``shape`` attribute.

        >>> str(Dimension(3, 3)), str(Dimension()), str(Dimension(2))
        ('3', '?', '2..')
        >>> str(Dimension(0, 9)), str(Dimension(1, 8))
        ('..9', '1..8')
        """
        if self.is_static:
            return str(self.least)
        if self.most is None:
            return f"{self.least}.." if self.least else "?"
        return f"{self.least}..{self.most}" if self.least else f"..{self.most}"

    @staticmethod
    def parse(text: str) -> Dimension:
        """Parse a dimension: the inverse of ``str``, also of ``-1``. ``ValueError`` for other
        texts.
        """
        text = text.strip()
        if text in ("?", "-1"):
            return Dimension()
        lower, dots, upper = text.partition("..")
        if not dots:
            return static(_length(text))
        return Dimension(_length(lower) if lower else 0, _length(upper) if upper else None)

    def intersect(self, other: Dimension) -> Dimension | None:
        """Return the lengths that both allow; None when there are none."""
        lower = max(self.least, other.least)
        upper = (
            self.most
            if other.most is None
            else other.most
            if self.most is None
            else min(self.most, other.most)
        )
        return None if upper is not None and upper < lower else Dimension(lower, upper)

    def unite(self, other: Dimension) -> Dimension:
        """Return the smallest interval that contains both."""
        upper = None if self.most is None or other.most is None else max(self.most, other.most)
        return Dimension(min(self.least, other.least), upper)

    def __add__(self, other: Dimension | int) -> Dimension:
        other = static(other) if isinstance(other, int) else other
        upper = None if self.most is None or other.most is None else self.most + other.most
        return Dimension(self.least + other.least, upper)

    def __mul__(self, other: Dimension | int) -> Dimension:
        other = static(other) if isinstance(other, int) else other
        if self.most == 0 or other.most == 0:
            return static(0)
        upper = None if self.most is None or other.most is None else self.most * other.most
        return Dimension(self.least * other.least, upper)


@lru_cache(maxsize=4096)
def static(length: int) -> Dimension:
    """Return the dimension of exactly this length."""
    return Dimension(length, length)


def _length(text: str) -> int:
    text = text.strip()
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(
            f"{text[:40]!r} is not a dimension: "
            "expected a length, '?', '-1', 'a..b', 'a..' or '..b'"
        )
    return int(text)


UNKNOWN = Dimension()


@dataclass(frozen=True, slots=True)
class PartialShape:
    """A partially known shape; ``dimensions`` is None when even the rank is unknown."""

    dimensions: tuple[Dimension, ...] | None = None

    @staticmethod
    def of(lengths: Iterable[int | Dimension | None]) -> PartialShape:
        """Return the shape of these lengths; None or a negative number is an unknown dimension.

        >>> str(PartialShape.of([2, None, -1, Dimension(1, 4)]))
        '[2,?,?,1..4]'
        """
        return PartialShape(tuple(_dimension(length) for length in lengths))

    @staticmethod
    def unknown(rank: int) -> PartialShape:
        """Return a shape of known rank and unknown lengths."""
        return PartialShape((UNKNOWN,) * rank)

    @staticmethod
    def parse(text: str) -> PartialShape:
        """Parse Parameter's ``shape`` attribute: ``""`` scalar, ``...`` any rank, ``2,?,1..8``.

        >>> [str(PartialShape.parse(text)) for text in ("", "...", "2, ?,1..8", "-1")]
        ['[]', '...', '[2,?,1..8]', '[?]']
        """
        text = text.strip()
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1].strip()
        if text == "...":
            return DYNAMIC
        return (
            PartialShape(tuple(Dimension.parse(part) for part in text.split(",")))
            if text
            else PartialShape(())
        )

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None when it is unknown."""
        return None if self.dimensions is None else len(self.dimensions)

    @property
    def is_static(self) -> bool:
        """True if every length is known."""
        return self.dimensions is not None and all(
            dimension.is_static for dimension in self.dimensions
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of a static shape; ``ValueError`` when it is dynamic."""
        if self.dimensions is None:
            raise ValueError("the rank is unknown")
        return tuple(dimension.length for dimension in self.dimensions)

    def at(self, axis: int) -> Dimension:
        """Return the dimension of an axis (negative counts from the end).

        It is unknown if the rank is.
        """
        return UNKNOWN if self.dimensions is None else self.dimensions[axis]

    def contains(self, lengths: tuple[int, ...]) -> bool:
        """Return True if this partial shape allows a concrete shape."""
        if self.dimensions is None:
            return True
        if len(lengths) != len(self.dimensions):
            return False
        # A loop, because a generator takes as long as a small operation of a model.
        for dimension, length in zip(self.dimensions, lengths, strict=True):
            if not dimension.contains(length):
                return False
        return True

    def intersect(self, other: PartialShape) -> PartialShape | None:
        """Return the shapes that both allow; None when there are none."""
        if self.dimensions is None or other.dimensions is None:
            return other if self.dimensions is None else self
        if len(self.dimensions) != len(other.dimensions):
            return None
        dimensions = [
            left.intersect(right)
            for left, right in zip(self.dimensions, other.dimensions, strict=True)
        ]
        known = tuple(dimension for dimension in dimensions if dimension is not None)
        return PartialShape(known) if len(known) == len(dimensions) else None

    def unite(self, other: PartialShape) -> PartialShape:
        """Return the smallest partial shape that contains both."""
        if (
            self.dimensions is None
            or other.dimensions is None
            or len(self.dimensions) != len(other.dimensions)
        ):
            return DYNAMIC
        return PartialShape(
            tuple(
                left.unite(right)
                for left, right in zip(self.dimensions, other.dimensions, strict=True)
            )
        )

    def lengths_or_zeros(self) -> tuple[int, ...]:
        """Return the shape of a value that was never computed, as in OpenVINO.

        Dimensions that are not static become 0, whatever their bounds.
        """
        return (
            ()
            if self.dimensions is None
            else tuple(d.length if d.is_static else 0 for d in self.dimensions)
        )

    def __str__(self) -> str:
        return (
            "..."
            if self.dimensions is None
            else f"[{','.join(str(dimension) for dimension in self.dimensions)}]"
        )


def is_of_an_array(lengths: Sequence[int]) -> bool:
    """Return True if numpy can create an array of these lengths.

    Enormous lengths fail, also when another length is 0.

    >>> is_of_an_array((0, 3)), is_of_an_array((0, 2**62, 2**62)), is_of_an_array((1,) * 65)
    (True, False, False)
    """
    return (
        len(lengths) <= MOST_DIMENSIONS
        and math.prod(length for length in lengths if length) <= MOST_PLACES
    )


MOST_DIMENSIONS, MOST_PLACES = 64, 1 << 58
DYNAMIC = PartialShape(None)
SCALAR = PartialShape(())


def _dimension(length: int | Dimension | None) -> Dimension:
    if isinstance(length, Dimension):
        return length
    return UNKNOWN if length is None or length < 0 else static(int(length))


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
