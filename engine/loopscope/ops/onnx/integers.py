"""ONNX's matrix products and convolutions of 8-bit integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.onnx.byte_filters import ByteFilters, by_filter
from loopscope.ops.onnx.byte_products import LIMITS, ByteMatrix, Bytes, by_row, rows_less

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
