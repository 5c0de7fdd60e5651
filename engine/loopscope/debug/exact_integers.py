"""Integer arithmetic that never wraps around: exact up to 64 bits, and an error beyond."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType

_MAX_EXACT_ELEMENTS = 1 << 16
"""Maximum number of elements that are computed one by one with Python integers."""
_SMALL = tuple(
    element_type.dtype for element_type in (ElementType.I4, ElementType.U4, ElementType.U2)
)
"""Integer types that numpy itself does not treat as integers."""
_NUMERIC_FUNCTIONS = (
    np.abs,
    np.add,
    np.floor_divide,
    np.matmul,
    np.mod,
    np.multiply,
    np.negative,
    np.positive,
    np.power,
    np.sign,
    np.subtract,
)
_FLOAT_FUNCTIONS = (np.exp, np.log, np.sqrt)
_MAGNITUDES: Mapping[Callable[..., Any], Callable[..., int]] = {
    np.abs: lambda value: value,
    np.add: lambda left, right: left + right,
    np.floor_divide: lambda left, right: left,
    np.maximum: max,
    np.minimum: max,
    np.mod: lambda left, right: right,
    np.multiply: lambda left, right: left * right,
    np.negative: lambda value: value,
    np.subtract: lambda left, right: left + right,
}
"""Bound of the result's magnitude, from the magnitudes of the arguments."""


def without_wrapping(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a numpy function, exact for integers; ``OverflowError`` if that requires
    more than 64 bits.

    >>> int(without_wrapping(np.add, np.uint8(200), np.uint8(100)))
    300
    >>> int(without_wrapping(np.abs, np.int64(-(2**63))))
    9223372036854775808
    """
    arrays = [_widen(np.asarray(argument), function) for argument in arguments]
    if any(array.dtype.kind not in "iu" for array in arrays):
        return function(*(array[()] for array in arrays))
    if function in _FLOAT_FUNCTIONS:
        return function(*(array.astype(np.float64)[()] for array in arrays))
    largest = _largest_magnitude(function, arrays)
    if largest is None:
        return function(*arguments)
    if largest < 2**63:
        return function(*(array.astype(np.int64, copy=False)[()] for array in arrays))
    elements = (
        prod(np.broadcast_shapes(*(array.shape for array in arrays)))
        if function is not np.matmul
        else sum(a.size for a in arrays)
    )
    if elements > _MAX_EXACT_ELEMENTS:
        raise OverflowError(
            "its whole numbers may need more than 64 bits: "
            "take fewer elements, or multiply by 1.0 first"
        )
    return _as_64_bits(
        np.asarray(function(*(array.astype(object) for array in arrays)), dtype=object)
    )


def _widen(array: np.ndarray, function: Callable[..., Any]) -> np.ndarray:
    """Return narrow floats as f32, so that long sums do not overflow, and booleans as 0 and 1 in
    arithmetic.
    """
    if array.dtype in _SMALL or (array.dtype == bool and function in _NUMERIC_FUNCTIONS):
        return array.astype(np.int64)
    is_narrow = (
        array.dtype.kind in "fV"
        and array.dtype.itemsize < np.dtype(np.float32).itemsize
        and not array.dtype.names
    )
    return array.astype(np.float32) if is_narrow else array


def _largest_magnitude(function: Callable[..., Any], arrays: list[np.ndarray]) -> int | None:
    """Return the maximum magnitude of the result; None if the function cannot wrap around."""
    magnitudes = [max(-int(array.min()), int(array.max())) if array.size else 0 for array in arrays]
    if function in (np.floor_divide, np.mod) and arrays[1].size and not arrays[1].all():
        raise ZeroDivisionError("a whole number is divided by 0")
    if function is np.power:
        return _largest_power(arrays[0], arrays[1], *magnitudes)
    if function is np.matmul:
        return magnitudes[0] * magnitudes[1] * (arrays[0].shape[-1] if arrays[0].ndim else 1)
    if function is np.sum:
        return magnitudes[0] * arrays[0].size
    return _MAGNITUDES[function](*magnitudes) if function in _MAGNITUDES else None


def _largest_power(bases: np.ndarray, exponents: np.ndarray, base: int, exponent: int) -> int:
    """Return the maximum magnitude of a power; raise an error if it needs more than 64 bits."""
    if np.any(exponents < 0):
        raise ValueError("a whole number has no negative powers: write it as a float, such as 2.0")
    if np.any(((bases > 1) | (bases < -1)) & (exponents > 64)):
        raise OverflowError(
            f"a power with the exponent {exponent} needs more than 64 bits: "
            "write the base as a float, such as 2.0"
        )
    return int(base ** min(exponent, 64))


def _as_64_bits(exact: np.ndarray) -> Any:
    """Return Python integers as i64, or as u64 if only u64 represents them."""
    low, high = (min(exact.flat), max(exact.flat)) if exact.size else (0, 0)
    for element_type in (np.int64, np.uint64):
        if np.iinfo(element_type).min <= low and high <= np.iinfo(element_type).max:
            return exact.astype(element_type)[()]
    worst = low if low < -(2**63) else high
    raise OverflowError(
        f"the whole number {shorten(str(worst), 30)} needs more than 64 bits: "
        "write a part of it as a float, such as 2.0"
    )
