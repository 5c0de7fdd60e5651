"""ONNX's matrix products and convolutions of 8-bit integers.

Correlations with filters are exact: both sides less their zero points, in sums of i32 that wrap
around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Self

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.onnx.byte_products import (
    EXACT,
    LIMITS,
    ByteMatrix,
    Bytes,
    as_integers,
    by_row,
    rows_less,
)
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


MadeReady = Callable[[Array, Array | None], Any]
"""Function that returns a matrix or filters ready for products, from weights and their zero points:
a new one, or a cached one.
"""


def matmul_integer(
    rows: Array,
    columns: Array,
    rows_zero: Array | None = None,
    columns_zero: Array | None = None,
    /,
    *,
    ready: MadeReady = ByteMatrix.of,
) -> Array:
    """Return ``(rows - rows_zero) @ (columns - columns_zero)`` in i32, which wraps around: ``[...,
    M, K] x [..., K, N] -> [..., M, N]``.

    Zero points are scalars, or ``[M]`` or ``[..., M, 1]`` for each row, ``[N]`` or ``[..., 1, N]``
    for each column.
    """
    return np.asarray(ready(columns, columns_zero).sums(rows_less(rows, rows_zero)))


def qlinear_matmul(
    rows: Array,
    rows_scale: Array,
    rows_zero: Array,
    columns: Array,
    columns_scale: Array,
    columns_zero: Array,
    scale: Array,
    zero: Array,
    /,
    *,
    ready: MadeReady = ByteMatrix.of,
) -> Array:
    """Return the quantized product of two quantized matrices. Scales have the shapes that zero
    points have in ``matmul_integer``.
    """
    sums = ready(columns, columns_zero).sums(rows_less(rows, rows_zero))
    factors = (
        by_row(_unwrap_single(rows_scale))
        * _unwrap_single(columns_scale)
        / by_row(_unwrap_single(scale))
    )
    return _quantize(sums, np.asarray(factors), by_row(_unwrap_single(zero)))


def _unwrap_single(numbers: Array) -> Any:
    return numbers.reshape(-1)[0] if numbers.size == 1 else numbers


def _quantize(sums: Array, factors: Array, zero: Any) -> Array:
    """Return sums in i32 times factors in f32, rounded to even as in ONNX Runtime, plus the zero
    point, and cut to the zero point's type.
    """
    moved = np.asarray(np.multiply(sums, factors, dtype=np.float32, casting="unsafe"))
    np.rint(moved, out=moved)
    moved += zero
    return moved.clip(*LIMITS[zero.dtype], out=moved).astype(zero.dtype)


def conv_integer(
    data: Array,
    filters: Array,
    data_zero: Array | None = None,
    filters_zero: Array | None = None,
    /,
    *,
    ready: MadeReady = ByteFilters.of,
    **window: Any,
) -> Array:
    """Return the correlation of data with filters, both less their zero points, in i32. Padding has
    the value of the data's zero point.

    ``[N, C, lengths...] x [O, C / group, kernel...] -> [N, O, places...]``; the filters have one
    zero point, or ``O``.
    """
    if data_zero is not None and data_zero.size != 1:
        raise ValueError(
            f"the zero points of the data have shape {list(data_zero.shape)}, expected one number"
        )
    return np.asarray(ready(filters, filters_zero).sums(Bytes.of(data, data_zero), window))


def qlinear_conv(
    data: Array,
    data_scale: Array,
    data_zero: Array,
    filters: Array,
    filters_scale: Array,
    filters_zero: Array,
    scale: Array,
    zero: Array,
    bias: Array | None = None,
    /,
    *,
    ready: MadeReady = ByteFilters.of,
    **window: Any,
) -> Array:
    """Return a quantized correlation: the sums of ``conv_integer`` and a bias in i32, quantized
    with a scale for all filters or for each.
    """
    sums = conv_integer(data, filters, data_zero, filters_zero, ready=ready, **window)
    places = [1] * (sums.ndim - 2)
    if bias is not None:
        if bias.shape != sums.shape[1:2]:
            raise ValueError(f"the bias has shape {list(bias.shape)}, expected {[sums.shape[1]]}")
        sums += bias.reshape(-1, *places)
    scales = by_filter(filters_scale, filters, "scales")
    assert scales is not None
    factors = _unwrap_single(data_scale) * scales.reshape(-1, *places) / _unwrap_single(scale)
    return _quantize(sums, np.asarray(factors), _unwrap_single(zero))
