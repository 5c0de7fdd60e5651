"""ONNX's linear quantization, and matrix products and convolutions of 8-bit integers.

Floats become quanta and return to floats. Correlations with filters are exact: both sides less
their zero points, in sums of i32 that wrap around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Self

import ml_dtypes
import numpy as np
from onnx import helper

from loopscope.ir.element_type import is_whole, type_name
from loopscope.ops.declare import Array
from loopscope.ops.kernel_arithmetic import computable, integer_limits
from loopscope.ops.kernel_checks import axis_within, check_elements
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


def quantize_linear(
    data: Array,
    scale: Array,
    zero_point: Array | None = None,
    /,
    *,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int | None = None,
) -> Array:
    """Return ``data / scale`` rounded to the nearest, halves to even, plus the zero point, cut to
    the range of the output's type.

    There is one scale, or one for each position along ``axis``, or one for each block of
    ``block_size`` along ``axis``. ``precision`` is the type of the division, 0 for that of the
    scale. Before opset 23 ONNX does not define it (None), and small floats are divided in f32.
    """
    dtype = _quantized_type(zero_point, output_dtype)
    factor = along(scale, data.shape, axis, block_size)
    if precision is None:
        quotient = computable(
            data.astype(scale.dtype) if data.dtype.kind in "iu" else data
        ) / computable(factor)
    else:
        dividing = helper.tensor_dtype_to_np_dtype(precision) if precision else scale.dtype
        quotient = computable(data.astype(dividing) / factor.astype(dividing))
    zero = None if zero_point is None else along(zero_point, data.shape, axis, block_size)
    if is_whole(dtype):
        return quanta(quotient, zero, dtype)
    return _narrow_floats(
        quotient if zero is None else quotient + computable(zero), dtype, bool(saturate)
    )


def _quantized_type(zero_point: Array | None, output_dtype: int) -> np.dtype:
    """Return the type of the quantized values: that of the zero point, the named type, or u8."""
    output_type = helper.tensor_dtype_to_np_dtype(output_dtype) if output_dtype else None
    if zero_point is None:
        return output_type or np.dtype(np.uint8)
    if output_type is not None and output_type != zero_point.dtype:
        raise ValueError(
            f"output_dtype is {type_name(output_type)} and the zero point is "
            f"{type_name(zero_point.dtype)}, expected one type"
        )
    return zero_point.dtype


def along(parameter: Array, shape: Sequence[int], axis: int, block_size: int = 0) -> Array:
    """Return scales or zero points in a form that broadcasts to data of ``shape``. Raise
    ``ValueError`` for a number of them that does not fit the data.
    """
    rank = len(shape)
    if parameter.ndim == 0 or (parameter.size == 1 and parameter.ndim == 1 and not block_size):
        return parameter.reshape(())
    place = axis_within(axis, rank)
    if block_size > 0:
        expected = [
            -(-length // block_size) if number == place else length
            for number, length in enumerate(shape)
        ]
        if list(parameter.shape) != expected:
            raise ValueError(
                f"{list(parameter.shape)} scales or zero points, "
                f"expected {expected}: blocks of {block_size} on axis {place}"
            )
        check_elements(parameter.size * block_size, "the scales of all blocks")
        return parameter.repeat(block_size, place)[(slice(None),) * place + (slice(shape[place]),)]
    if parameter.shape != (shape[place],):
        raise ValueError(
            f"{list(parameter.shape)} scales or zero points, "
            f"expected one, or the {shape[place]} of axis {place}"
        )
    return parameter.reshape(-1, *[1] * (rank - place - 1))


def quanta(values: Array | np.floating[Any], zero_point: Array | None, dtype: np.dtype) -> Array:
    """Return numbers rounded to the nearest integer, halves to even, plus a zero point, cut to the
    limits of a type. NaN becomes the lowest value.

    The memory of ``values`` is reused and overwritten. The zero point is added after rounding,
    because an odd one would round halves the other way.
    """
    lower, upper = integer_limits(dtype)
    result = np.asarray(values)
    np.rint(result, out=result)
    if zero_point is not None:
        result += np.asarray(zero_point).astype(result.dtype)
    if result.size and np.isnan(result.max()):
        result[np.isnan(result)] = lower
    np.maximum(result, result.dtype.type(lower), out=result)
    np.minimum(result, result.dtype.type(upper), out=result)
    # ml_dtypes converts to its small integers from integers only.
    return result.astype(dtype) if dtype.isbuiltin == 1 else result.astype(np.int8).astype(dtype)


def _narrow_floats(values: Array, dtype: np.dtype, saturate: bool) -> Array:
    if saturate:
        limit = float(ml_dtypes.finfo(dtype).max)
        values = np.clip(values, -limit, limit)
    return values.astype(dtype)


def dequantize_linear(
    data: Array,
    scale: Array,
    zero_point: Array | None = None,
    /,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """Return ``(data - zero point) * scale``, computed in f32 and rounded once to the type of the
    scale, or to ``output_dtype``.
    """
    if zero_point is not None and zero_point.dtype != data.dtype:
        raise ValueError(
            f"the data is {type_name(data.dtype)} and the zero point "
            f"{type_name(zero_point.dtype)}, expected one type"
        )
    zero = None if zero_point is None else along(zero_point, data.shape, axis, block_size)
    steps = np.asarray(difference(data, zero)).astype(np.float32, copy=False)
    dtype = helper.tensor_dtype_to_np_dtype(output_dtype) if output_dtype else scale.dtype
    steps *= computable(along(scale, data.shape, axis, block_size))
    return steps.astype(dtype, copy=False)


def difference(data: Array, zero_point: Array | None) -> Array:
    """Return the exact difference of quantized values and their zero point: in f32 up to 16 bits,
    in i64 above.
    """
    exact = np.int64 if data.dtype.kind in "iu" and data.dtype.itemsize > 2 else np.float32
    result = data.astype(exact)
    return (
        result
        if zero_point is None
        else np.subtract(
            result, np.asarray(zero_point).astype(exact), out=result if result.ndim else None
        )
    )


def dynamic_quantize_linear(data: Array, /) -> tuple[Array, Array, Array]:
    """Return a tensor as u8 between its lowest and greatest number and 0, with its scale and zero
    point.
    """
    scale, zero_point = dynamic_scale(data)
    return quanta(data / scale, zero_point, np.dtype(np.uint8)), scale, zero_point


def dynamic_bytes(data: Array) -> tuple[Bytes, Array]:
    """Return a dynamically quantized tensor, ready for products, and its scale."""
    scale, zero_point = dynamic_scale(data)
    zero = zero_point.reshape(1).astype(np.int32) - 128
    steps = np.asarray(np.rint(data / scale))
    steps += zero
    # NaN becomes the lowest value, as in a cast to u8: fmin and fmax ignore NaN.
    np.fmin(np.fmax(steps, -128, out=steps), 127, out=steps)
    return Bytes(steps.astype(np.int8), zero), scale


def dynamic_scale(data: Array) -> tuple[Array, Array]:
    """Return the scale and the u8 zero point that fit all of a tensor; 1 and 0 for a tensor of
    zeros, as in ONNX Runtime.
    """
    lower, upper = np.float32(data.min(initial=0)), np.float32(data.max(initial=0))
    scale = (upper - lower) / np.float32(255) if upper != lower else np.float32(1)
    middle = float(np.rint(-lower / scale))
    # For NaN, ONNX Runtime's zero point is 255: the comparison in min() with NaN is False.
    return np.asarray(scale), np.asarray(0 if middle <= 0 else int(min(255, middle)), np.uint8)


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
