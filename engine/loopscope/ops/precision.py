"""Types in which kernels compute products and sums: small floats in f32, small integers exactly,
rounded once at the end.
"""

from __future__ import annotations

import numpy as np

from loopscope.ir.element_type import ElementType

_NATIVE_FLOATS = "fd"
_SMALL_INTEGER_BYTES = 2


def computable(array: np.ndarray) -> np.ndarray:
    """Return the same numbers in the type that arithmetic on them uses.

    f64, f32, and integers of 32 and 64 bits stay. f16, bf16 and smaller floats become f32. Integers
    of up to 16 bits become f64, in which every sum of fewer than 2**21 of their products is exact
    and BLAS does the work.
    """
    dtype = array.dtype
    if dtype.char in _NATIVE_FLOATS:
        return array
    if dtype.kind in "iu":
        return array.astype(np.float64) if dtype.itemsize <= _SMALL_INTEGER_BYTES else array
    if dtype.name.startswith(("int", "uint")):
        return array.astype(np.float64)
    return (
        _widen(array)
        if dtype.char == "e" and dtype.isnative and array.size >= _MIN_HALVES
        else array.astype(np.float32)
    )


_MIN_HALVES = 1 << 13
"""Number of f16 elements from which this conversion beats numpy's scalar conversion (5x at
100,000).
"""
_HALF_MAGNITUDE, _HALF_INFINITY, _HALF_FRACTION_BITS = 0x7FFF, 0x7C00, 10
_SINGLE_FRACTION_BITS = 23
_SIGN_COPIES = 0x70000000
"""Mask of the copies of the sign bit between sign and exponent, after an f16 sign-extended to i32
is shifted.
"""
_BIAS_FACTOR = np.float32(2.0 ** (127 - 15))


def _widen(halves: np.ndarray) -> np.ndarray:
    """Convert f16 to f32 bit for bit.

    Sign, exponent and fraction are moved to their places. A multiplication corrects the exponent
    bias, which also normalises subnormal numbers. Arrays with infinities or NaN use numpy's
    conversion.
    """
    bits = halves.view(np.int16)
    if (bits & np.int16(_HALF_MAGNITUDE)).max() >= _HALF_INFINITY:
        return halves.astype(np.float32)
    moved = bits.astype(np.int32)
    moved <<= _SINGLE_FRACTION_BITS - _HALF_FRACTION_BITS
    moved &= np.int32(~_SIGN_COPIES)
    wide: np.ndarray = moved.view(np.float32)
    wide *= _BIAS_FACTOR
    return wide


def multiplicable(
    first: np.ndarray, second: np.ndarray, terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return both factors of a matrix product that sums ``terms`` products per element.

    Large integer factors become f64, for BLAS, if every sum of their products is exact in f64.
    """
    if (
        first.dtype.kind in "iu"
        and first.size * second.size > _MIN_BLAS_ELEMENTS
        and terms * _max_magnitude(first) * _max_magnitude(second) <= _MAX_EXACT
    ):
        return first.astype(np.float64), second.astype(np.float64)
    return first, second


def _max_magnitude(integers: np.ndarray) -> int:
    return max(int(integers.max(initial=0)), -int(integers.min(initial=0)))


_MAX_EXACT = 2**53
_MIN_BLAS_ELEMENTS = 1 << 12


def rounded(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return computed numbers in the operation's own type; integers wrap around as in integer
    arithmetic.
    """
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "f" and (dtype.kind in "iu" or dtype.name.startswith(("int", "uint"))):
        return array.astype(np.int64).astype(dtype)
    return array.astype(dtype)


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the type for adding many elements: f32 for smaller floats, i32 for integers below 8
    bits, else their own.

    Raise ``ValueError`` for types without sums.
    """
    element_type = ElementType.of_dtype(dtype)
    if element_type is ElementType.STRING or dtype.names:
        raise ValueError(f"elements of type {element_type} have no arithmetic")
    if element_type.is_float:
        return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    return np.dtype(np.int32) if element_type.is_integer and element_type.bits < 8 else dtype
