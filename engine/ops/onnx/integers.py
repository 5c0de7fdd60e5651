"""ONNX's matrix products and convolutions of 8-bit integers: exact, by BLAS in f32, in blocks where f32 could not hold a sum."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from engine.ir.element_type import ElementType
from engine.ops.declare import Array, KeepingKernel, Known
from engine.ops.matrix import matmul
from engine.ops.onnx.row import Direct
from engine.ops.onnx.windows import convolved

_EXACT = 1 << 24
"""Up to here f32 holds every integer, and so every sum of integers whose magnitudes come to no more, in any order."""


def matmul_integer(rows: Array, columns: Array, rows_zero: Array | None = None, columns_zero: Array | None = None, /) -> Array:
    """``(rows - rows_zero) @ (columns - columns_zero)`` in i32, which wraps around: ``[..., M, K] x [..., K, N] -> [..., M, N]``.

    Zero points are scalars, or ``[M]`` or ``[..., M, 1]`` for each row, ``[N]`` or ``[..., 1, N]`` for each column.
    """
    return _exact_sums(rows_less(rows, rows_zero), columns, columns_zero).astype(np.int32, copy=False)


class Whole(NamedTuple):
    """Whole numbers in f32, and how large their magnitudes can be."""

    numbers: Array
    most: int


def rows_less(rows: Array, zero: Array | None) -> Whole:
    """Rows of 8-bit integers less their zero points, as ``matmul_integer`` takes those."""
    return _centred(rows, _by_row(zero))


def matmul_floats(rows: Whole, columns: Array, columns_zero: Array | None = None, /) -> Array:
    """``rows @ (columns - columns_zero)`` as ``matmul_integer`` has it, in f32, to which sums are rounded; an array of the caller's own."""
    return _exact_sums(rows, columns, columns_zero).astype(np.float32, copy=False)


