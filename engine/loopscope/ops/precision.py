"""In which type a kernel computes products and sums: small floats in f32, small integers
exactly, the result rounded once.
"""

from __future__ import annotations

import numpy as np

from loopscope.ir.element_type import ElementType

_NATIVE_FLOATS = "fd"
_SMALL_INTEGER_BYTES = 2


def computable(array: np.ndarray) -> np.ndarray:
    """The same numbers in the type that arithmetic on them is done in.

    f64, f32, and integers of 32 and 64 bits stay; f16, bf16 and smaller floats become f32; integers
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
        _widened(array)
        if dtype.char == "e" and dtype.isnative and array.size >= _MANY_HALVES
        else array.astype(np.float32)
    )


_MANY_HALVES = 1 << 13
"""From so many on, numpy's own conversion, one number after the other, is the slower way: five
times, of a hundred thousand.
"""
_HALF_MAGNITUDE, _HALF_INFINITY, _HALF_FRACTION_BITS = 0x7FFF, 0x7C00, 10
_SINGLE_FRACTION_BITS = 23
_COPIED_SIGNS = 0x70000000
"""What lies between sign and exponent after a half, as an i32, was moved up to where an f32 has
its fraction.
"""
_BIASES_APART = np.float32(2.0 ** (127 - 15))


def _widened(halves: np.ndarray) -> np.ndarray:
    """f16 as f32, bit for bit: sign, exponent and fraction are moved to their places, and a product
    makes up for the other bias, which also makes normal numbers of subnormal ones.
    """
    bits = halves.view(np.int16)
    if (bits & np.int16(_HALF_MAGNITUDE)).max() >= _HALF_INFINITY:
        return halves.astype(np.float32)
    moved = bits.astype(np.int32)
    moved <<= _SINGLE_FRACTION_BITS - _HALF_FRACTION_BITS
    moved &= np.int32(~_COPIED_SIGNS)
    wide: np.ndarray = moved.view(np.float32)
    wide *= _BIASES_APART
    return wide


def multiplicable(
    first: np.ndarray, second: np.ndarray, terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Both factors of a matrix product of so many terms; integers as f64, for BLAS, where every
    sum of their products is exact in it.
    """
    if (
        first.dtype.kind in "iu"
        and first.size * second.size > _WORTH_BLAS
        and terms * _greatest(first) * _greatest(second) <= _EXACT
    ):
        return first.astype(np.float64), second.astype(np.float64)
    return first, second


def _greatest(integers: np.ndarray) -> int:
    return max(int(integers.max(initial=0)), -int(integers.min(initial=0)))


_EXACT = 2**53
_WORTH_BLAS = 1 << 12


def rounded(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The computed numbers in the operation's own type; integers wrap around as integer
    arithmetic does.
    """
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "f" and (dtype.kind in "iu" or dtype.name.startswith(("int", "uint"))):
        return array.astype(np.int64).astype(dtype)
    return array.astype(dtype)


def accumulator(dtype: np.dtype) -> np.dtype:
    """In which type many elements are added up: f32 for smaller floats, i32 for integers of less
    than 8 bits, else their own.

    ``ValueError`` for types without sums.
    """
    element_type = ElementType.of_dtype(dtype)
    if element_type is ElementType.STRING or dtype.names:
        raise ValueError(f"elements of type {element_type} have no arithmetic")
    if element_type.is_float:
        return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    return np.dtype(np.int32) if element_type.is_integer and element_type.bits < 8 else dtype
