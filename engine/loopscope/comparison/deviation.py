"""How far values are apart, in each row: the largest absolute and relative error, and the cosine
of the angle between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_MOST_AT_ONCE = 1 << 18
"""Elements that are computed with at a time."""
_PIECE = 1 << 14
"""Elements of a large tensor that are computed with at a time."""
_NO_OVERFLOW = 1e70
"""Fourth powers of numbers up to here, added up, are finite; those of their reciprocals are not
0.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """An array each, with an element for each row that was compared."""

    absolute: np.ndarray
    """The largest distance of two elements; infinite where one of them is NaN or infinite and
    the other is not the same.
    """
    relative: np.ndarray
    """The same as a part of the largest finite magnitude in either tensor."""
    cosine: np.ndarray
    """1 for tensors of one direction; NaN where one has no direction."""

    @staticmethod
    def of(one: np.ndarray, other: np.ndarray) -> Deviations:
        """Of two arrays of one shape with a row along the first axis; ``ValueError`` for others."""
        if one.shape != other.shape or not one.ndim:
            raise ValueError(
                f"shapes {list(one.shape)} and {list(other.shape)}, expected the same with a row along the first axis"
            )
        size = int(np.prod(one.shape[1:], dtype=np.int64))
        step = max(1, (_PIECE if size > _PIECE else _MOST_AT_ONCE) // max(size, 1))
        parts = [
            _of_rows(one[begin : begin + step], other[begin : begin + step], size)
            for begin in range(0, len(one), step)
        ]
        return Deviations.joined(parts)

    @staticmethod
    def joined(parts: Sequence[Deviations]) -> Deviations:
        """Of all rows of several, in their order."""
        columns = (
            [one.absolute for one in parts],
            [one.relative for one in parts],
            [one.cosine for one in parts],
        )
        return Deviations(*(np.concatenate(each) if each else np.zeros(0) for each in columns))


def is_comparable(array: np.ndarray) -> bool:
    """Whether it holds numbers or truth values."""
    return array.dtype.kind in "biuf" or (array.dtype.isbuiltin == 2 and array.dtype.names is None)


def _is_plain(magnitudes: np.ndarray) -> bool:
    """Whether tensors with these largest magnitudes can be multiplied by themselves as they are."""
    return bool(
        np.all((magnitudes < _NO_OVERFLOW) & ((magnitudes > 1 / _NO_OVERFLOW) | (magnitudes == 0)))
    )


def _of_large_row(one: np.ndarray, other: np.ndarray) -> Deviations | None:
    """Of two large tensors, piece by piece, so that what is computed stays in the processor's
    cache; None where they are not plain.
    """
    magnitudes = np.array([max(float(side.max()), -float(side.min())) for side in (one, other)])
    if not _is_plain(magnitudes):
        return None
    here, there, apart = (np.empty(_PIECE) for _ in range(3))
    absolute = product = 0.0
    squares = [0.0, 0.0]
    for begin in range(0, one.size, _PIECE):
        count = min(_PIECE, one.size - begin)
        mine, theirs, distance = here[:count], there[:count], apart[:count]
        mine[...], theirs[...] = one[begin : begin + count], other[begin : begin + count]
        np.subtract(mine, theirs, out=distance)
        absolute = max(absolute, float(distance.max()), -float(distance.min()))
        product += float(np.einsum("i,i->", mine, theirs))
        squares = [
            squares[0] + float(np.einsum("i,i->", mine, mine)),
            squares[1] + float(np.einsum("i,i->", theirs, theirs)),
        ]
    with np.errstate(all="ignore"):
        cosine = np.float64(product) / np.sqrt(squares[0] * squares[1])
    relative = absolute / float(magnitudes.max()) if absolute else 0.0
    return Deviations(
        np.array([absolute]), np.array([relative]), np.array([cosine if absolute else 1.0])
    )


def _of_plain_rows(here: np.ndarray, there: np.ndarray, scale: np.ndarray) -> Deviations:
    """Of rows whose elements are finite, and whose squares are neither too large nor too small:
    most rows, in half the time.
    """
    apart = here - there
    absolute = np.maximum(apart.max(axis=1, initial=0), -apart.min(axis=1, initial=0))
    products, *squares = (
        np.einsum("ij,ij->i", *sides) for sides in ((here, there), (here, here), (there, there))
    )
    cosine = np.where(absolute == 0, 1.0, products / np.sqrt(squares[0] * squares[1]))
    return Deviations(absolute, np.where(absolute == 0, 0.0, absolute / scale), cosine)


def _of_rows(one: np.ndarray, other: np.ndarray, size: int) -> Deviations:
    if np.array_equal(one, other):  # all that lies before what differs
        return Deviations(np.zeros(len(one)), np.zeros(len(one)), np.ones(len(one)))
    if size > _PIECE and len(one) == 1 and {one.dtype.kind, other.dtype.kind} == {"f"}:
        found = _of_large_row(one.reshape(-1), other.reshape(-1))
        if found is not None:
            return found
    with np.errstate(all="ignore"):
        here, there = (
            np.asarray(side).reshape(len(side), size).astype(np.float64) for side in (one, other)
        )
        magnitudes = [
            np.maximum(side.max(axis=1, initial=0), -side.min(axis=1, initial=0))
            for side in (here, there)
        ]
        if all(map(_is_plain, magnitudes)):
            return _of_plain_rows(here, there, np.maximum(*magnitudes))
        same = (here == there) | (np.isnan(here) & np.isnan(there))
        apart = np.where(same, 0.0, np.abs(here - there))
        absolute = np.where(np.isnan(apart), np.inf, apart).max(axis=1, initial=0)
        sides = [np.where(np.isfinite(side), side, 0) for side in (here, there)]
        scale = np.maximum(*(np.abs(side).max(axis=1, initial=0) for side in sides))
        relative = np.where(
            absolute == 0, 0, np.where(np.isinf(absolute), np.inf, absolute / scale)
        )
        units = [
            side / np.abs(side).max(axis=1, initial=0, keepdims=True) for side in sides
        ]  # so that no square overflows
        products = (units[0] * units[1]).sum(axis=1)
        lengths = [np.sqrt((unit * unit).sum(axis=1)) for unit in units]
        return Deviations(
            absolute,
            relative,
            np.where(same.all(axis=1), 1.0, products / (lengths[0] * lengths[1])),
        )
