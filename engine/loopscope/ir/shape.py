"""Partially known shapes: intervals of dimensions, unknown dimensions, unknown rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Dimension:
    """All lengths from ``least`` to ``most``, both included; ``most`` is None without an upper
    bound.
    """

    least: int = 0
    most: int | None = None

    def __post_init__(self) -> None:
        if self.least < 0 or (self.most is not None and self.most < self.least):
            raise ValueError(f"a dimension from {self.least} to {self.most} is empty")

    @property
    def is_static(self) -> bool:
        """Whether it has one length, which is known."""
        return self.least == self.most

    @property
    def length(self) -> int:
        """The one length of a static dimension."""
        if self.most is None or self.least != self.most:
            raise ValueError(f"dimension {self} is dynamic")
        return self.least

    def contains(self, length: int) -> bool:
        return self.least <= length and (self.most is None or length <= self.most)

    def __str__(self) -> str:
        """As Parameter's ``shape`` attribute spells it.

        >>> str(Dimension(3, 3)), str(Dimension()), str(Dimension(2)), str(Dimension(0, 9)), str(Dimension(1, 8))
        ('3', '?', '2..', '..9', '1..8')
        """
        if self.is_static:
            return str(self.least)
        if self.most is None:
            return f"{self.least}.." if self.least else "?"
        return f"{self.least}..{self.most}" if self.least else f"..{self.most}"

    @staticmethod
    def parse(text: str) -> Dimension:
        """The inverse of ``str``; also takes ``-1``. ``ValueError`` for anything else."""
        text = text.strip()
        if text in ("?", "-1"):
            return Dimension()
        least, dots, most = text.partition("..")
        if not dots:
            return static(_length(text))
        return Dimension(_length(least) if least else 0, _length(most) if most else None)

    def intersect(self, other: Dimension) -> Dimension | None:
        """The lengths that both allow; None when there are none."""
        least = max(self.least, other.least)
        most = (
            self.most
            if other.most is None
            else other.most
            if self.most is None
            else min(self.most, other.most)
        )
        return None if most is not None and most < least else Dimension(least, most)

    def unite(self, other: Dimension) -> Dimension:
        """The smallest interval that holds both."""
        most = None if self.most is None or other.most is None else max(self.most, other.most)
        return Dimension(min(self.least, other.least), most)

    def __add__(self, other: Dimension | int) -> Dimension:
        other = static(other) if isinstance(other, int) else other
        most = None if self.most is None or other.most is None else self.most + other.most
        return Dimension(self.least + other.least, most)

    def __mul__(self, other: Dimension | int) -> Dimension:
        other = static(other) if isinstance(other, int) else other
        if self.most == 0 or other.most == 0:
            return static(0)
        most = None if self.most is None or other.most is None else self.most * other.most
        return Dimension(self.least * other.least, most)


@lru_cache(maxsize=4096)
def static(length: int) -> Dimension:
    """The dimension of exactly this length."""
    return Dimension(length, length)


def _length(text: str) -> int:
    text = text.strip()
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(
            f"{text[:40]!r} is not a dimension: expected a length, '?', '-1', 'a..b', 'a..' or '..b'"
        )
    return int(text)


UNKNOWN = Dimension()


@dataclass(frozen=True, slots=True)
class PartialShape:
    """A shape as far as it is known; ``dimensions`` is None when even the rank is unknown."""

    dimensions: tuple[Dimension, ...] | None = None

    @staticmethod
    def of(lengths: Iterable[int | Dimension | None]) -> PartialShape:
        """From lengths; None or a negative number is an unknown dimension.

        >>> str(PartialShape.of([2, None, -1, Dimension(1, 4)]))
        '[2,?,?,1..4]'
        """
        return PartialShape(tuple(_dimension(length) for length in lengths))

    @staticmethod
    def unknown(rank: int) -> PartialShape:
        """A shape of which only the rank is known."""
        return PartialShape((UNKNOWN,) * rank)

    @staticmethod
    def parse(text: str) -> PartialShape:
        """From Parameter's ``shape`` attribute: ``""`` scalar, ``...`` any rank, ``2,?,1..8``.

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
        """Whether every length is known."""
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
        """The dimension along an axis (negative counts from the end), unknown when the rank is."""
        return UNKNOWN if self.dimensions is None else self.dimensions[axis]

    def contains(self, lengths: tuple[int, ...]) -> bool:
        """Whether a concrete shape is one of these."""
        if self.dimensions is None:
            return True
        return len(lengths) == len(self.dimensions) and all(
            dimension.contains(length)
            for dimension, length in zip(self.dimensions, lengths, strict=True)
        )

    def intersect(self, other: PartialShape) -> PartialShape | None:
        """The shapes that both allow; None when there are none."""
        if self.dimensions is None or other.dimensions is None:
            return other if self.dimensions is None else self
        if len(self.dimensions) != len(other.dimensions):
            return None
        both = [
            mine.intersect(theirs)
            for mine, theirs in zip(self.dimensions, other.dimensions, strict=True)
        ]
        known = tuple(dimension for dimension in both if dimension is not None)
        return PartialShape(known) if len(known) == len(both) else None

    def unite(self, other: PartialShape) -> PartialShape:
        """The smallest partial shape that holds both."""
        if (
            self.dimensions is None
            or other.dimensions is None
            or len(self.dimensions) != len(other.dimensions)
        ):
            return DYNAMIC
        return PartialShape(
            tuple(
                mine.unite(theirs)
                for mine, theirs in zip(self.dimensions, other.dimensions, strict=True)
            )
        )

    def lengths_or_zeros(self) -> tuple[int, ...]:
        """The shape of a value that was never computed: dimensions that are not fixed are 0,
        whatever their bounds, as in OpenVINO.
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
    """Whether numpy can make an array of these lengths; it cannot of enormous ones, also when
    another length is 0.

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
