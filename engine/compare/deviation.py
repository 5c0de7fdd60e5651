"""How far values are apart, in each row: the largest absolute and relative error, and the cosine of the angle between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_MOST_AT_ONCE = 1 << 18
"""Elements that are computed with at a time."""
_NO_OVERFLOW = 1e70
"""Fourth powers of numbers up to here, added up, are finite; those of their reciprocals are not 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """An array each, with an element for each row that was compared."""

    absolute: np.ndarray
    """The largest distance of two elements; infinite where one of them is NaN or infinite and the other is not the same."""
    relative: np.ndarray
    """The same as a part of the largest finite magnitude in either tensor."""
    cosine: np.ndarray
    """1 for tensors of one direction; NaN where one has no direction."""

    @staticmethod
    def of(one: np.ndarray, other: np.ndarray) -> Deviations:
        """Of two arrays of one shape with a row along the first axis; ``ValueError`` for others."""
        if one.shape != other.shape or not one.ndim:
            raise ValueError(f"shapes {list(one.shape)} and {list(other.shape)}, expected the same with a row along the first axis")
        size = int(np.prod(one.shape[1:], dtype=np.int64))
        step = max(1, _MOST_AT_ONCE // max(size, 1))
        parts = [_of_rows(one[begin : begin + step], other[begin : begin + step], size) for begin in range(0, len(one), step)]
        return Deviations.joined(parts)

    @staticmethod
    def joined(parts: Sequence[Deviations]) -> Deviations:
        """Of all rows of several, in their order."""
        columns = ([one.absolute for one in parts], [one.relative for one in parts], [one.cosine for one in parts])
        return Deviations(*(np.concatenate(each) if each else np.zeros(0) for each in columns))


def is_comparable(array: np.ndarray) -> bool:
    """Whether it holds numbers or truth values."""
    return array.dtype.kind in "biuf" or (array.dtype.isbuiltin == 2 and array.dtype.names is None)


def _of_plain_rows(here: np.ndarray, there: np.ndarray, scale: np.ndarray) -> Deviations:
    """Of rows whose elements are finite, and whose squares are neither too large nor too small: most rows, in half the time."""
    apart = here - there
    absolute = np.maximum(apart.max(axis=1, initial=0), -apart.min(axis=1, initial=0))
    products, *squares = (np.einsum("ij,ij->i", *sides) for sides in ((here, there), (here, here), (there, there)))
    cosine = np.where(absolute == 0, 1.0, products / np.sqrt(squares[0] * squares[1]))
    return Deviations(absolute, np.where(absolute == 0, 0.0, absolute / scale), cosine)


def _of_rows(one: np.ndarray, other: np.ndarray, size: int) -> Deviations:
    if np.array_equal(one, other):  # all that lies before what differs
        return Deviations(np.zeros(len(one)), np.zeros(len(one)), np.ones(len(one)))
    with np.errstate(all="ignore"):
        here, there = (np.asarray(side).reshape(len(side), size).astype(np.float64) for side in (one, other))
        magnitudes = [np.maximum(side.max(axis=1, initial=0), -side.min(axis=1, initial=0)) for side in (here, there)]
        if all(np.all((each < _NO_OVERFLOW) & ((each > 1 / _NO_OVERFLOW) | (each == 0))) for each in magnitudes):
            return _of_plain_rows(here, there, np.maximum(*magnitudes))
        same = (here == there) | (np.isnan(here) & np.isnan(there))
        apart = np.where(same, 0.0, np.abs(here - there))
        absolute = np.where(np.isnan(apart), np.inf, apart).max(axis=1, initial=0)
        sides = [np.where(np.isfinite(side), side, 0) for side in (here, there)]
        scale = np.maximum(*(np.abs(side).max(axis=1, initial=0) for side in sides))
        relative = np.where(absolute == 0, 0, np.where(np.isinf(absolute), np.inf, absolute / scale))
        units = [side / np.abs(side).max(axis=1, initial=0, keepdims=True) for side in sides]  # so that no square overflows
        products = (units[0] * units[1]).sum(axis=1)
        lengths = [np.sqrt((unit * unit).sum(axis=1)) for unit in units]
        return Deviations(absolute, relative, np.where(same.all(axis=1), 1.0, products / (lengths[0] * lengths[1])))