def _exact_sums(rows: Whole, columns: Array, columns_zero: Array | None) -> Array:
    _check_shapes(rows.numbers, columns)
    right = _centred(columns, columns_zero)
    return _sums(rows.numbers, right.numbers, _EXACT // max(1, right.most * rows.most))


def matmul_integer_by_constant(columns: Known, /) -> _OneMatrix | None:
    """The kernel of one node whose second matrix is a constant: always the same array, which it keeps in f32."""
    shape = columns.shape
    return _OneMatrix(4 * prod(shape.lengths)) if shape.is_static and len(shape.lengths) > 1 else None


def keeping_one_matrix(kernel: Callable[..., Any]) -> Callable[[Known], KeepingKernel | None]:
    """What makes the kernel of one node whose matrix is a constant, from a kernel that is given a ``matmul_floats`` before its arrays."""

    def made(columns: Known, /) -> KeepingKernel | None:
        product = matmul_integer_by_constant(columns)
        return None if product is None else _Keeping(partial(kernel, product.floats), product.most_bytes)

    return made


class _Keeping:
    """A kernel around a product that keeps its matrix."""

    def __init__(self, kernel: Callable[..., Any], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kernel = kernel

    def __call__(self, *arrays: Any) -> Any:
        return self._kernel(*arrays)


class CentredMatrix:
    """``columns - zero`` [..., K, N] in f32, with which products of whole numbers are exact; it is looked through when one asks for it."""

    def __init__(self, columns: Array, zero: Array | None) -> None:
        self._centred = _centred(columns, zero).numbers
        self._most_sums: dict[int, int] = {}

    def sums(self, rows: Whole) -> Array:
        """The exact product: in f32 where it holds all sums, else in i32."""
        return _sums(rows.numbers, self._centred, self._step(rows.most))

    def floats(self, rows: Whole) -> Array:
        """The same in f32, to which sums in i32 are rounded. Rows ``[B, K]``."""
        whole = self._centred.ndim == 2 and self._step(rows.most) >= len(self._centred)
        return _multiplied(rows.numbers, self._centred) if whole else self.sums(rows).astype(np.float32, copy=False)

    def _step(self, most: int) -> int:
        """Into how long blocks the inner axis is cut so that no sum is inexact."""
        if most not in self._most_sums:
            self._most_sums[most] = self._longest(most)
        return self._most_sums[most]

    def _longest(self, most: int) -> int:
        magnitudes = np.abs(self._centred)
        step = max(1, magnitudes.shape[-2])
        while step > 1 and _greatest_sum(magnitudes, step) * most > _EXACT:
            step = -(-step // 2)
        return step


class _OneMatrix:
    """``matmul_integer``, and ``matmul_floats``, with one and the same matrix, which is centred when the first product asks for it."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: tuple[weakref.ref[Array], bytes, CentredMatrix] | None = None
        """The matrix, its zero points, and what was made of both; set as one, for the threads that share a plan."""

    def __call__(self, rows: Array, columns: Array, rows_zero: Array | None = None, columns_zero: Array | None = None, /) -> Array:
        return self._sums(rows_less(rows, rows_zero), columns, columns_zero).astype(np.int32, copy=False)

    def floats(self, rows: Whole, columns: Array, columns_zero: Array | None = None, /) -> Array:
        """``matmul_floats``."""
        return self._sums(rows, columns, columns_zero).astype(np.float32, copy=False)

    def _sums(self, rows: Whole, columns: Array, columns_zero: Array | None) -> Array:
        _check_shapes(rows.numbers, columns)
        zero = b"" if columns_zero is None else columns_zero.tobytes()
        kept = self._kept
        if kept is None or kept[0]() is not columns or kept[1] != zero:
            kept = self._kept = weakref.ref(columns), zero, CentredMatrix(columns, columns_zero)
        return kept[2].sums(rows)


def _greatest_sum(magnitudes: Array, step: int) -> int:
    """The greatest sum of any column within any block."""
    starts = np.arange(0, magnitudes.shape[-2], step)
    return int(np.add.reduceat(magnitudes, starts, axis=-2, dtype=np.float64).max(initial=0))


def _sums(rows: Array, columns: Array, step: int) -> Array:
    """A product of whole numbers in f32, of which ``step`` terms can be summed exactly: in f32 where these are all, else in i32."""
    length = rows.shape[-1]
    if length <= step:
        return np.asarray(_multiplied(rows, columns))
    inner = columns if columns.ndim > 1 else columns[:, None]
    starts = range(0, length, step)
    parts = (_multiplied(rows[..., start : start + step], inner[..., start : start + step, :]).astype(np.int32) for start in starts)
    sums = next(parts)
    for part in parts:
        sums += part
    return sums if columns.ndim > 1 else sums[..., 0]


_multiplied = partial(matmul, transpose_a=False, transpose_b=False)


def _check_shapes(rows: Array, columns: Array) -> None:
    if not rows.ndim or not columns.ndim or rows.shape[-1] != columns.shape[-2 if columns.ndim > 1 else 0]:
        raise ValueError(f"shapes {list(rows.shape)} and {list(columns.shape)} have no matrix product")


def _centred(data: Array, zero: Array | None) -> Whole:
    """The distances of 8-bit integers from zero points that broadcast with them."""
    limits = _LIMITS.get(data.dtype)
    if limits is None:
        raise ValueError(f"elements of type {ElementType.of(data)}, expected i8 or u8")
    least, greatest = limits
    if zero is None or not zero.size:
        return Whole(data.astype(np.float32), max(greatest, -least))
    if zero.dtype != data.dtype:
        raise ValueError(f"zero points of type {ElementType.of(zero)} for elements of type {ElementType.of(data)}, expected one type")
    if zero.ndim > data.ndim or (zero.size > 1 and not _fit(zero, data)):
        raise ValueError(f"zero points of shape {list(zero.shape)} do not fit data of shape {list(data.shape)}")
    if zero.size == 1:
        number = int(zero.item())
        return Whole(np.subtract(data, np.float32(number)), max(greatest - number, number - least))
    return Whole(np.subtract(data, zero, dtype=np.float32), max(greatest - int(zero.min()), int(zero.max()) - least))


def _fit(zero: Array, data: Array) -> bool:
    return all(length in (1, whole) for length, whole in zip(zero.shape[::-1], data.shape[::-1], strict=False))


_LIMITS = {np.dtype(kind): (int(np.iinfo(kind).min), int(np.iinfo(kind).max)) for kind in (np.int8, np.uint8)}


def _by_row(numbers: Array | None) -> Array | None:
    """Of a vector with a number for each row, a column."""
    return numbers[:, None] if numbers is not None and numbers.ndim == 1 and numbers.size > 1 else numbers


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
) -> Array:
    """The product of two quantized matrices, quantized; scales and zero points as ``matmul_integer`` takes zero points."""
    return _qlinear_product(matmul_floats, rows, rows_scale, rows_zero, columns, columns_scale, columns_zero, scale, zero)


def _qlinear_product(
    product: Callable[..., Array],
    rows: Array,
    rows_scale: Array,
    rows_zero: Array,
    columns: Array,
    columns_scale: Array,
    columns_zero: Array,
    scale: Array,
    zero: Array,
) -> Array:
    sums = product(rows_less(rows, rows_zero), columns, columns_zero)
    factors = _by_row(_one_or_more(rows_scale)) * _one_or_more(columns_scale) / _by_row(_one_or_more(scale))
    return _quantized(sums, np.asarray(factors), _by_row(_one_or_more(zero)))


def _one_or_more(numbers: Array) -> Any:
    return numbers.reshape(-1)[0] if numbers.size == 1 else numbers


def _quantized(sums: Array, factors: Array, zero: Any) -> Array:
    """Sums in f32 times factors, rounded to even as ONNX Runtime does it, then moved by the zero point and cut to its type; in place."""
    np.multiply(sums, factors.astype(np.float32, copy=False), out=sums)
    np.rint(sums, out=sums)
    sums += zero
    return sums.clip(*_LIMITS[zero.dtype], out=sums).astype(zero.dtype)


def conv_integer(data: Array, filters: Array, data_zero: Array | None = None, filters_zero: Array | None = None, /, **window: Any) -> Array:
    """Correlation of data with filters, both less their zero points, in i32; padding lies at the zero point of the data.

    ``[N, C, lengths...] x [O, C / group, kernel...] -> [N, O, places...]``; the filters have one zero point, or ``O``.
    """
    if data_zero is not None and data_zero.size != 1:
        raise ValueError(f"the zero points of the data have shape {list(data_zero.shape)}, expected one number")
    left, most = _centred(data, None if data_zero is None else data_zero.reshape(()))
    right = _centred(filters, _by_filter(filters_zero, filters, "zero points")).numbers
    sums = np.abs(right).sum(axis=tuple(range(1, right.ndim)), dtype=np.float64)
    if sums.max(initial=0) * most > _EXACT:
        # No sum of so few products reaches 2^53: f64 is exact.
        left, right = left.astype(np.float64), right.astype(np.float64)
    return convolved(left, right, window).astype(np.int64 if left.dtype == np.float64 else np.int32).astype(np.int32, copy=False)


def _by_filter(numbers: Array | None, filters: Array, what: str) -> Array | None:
    """A number for each filter along the filters' axis; one number for all as it is."""
    if numbers is None or numbers.size == 1:
        return None if numbers is None else numbers.reshape(())
    if numbers.shape != filters.shape[:1]:
        raise ValueError(f"the {what} of the filters have shape {list(numbers.shape)}, expected one number or {len(filters)}")
    return numbers.reshape(-1, *[1] * (filters.ndim - 1))


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
    **window: Any,
) -> Array:
    """A quantized correlation: the sums of ``conv_integer`` and a bias in i32, quantized; a scale for all filters or for each."""
    sums = conv_integer(data, filters, data_zero, filters_zero, **window)
    places = [1] * (sums.ndim - 2)
    if bias is not None:
        if bias.shape != sums.shape[1:2]:
            raise ValueError(f"the bias has shape {list(bias.shape)}, expected {[sums.shape[1]]}")
        sums = sums + bias.reshape(-1, *places)
    by_filter = _by_filter(filters_scale, filters, "scales")
    assert by_filter is not None
    factors = _one_or_more(data_scale) * by_filter.reshape(-1, *places) / _one_or_more(scale)
    return _quantized(sums.astype(np.float32), np.asarray(factors), _one_or_more(zero))


INTEGERS: Mapping[str, Direct] = {
    "ConvInteger": Direct(kernel=conv_integer, first=10),
    "MatMulInteger": Direct(kernel=matmul_integer, first=10, by_constant=matmul_integer_by_constant),
    "QLinearConv": Direct(kernel=qlinear_conv, first=10),
    "QLinearMatMul": Direct(kernel=qlinear_matmul, first=10, by_constant=keeping_one_matrix(_qlinear_product), kept_input=3),
}
