"""Exact products of matrices of 8-bit integers less their zero points: sums in i32, which wrap
around, from products in f32.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Array, KeepingKernel, Known
from loopscope.ops.kernel_checks import check_elements

EXACT = 1 << 24
"""Limit up to which f32 represents all integers, and so all sums of integers whose magnitudes add
up to at most this number.
"""
_FEW_TERMS, _TERMS = 256, 1024
"""Number of terms of a sum in f32: 256 products of two differences of bytes are always exact, 1024
if the matrix is not extreme.
"""
_FEW_ROWS, _WIDTH = 16, 64
"""Limits up to which BLAS multiplies rows with columns without copying the matrix first, which
would take most of the time.
"""
_CONVERTED_BLOCK = 1 << 14
"""Number of elements converted together, in the processor's cache."""


class Bytes(NamedTuple):
    """Integers as i8, and their zero points: i32 of at least one axis, broadcast with the
    integers.
    """

    numbers: Array
    zero: Array

    @staticmethod
    def of(data: Array, zero: Array | None) -> Bytes:
        """Return i8 or u8 data and zero points of the same type, one or several that broadcast.
        Raise ``ValueError`` for other types and shapes.
        """
        if data.dtype not in LIMITS:
            raise ValueError(f"elements of type {ElementType.of(data)}, expected i8 or u8")
        shift = 128 if data.dtype == np.uint8 else 0
        numbers = np.bitwise_xor(data, np.uint8(128)).view(np.int8) if shift else data
        if zero is None or not zero.size:
            return Bytes(numbers, np.array([-shift], np.int32))
        if zero.dtype != data.dtype:
            raise ValueError(
                f"zero points of type {ElementType.of(zero)} for elements of type "
                f"{ElementType.of(data)}, expected one type"
            )
        if zero.size == 1:
            return Bytes(numbers, zero.reshape(1).astype(np.int32) - shift)
        if zero.ndim > data.ndim or not _fit(zero, data):
            raise ValueError(
                f"zero points of shape {list(zero.shape)} do not fit "
                f"data of shape {list(data.shape)}"
            )
        return Bytes(numbers, zero.astype(np.int32) - shift)


