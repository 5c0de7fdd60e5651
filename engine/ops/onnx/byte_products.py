"""Exact products of matrices of 8-bit integers less their zero points: sums in i32, which wrap around, by instructions for bytes."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, partial
from math import prod
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numkong
import numpy as np

from engine.ir.element_type import ElementType
from engine.ops.bounds import check_elements
from engine.ops.declare import Array, KeepingKernel, Known


class Bytes(NamedTuple):
    """Whole numbers as i8, and what each is measured from: i32 of at least one axis, which broadcasts with them."""

    numbers: Array
    zero: Array

    @staticmethod
    def of(data: Array, zero: Array | None) -> Bytes:
        """Of i8 or u8 and zero points of the same type, one or some that broadcast. ``ValueError`` for what does not fit."""
        if data.dtype not in LIMITS:
            raise ValueError(f"elements of type {ElementType.of(data)}, expected i8 or u8")
        shift = 128 if data.dtype == np.uint8 else 0
        numbers = np.bitwise_xor(data, np.uint8(128)).view(np.int8) if shift else data
        if zero is None or not zero.size:
            return Bytes(numbers, np.array([-shift], np.int32))
        if zero.dtype != data.dtype:
            raise ValueError(f"zero points of type {ElementType.of(zero)} for elements of type {ElementType.of(data)}, expected one type")
        if zero.size == 1:
            return Bytes(numbers, zero.reshape(1).astype(np.int32) - shift)
        if zero.ndim > data.ndim or not _fit(zero, data):
            raise ValueError(f"zero points of shape {list(zero.shape)} do not fit data of shape {list(data.shape)}")
        return Bytes(numbers, zero.astype(np.int32) - shift)


LIMITS = {np.dtype(kind): (int(np.iinfo(kind).min), int(np.iinfo(kind).max)) for kind in (np.int8, np.uint8)}


def _fit(zero: Array, data: Array) -> bool:
    return all(length in (1, whole) for length, whole in zip(zero.shape[::-1], data.shape[::-1], strict=False))


def rows_less(rows: Array, zero: Array | None) -> Bytes:
    """Rows ``[..., M, K]`` and their zero points: one, ``[M]`` or ``[..., M, 1]``."""
    found = Bytes.of(rows, by_row(zero))
    if found.zero.size > 1 and found.zero.shape[-1] > 1:
        raise ValueError(f"zero points of shape {list(found.zero.shape)} for rows of shape {list(rows.shape)}, expected one for each row")
    return found


def by_row(numbers: Array | None) -> Array | None:
    """Of a vector with a number for each row, a column."""
    return numbers[:, None] if numbers is not None and numbers.ndim == 1 and numbers.size > 1 else numbers


class ByteMatrix:
    """``columns - zero`` ``[..., K, N]``, ready for products; zero points are one, ``[N]`` or ``[..., 1, N]``.

    With A and B as they are, and their zero points a and b, ``(A - a) @ (B - b)`` is ``A @ B - a * (sums of B - K * b) - (sums of A) * b``.
    """

    def __init__(self, columns: Bytes) -> None:
        numbers, self._zero = columns
        self._is_vector = numbers.ndim == 1
        if not numbers.ndim or (self._zero.size > 1 and (self._is_vector or (self._zero.ndim > 1 and self._zero.shape[-2] > 1))):
            raise ValueError(
                f"zero points of shape {list(self._zero.shape)} for a matrix of shape {list(numbers.shape)}, expected one for each column"
            )
        if self._is_vector:
            numbers = numbers[:, None]
        self.shape = numbers.shape
        turned = np.ascontiguousarray(numbers.reshape(prod(self.shape[:-2]), *self.shape[-2:]).swapaxes(-1, -2))
        self._packed = [numkong.dots_pack(one) for one in turned] if numbers.size else []
        sums = _sums_of_rows(turned).reshape(*self.shape[:-2], 1, self.shape[-1])
        self._less = sums - np.int32(self.shape[-2]) * self._zero
        self._is_centred = not self._zero.any()

    @classmethod
    def of(cls, columns: Array, zero: Array | None, /) -> Self:
        """Of i8 or u8. ``ValueError`` for zero points that do not fit."""
        return cls(Bytes.of(columns, zero))

    @staticmethod
    def most_bytes(shape: Sequence[int]) -> int:
        """What a matrix of such a shape keeps, with all that goes with it."""
        *batches, inner, columns = shape if len(shape) > 1 else (*shape, 1)
        return prod(batches) * (numkong.PackedMatrix.packed_size(columns, inner, "int8") + 8 * columns)

    def sums(self, rows: Bytes) -> Array:
        """``[..., M, K] -> [..., M, N]`` in i32, an array of the caller's own; a vector on either side has no axis in it."""
        numbers, zero = rows
        is_vector = numbers.ndim == 1
        if not numbers.ndim or numbers.shape[-1] != self.shape[-2]:
            columns = self.shape[:1] if self._is_vector else self.shape
            raise ValueError(f"shapes {list(numbers.shape)} and {list(columns)} have no matrix product")
        if is_vector:
            numbers = numbers[None]
        less = [zero * self._less]
        if not self._is_centred:
            less.append(_sums_of_rows(numbers) * self._zero)
        result = self._products(numbers, less)
        if is_vector:
            result = result[..., 0, :]
        return np.asarray(result[..., 0]) if self._is_vector else result

    def _products(self, rows: Array, less: Sequence[Array]) -> Array:
        """``rows @ columns``, both as they are, less each of some; rows ``[..., M, K]``, and what is less ``[..., M or 1, N or 1]``."""
        *batches, inner, columns = self.shape
        if not batches:
            check_elements(prod(rows.shape[:-1]) * columns, "the product")
            flat = self._room(prod(rows.shape[:-1]))
            self._multiply(rows.reshape(len(flat), inner), 0, flat)
            result = np.asarray(flat).reshape(*rows.shape[:-1], columns)
            for one in less:
                result -= one
            return result
        together = np.broadcast_shapes(rows.shape[:-2], tuple(batches))
        check_elements(prod(together) * rows.shape[-2] * columns, "the product")
        every, *offsets = (_batches(one, together) for one in (rows, *less))
        which = _batches(np.arange(prod(batches)).reshape(*batches, 1, 1), together).reshape(-1).tolist()
        result = np.empty((len(every), rows.shape[-2], columns), np.int32)
        room = self._room(rows.shape[-2])
        product = np.asarray(room)
        for one, matrix, made, *others, last in zip(every, which, result, *offsets, strict=True):
            self._multiply(one, matrix, room)
            for other in others:  # all in one place, which stays in the cache
                product -= other
            np.subtract(product, last, out=made)
        return result.reshape(*together, *result.shape[1:])

    def _room(self, rows: int) -> numkong.Tensor:
        """For what rows make of the columns."""
        return numkong.empty((rows, self.shape[-1]), dtype="int32")

    def _multiply(self, rows: Array, matrix: int, room: numkong.Tensor) -> None:
        if rows.size and self._packed:
            _by_threads(np.ascontiguousarray(rows), self._packed[matrix], room)
        else:
            np.asarray(room)[...] = 0


