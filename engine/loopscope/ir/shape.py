"""Partially known shapes: intervals of dimensions, unknown dimensions, unknown rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache


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