LIMITS = {
    np.dtype(kind): (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    for kind in (np.int8, np.uint8)
}


def _fit(zero: Array, data: Array) -> bool:
    return all(
        length in (1, whole)
        for length, whole in zip(zero.shape[::-1], data.shape[::-1], strict=False)
    )


def rows_less(rows: Array, zero: Array | None) -> Bytes:
    """Return rows ``[..., M, K]`` and their zero points: one, ``[M]`` or ``[..., M, 1]``."""
    pair = Bytes.of(rows, by_row(zero))
    if pair.zero.size > 1 and pair.zero.shape[-1] > 1:
        raise ValueError(
            f"zero points of shape {list(pair.zero.shape)} for rows of shape {list(rows.shape)}, "
            "expected one for each row"
        )
    return pair


def by_row(numbers: Array | None) -> Array | None:
    """Return a vector with a number for each row as a column; other arrays unchanged."""
    return (
        numbers[:, None]
        if numbers is not None and numbers.ndim == 1 and numbers.size > 1
        else numbers
    )


class ByteMatrix:
    """``columns - zero`` ``[..., K, N]``, ready for products; the zero points are one, ``[N]`` or
    ``[..., 1, N]``.
    """

    def __init__(self, columns: Bytes) -> None:
        numbers, zero = columns
        self._is_vector = numbers.ndim == 1
        if not numbers.ndim or (
            zero.size > 1 and (self._is_vector or (zero.ndim > 1 and zero.shape[-2] > 1))
        ):
            raise ValueError(
                f"zero points of shape {list(zero.shape)} for a matrix of shape "
                f"{list(numbers.shape)}, expected one for each column"
            )
        if self._is_vector:
            numbers = numbers[:, None]
        self.shape = numbers.shape
        self._turned = np.ascontiguousarray(
            np.subtract(numbers, zero, dtype=np.float32).swapaxes(-1, -2)
        )
        self._greatest = _greatest_sum(self._turned)

    @classmethod
    def of(cls, columns: Array, zero: Array | None, /) -> Self:
        """Return the matrix of an i8 or u8 array. Raise ``ValueError`` for zero points that do not
        fit.
        """
        return cls(Bytes.of(columns, zero))

    @staticmethod
    def most_bytes(shape: Sequence[int]) -> int:
        """Return the number of bytes of a matrix of a shape: its elements in f32."""
        return 4 * prod(shape)

    def sums(self, rows: Bytes) -> Array:
        """Return ``[..., M, K] -> [..., M, N]`` in i32, a new array. A vector on either side does
        not have its axis in the result.
        """
        numbers, zero = rows
        is_vector = numbers.ndim == 1
        if not numbers.ndim or numbers.shape[-1] != self.shape[-2]:
            columns = self.shape[:1] if self._is_vector else self.shape
            raise ValueError(
                f"shapes {list(numbers.shape)} and {list(columns)} have no matrix product"
            )
        if is_vector:
            numbers = numbers[None]
        result = self._products(numbers, zero)
        if is_vector:
            result = result[..., 0, :]
        return np.asarray(result[..., 0]) if self._is_vector else result

    def _products(self, numbers: Array, zero: Array) -> Array:
        """Multiply rows ``[..., M, K]`` less their zero points."""
        *batches, inner, columns = self.shape
        together = np.broadcast_shapes(numbers.shape[:-2], tuple(batches))
        check_elements(prod(together) * numbers.shape[-2] * columns, "the product")
        shape = (*together, numbers.shape[-2], columns)
        rows = np.subtract(numbers, zero, dtype=np.float32)
        if not batches:  # one matrix for all rows: one product
            rows = rows.reshape(prod(rows.shape[:-1]), inner)
        greatest = max(127 - int(zero.min()), int(zero.max()) + 128) if zero.size else 0
        terms = _TERMS if self._greatest * greatest <= EXACT else _FEW_TERMS
        result = _product(rows[..., :terms], self._turned[..., :terms])
        for start in range(terms, inner, terms):
            result += _product(
                rows[..., start : start + terms], self._turned[..., start : start + terms]
            )
        return result.reshape(shape)


def _product(rows: Array, turned: Array) -> Array:
    """Multiply rows ``[..., M, K]`` with the rows of a matrix ``[..., N, K]``, in i32."""
    count, columns = rows.shape[-2], turned.shape[-2]
    if _FEW_ROWS < count <= columns:
        return as_integers(np.matmul(turned, rows.swapaxes(-1, -2))).swapaxes(-1, -2)
    if not 2 <= count <= _FEW_ROWS or turned.ndim > 2 or columns <= _WIDTH:
        return as_integers(np.matmul(rows, turned.swapaxes(-1, -2)))
    result = np.empty((count, columns), np.int32)
    whole = columns // _WIDTH * _WIDTH
    blocks = turned[:whole].reshape(whole // _WIDTH, _WIDTH, turned.shape[-1])
    result[:, :whole].reshape(count, whole // _WIDTH, _WIDTH)[...] = np.matmul(
        rows, blocks.swapaxes(-1, -2)
    ).swapaxes(0, 1)
    result[:, whole:] = np.matmul(rows, turned[whole:].T)
    return result


def as_integers(numbers: Array) -> Array:
    """Convert integers in f32 to i32, in the memory of a contiguous array. New memory for a large
    array takes longer than its sums.
    """
    if numbers.size <= _CONVERTED_BLOCK:
        return numbers.astype(np.int32)
    floats = numbers.reshape(-1)
    integers = floats.view(np.int32)
    for start in range(0, len(floats), _CONVERTED_BLOCK):
        integers[start : start + _CONVERTED_BLOCK] = floats[start : start + _CONVERTED_BLOCK]
    return integers.reshape(numbers.shape)


def _greatest_sum(turned: Array) -> float:
    """Return the greatest sum of magnitudes of 1024 terms of a column; 0 for a number of terms that
    is always exact.
    """
    inner = turned.shape[-1]
    if inner <= _FEW_TERMS:
        return 0.0
    return max(
        float(np.abs(turned[..., start : start + _TERMS]).sum(axis=-1).max(initial=0))
        for start in range(0, inner, _TERMS)
    )


class _Prepared(Protocol):
    """Object made of a constant and its zero points, ready for products."""

    @classmethod
    def of(cls, constant: Array, zero: Array | None, /) -> Self: ...

    @staticmethod
    def most_bytes(shape: Sequence[int]) -> int: ...


_R = TypeVar("_R", bound=_Prepared)


class _Cache(Generic[_R]):
    """Cache of one object that is made of a constant and its zero points."""

    def __init__(self, kind: type[_R]) -> None:
        self._kind = kind
        self._made: tuple[weakref.ref[Array], bytes, _R] | None = None
        """The constant, its zero points, and what was made of both; set as one, for the threads
        that share a plan.
        """

    def __call__(self, constant: Array, zero: Array | None) -> _R:
        key = b"" if zero is None else zero.tobytes()
        entry = self._made
        if entry is None or entry[0]() is not constant or entry[1] != key:
            entry = self._made = weakref.ref(constant), key, self._kind.of(constant, zero)
        return entry[2]


class _CachingKernel:
    """Kernel with the number of bytes that it caches."""

    def __init__(self, kernel: Callable[..., Any], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kernel = kernel

    def __call__(self, *arrays: Any) -> Any:
        return self._kernel(*arrays)


def keeping(
    kind: type[_Prepared], kernel: Callable[..., Any]
) -> Callable[..., KeepingKernel | None]:
    """Return a function that makes the kernel of one node with a constant. The kernel takes as
    ``ready`` what makes a ``kind`` of the constant.
    """

    def made(constant: Known, /, **attributes: Any) -> KeepingKernel | None:
        if not constant.shape.is_static or not constant.shape.rank:
            return None
        return _CachingKernel(
            partial(kernel, ready=_Cache(kind), **attributes),
            kind.most_bytes(constant.shape.lengths),
        )

    return made