def _batches(matrices: Array, together: tuple[int, ...]) -> Array:
    """``[..., M, N] -> [batches, M, N]``, where the leading axes broadcast to those of all together."""
    if matrices.shape[:-2] != together:
        matrices = np.broadcast_to(matrices, (*together, *matrices.shape[-2:]))
    return matrices.reshape(prod(together), *matrices.shape[-2:])


def _by_threads(rows: Array, packed: numkong.PackedMatrix, room: numkong.Tensor) -> None:
    """A product of which each processor does some rows, where there is enough to do."""
    count = len(rows)
    share = max(_WORTH_A_THREAD // (rows.shape[1] * room.shape[1]), -(-count // threads()))
    if share >= count:
        numkong.dots_packed(rows, packed, out=room)
        return

    def part(start: int) -> None:
        numkong.dots_packed(rows, packed, out=room, start_row=start, end_row=min(start + share, count))

    for _ in _pool(os.getpid()).map(part, range(0, count, share)):
        pass


_WORTH_A_THREAD = 1 << 25
"""Products of so many pairs of bytes take some 0.3 ms, many times what it takes to hand them to another thread."""


@cache
def threads() -> int:
    """How many products are done side by side: as many as BLAS does."""
    asked = os.environ.get("OPENBLAS_NUM_THREADS", "") or os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """Of this process: one that was forked has none of the threads of its parent."""
    return ThreadPoolExecutor(threads(), "bytes")


def _sums_of_rows(numbers: Array) -> Array:
    """``[..., M, K] -> [..., M, 1]`` in i32: a product with ones, which is faster than numpy's sums of bytes."""
    *leading, length = numbers.shape
    if not numbers.size:
        return np.zeros((*leading, 1), np.int32)
    rows = np.ascontiguousarray(numbers).reshape(prod(leading), length)
    return np.asarray(numkong.dots_packed(rows, (_kept_ones if length <= _KEPT_ONES else _ones)(length))).reshape(*leading, 1)


_KEPT_ONES = 1 << 16
"""Up to so many ones are kept for the next product."""


def _ones(length: int) -> numkong.PackedMatrix:
    return numkong.dots_pack(np.ones((1, length), np.int8))


_kept_ones = lru_cache(maxsize=64)(_ones)


class _Ready(Protocol):
    """Something made of a constant and its zero points."""

    @classmethod
    def of(cls, constant: Array, zero: Array | None, /) -> Self: ...

    @staticmethod
    def most_bytes(shape: Sequence[int]) -> int: ...


_R = TypeVar("_R", bound=_Ready)


class _Kept(Generic[_R]):
    """Makes something of a constant and its zero points, once as long as both stay the same."""

    def __init__(self, kind: type[_R]) -> None:
        self._kind = kind
        self._made: tuple[weakref.ref[Array], bytes, _R] | None = None
        """The constant, its zero points, and what was made of both; set as one, for the threads that share a plan."""

    def __call__(self, constant: Array, zero: Array | None) -> _R:
        key = b"" if zero is None else zero.tobytes()
        made = self._made
        if made is None or made[0]() is not constant or made[1] != key:
            made = self._made = weakref.ref(constant), key, self._kind.of(constant, zero)
        return made[2]


class _Keeping:
    """A kernel with what it keeps."""

    def __init__(self, kernel: Callable[..., Any], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kernel = kernel

    def __call__(self, *arrays: Any) -> Any:
        return self._kernel(*arrays)


def keeping(kind: type[_Ready], kernel: Callable[..., Any]) -> Callable[..., KeepingKernel | None]:
    """What makes the kernel of one node with a constant, from a kernel that takes what makes a ``kind`` of that as ``ready``."""

    def made(constant: Known, /, **attributes: Any) -> KeepingKernel | None:
        if not constant.shape.is_static or not constant.shape.rank:
            return None
        return _Keeping(partial(kernel, ready=_Kept(kind), **attributes), kind.most_bytes(constant.shape.lengths))

    return made
