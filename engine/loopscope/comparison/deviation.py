"""Deviation of values in each row: largest absolute and relative error, and cosine of the angle
between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_BATCH_ELEMENTS = 1 << 18
"""Maximum number of elements per batch of rows."""
_PIECE_ELEMENTS = 1 << 14
"""Elements of a large tensor that are processed at once."""
_MAX_PLAIN_MAGNITUDE = 1e70
"""Magnitude up to which sums of fourth powers are finite, and those of reciprocals are not 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """Deviations of compared rows; each array contains one element per row."""

    absolute: np.ndarray
    """Largest distance of two elements.

    Infinite if an element is NaN or infinite and its counterpart is not the same.
    """
    relative: np.ndarray
    """Absolute deviation divided by the largest finite magnitude in either tensor."""
    cosine: np.ndarray
    """Cosine: 1 for equal directions, NaN if a tensor does not have a direction."""

    @staticmethod
    def of(left: np.ndarray, right: np.ndarray) -> Deviations:
        """Return the deviations of two arrays of one shape, with rows along the first axis.

        Raise ``ValueError`` for other arrays.
        """
        if left.shape != right.shape or not left.ndim:
            raise ValueError(
                f"shapes {list(left.shape)} and {list(right.shape)}, "
                f"expected the same with a row along the first axis"
            )
        size = int(np.prod(left.shape[1:], dtype=np.int64))
        step = max(
            1, (_PIECE_ELEMENTS if size > _PIECE_ELEMENTS else _BATCH_ELEMENTS) // max(size, 1)
        )
        parts = [
            _row_deviations(left[begin : begin + step], right[begin : begin + step], size)
            for begin in range(0, len(left), step)
        ]
        return Deviations.joined(parts)

    @staticmethod
    def joined(parts: Sequence[Deviations]) -> Deviations:
        """Return the rows of several deviations, in order."""
        columns = (
            [part.absolute for part in parts],
            [part.relative for part in parts],
            [part.cosine for part in parts],
        )
        return Deviations(
            *(np.concatenate(arrays) if arrays else np.zeros(0) for arrays in columns)
        )


def is_comparable(array: np.ndarray) -> bool:
    """Return True if an array contains numbers or booleans."""
    return array.dtype.kind in "biuf" or (array.dtype.isbuiltin == 2 and array.dtype.names is None)


def _is_plain(magnitudes: np.ndarray) -> bool:
    """Return True if tensors with these largest magnitudes can be squared without overflow or
    underflow.
    """
    return bool(
        np.all(
            (magnitudes < _MAX_PLAIN_MAGNITUDE)
            & ((magnitudes > 1 / _MAX_PLAIN_MAGNITUDE) | (magnitudes == 0))
        )
    )


def _large_row_deviation(left: np.ndarray, right: np.ndarray) -> Deviations | None:
    """Return the deviation of two large tensors, computed in pieces that fit into the processor's
    cache.

    Return None if the values are not plain.
    """
    magnitudes = np.array([max(float(side.max()), -float(side.min())) for side in (left, right)])
    if not _is_plain(magnitudes):
        return None
    left_buffer, right_buffer, distance_buffer = (np.empty(_PIECE_ELEMENTS) for _ in range(3))
    absolute = product = 0.0
    squares = [0.0, 0.0]
    for begin in range(0, left.size, _PIECE_ELEMENTS):
        count = min(_PIECE_ELEMENTS, left.size - begin)
        left_piece = left_buffer[:count]
        right_piece = right_buffer[:count]
        distance = distance_buffer[:count]
        left_piece[...], right_piece[...] = (
            left[begin : begin + count],
            right[begin : begin + count],
        )
        np.subtract(left_piece, right_piece, out=distance)
        absolute = max(absolute, float(distance.max()), -float(distance.min()))
        product += float(np.dot(left_piece, right_piece))
        squares = [
            squares[0] + float(np.dot(left_piece, left_piece)),
            squares[1] + float(np.dot(right_piece, right_piece)),
        ]
    with np.errstate(all="ignore"):
        cosine = np.float64(product) / np.sqrt(squares[0] * squares[1])
    relative = absolute / float(magnitudes.max()) if absolute else 0.0
    return Deviations(
        np.array([absolute]), np.array([relative]), np.array([cosine if absolute else 1.0])
    )


def _plain_deviations(left: np.ndarray, right: np.ndarray, scale: np.ndarray) -> Deviations:
    """Return the deviations of rows with finite elements of moderate size, in half the time."""
    distance = left - right
    absolute = np.maximum(distance.max(axis=1, initial=0), -distance.min(axis=1, initial=0))
    products, *squares = (
        np.vecdot(*sides) for sides in ((left, right), (left, left), (right, right))
    )
    cosine = np.where(absolute == 0, 1.0, products / np.sqrt(squares[0] * squares[1]))
    return Deviations(absolute, np.where(absolute == 0, 0.0, absolute / scale), cosine)


def _row_deviations(left: np.ndarray, right: np.ndarray, size: int) -> Deviations:
    if np.array_equal(left, right):  # values before the first difference
        return Deviations(np.zeros(len(left)), np.zeros(len(left)), np.ones(len(left)))
    if size > _PIECE_ELEMENTS and len(left) == 1 and {left.dtype.kind, right.dtype.kind} == {"f"}:
        large = _large_row_deviation(left.reshape(-1), right.reshape(-1))
        if large is not None:
            return large
    with np.errstate(all="ignore"):
        left_rows, right_rows = (
            np.asarray(side).reshape(len(side), size).astype(np.float64) for side in (left, right)
        )
        magnitudes = [
            np.maximum(side.max(axis=1, initial=0), -side.min(axis=1, initial=0))
            for side in (left_rows, right_rows)
        ]
        if all(map(_is_plain, magnitudes)):
            return _plain_deviations(left_rows, right_rows, np.maximum(*magnitudes))
        is_equal = (left_rows == right_rows) | (np.isnan(left_rows) & np.isnan(right_rows))
        distance = np.where(is_equal, 0.0, np.abs(left_rows - right_rows))
        absolute = np.where(np.isnan(distance), np.inf, distance).max(axis=1, initial=0)
        sides = [np.where(np.isfinite(side), side, 0) for side in (left_rows, right_rows)]
        scale = np.maximum(*(np.abs(side).max(axis=1, initial=0) for side in sides))
        relative = np.where(
            absolute == 0, 0, np.where(np.isinf(absolute), np.inf, absolute / scale)
        )
        # Scaled so that no square overflows.
        units = [side / np.abs(side).max(axis=1, initial=0, keepdims=True) for side in sides]
        products = (units[0] * units[1]).sum(axis=1)
        lengths = [np.sqrt((unit * unit).sum(axis=1)) for unit in units]
        return Deviations(
            absolute,
            relative,
            np.where(is_equal.all(axis=1), 1.0, products / (lengths[0] * lengths[1])),
        )
