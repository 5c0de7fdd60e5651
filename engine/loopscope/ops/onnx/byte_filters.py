"""Exact correlations of 8-bit integers with filters of 8-bit integers, both less their zero points.
The sums are i32 and wrap around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Self

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.onnx.byte_products import EXACT, Bytes, as_integers
from loopscope.ops.onnx.windows import convolved


class ByteFilters:
    """Filters ``[O, C / group, kernel...]`` less their zero points: one zero point, or one for each
    filter.
    """

    def __init__(self, filters: Bytes) -> None:
        self._filters = np.subtract(filters.numbers, filters.zero, dtype=np.float32)
        axes = tuple(range(1, self._filters.ndim))
        self._greatest = float(
            np.abs(self._filters).sum(axis=axes, dtype=np.float64).max(initial=0)
        )
        """The greatest sum of magnitudes of a filter."""

    @classmethod
    def of(cls, filters: Array, zero: Array | None, /) -> Self:
        """Return the filters of an i8 or u8 array. Raise ``ValueError`` for zero points that do not
        fit.
        """
        return cls(Bytes.of(filters, by_filter(zero, filters, "zero points")))

    @staticmethod
    def most_bytes(shape: Sequence[int]) -> int:
        """Return the largest number of bytes of filters of a shape: their elements in f64."""
        return 8 * prod(shape)

    def sums(self, data: Bytes, attributes: Mapping[str, Any]) -> Array:
        """Return ``[N, C, lengths...] -> [N, O, places...]`` with the attributes of Conv. Padding
        has the value of the data's zero point.
        """
        greatest = max(127 - int(data.zero[0]), int(data.zero[0]) + 128)
        if self._greatest * greatest > EXACT and self._filters.dtype != np.float64:
            self._filters = self._filters.astype(
                np.float64
            )  # exact up to 2^53, which no filter in memory reaches
        numbers = np.subtract(data.numbers, data.zero, dtype=self._filters.dtype)
        sums = convolved(numbers, self._filters, attributes)
        if sums.dtype == np.float64:
            return sums.astype(np.int64).astype(np.int32)
        return as_integers(np.ascontiguousarray(sums))


def by_filter(numbers: Array | None, filters: Array, what: str) -> Array | None:
    """Return a number for each filter along the filters' axis; one number for all filters as a
    scalar.
    """
    if numbers is None or numbers.size == 1:
        return None if numbers is None else numbers.reshape(())
    if numbers.shape != filters.shape[:1]:
        raise ValueError(
            f"the {what} of the filters have shape {list(numbers.shape)}, "
            f"expected one number or {len(filters)}"
        )
    return numbers.reshape(-1, *[1] * (filters.ndim - 1))
