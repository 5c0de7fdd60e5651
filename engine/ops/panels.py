"""Products with a matrix that stays the same: laid out once, in the order in which BLAS reads it."""

from __future__ import annotations

import numpy as np

from engine.ops.declare import Array

SMALL_PRODUCT = 1_000_000
"""Up to this many multiplications BLAS takes a path that does not first copy its operands: for few rows that copy is most of the work."""
HAS_SMALL_PATH = any(name.startswith(("AVX512", "X86_V4")) for name in np.show_config(mode="dicts")["SIMD Extensions"]["found"])
"""Only its kernels for AVX-512 have it; with others, products of panels are slower than whole ones."""
_COLUMNS = 32
_ROWS = 32
_TOGETHER = 16
"""Panels that the processor's cache holds while all rows pass by."""


class Panels:
    """A matrix ``[K, N]`` cut into panels of 32 columns, each of them in one piece: ``[N / 32, K, 32]``, and the columns left over.

    Products with 2 to 32 rows take half the time of those with the matrix as it was, and ever larger ones come to equal them.
    """

    def __init__(self, matrix: Array) -> None:
        depth, width = matrix.shape
        whole = width - width % _COLUMNS
        self._width = width
        self._panels = np.ascontiguousarray(matrix[:, :whole].reshape(depth, -1, _COLUMNS).swapaxes(0, 1))
        self._rest = np.ascontiguousarray(matrix[:, whole:])

    def product(self, rows: Array) -> Array:
        """``[M, K] x [K, N] -> [M, N]``, in products that are all small."""
        count, depth = rows.shape
        result = np.empty((count, self._width), rows.dtype)
        whole = len(self._panels) * _COLUMNS
        by_panel = result[:, :whole].reshape(count, -1, _COLUMNS).swapaxes(0, 1)
        many = _evenly(count, _ROWS)
        deep = _evenly(depth, max(1, SMALL_PRODUCT // (many * _COLUMNS)))
        for place in range(0, len(self._panels), _TOGETHER):
            panels = self._panels[place : place + _TOGETHER]
            for row in range(0, count, many):
                target = by_panel[place : place + _TOGETHER, row : row + many]
                np.matmul(rows[row : row + many, :deep], panels[:, :deep], out=target)
                for start in range(deep, depth, deep):
                    target += rows[row : row + many, start : start + deep] @ panels[:, start : start + deep]
        if whole < self._width:
            np.matmul(rows, self._rest, out=result[:, whole:])
        return result


def _evenly(length: int, most: int) -> int:
    """The length of the parts when a length is cut into as few as possible of at most so many.

    >>> _evenly(33, 32)
    17
    """
    return -(-length // -(-length // most))
