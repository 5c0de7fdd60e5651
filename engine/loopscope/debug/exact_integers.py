"""Arithmetic on whole numbers that never wraps around: exact as far as 64 bits go, and an error
beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType

_MOST_EXACT = 1 << 16
"""Elements that are computed one by one, with Python's own numbers."""
_SMALL = tuple(one.dtype for one in (ElementType.I4, ElementType.U4, ElementType.U2))
"""Whole numbers that numpy itself does not take for such."""
_OF_NUMBERS = (
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
_INTO_FRACTIONS = (np.exp, np.log, np.sqrt)
_LARGEST: Mapping[Callable[..., Any], Callable[..., int]] = {
    np.abs: lambda one: one,
    np.add: lambda one, other: one + other,
    np.floor_divide: lambda one, other: one,
    np.maximum: max,
    np.minimum: max,
    np.mod: lambda one, other: other,
    np.multiply: lambda one, other: one * other,
    np.negative: lambda one: one,
    np.subtract: lambda one, other: one + other,
}
"""How far from zero a result can lie, from how far the arguments do."""


def without_wrapping(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of numpy gives; of whole numbers its exact result. ``OverflowError`` when
    that needs more than 64 bits.

    >>> int(without_wrapping(np.add, np.uint8(200), np.uint8(100))), int(without_wrapping(np.abs, np.int64(-(2**63))))
    (300, 9223372036854775808)
    """
    arrays = [_widened(np.asarray(argument), function) for argument in arguments]
    if any(array.dtype.kind not in "iu" for array in arrays):
        return function(*(array[()] for array in arrays))
    if function in _INTO_FRACTIONS:
        return function(*(array.astype(np.float64)[()] for array in arrays))
    largest = _largest(function, arrays)
    if largest is None:
        return function(*arguments)
    if largest < 2**63:
        return function(*(array.astype(np.int64, copy=False)[()] for array in arrays))
    elements = (
        prod(np.broadcast_shapes(*(array.shape for array in arrays)))
        if function is not np.matmul
        else sum(a.size for a in arrays)
    )
    if elements > _MOST_EXACT:
        raise OverflowError(
            "its whole numbers may need more than 64 bits: take fewer elements, or multiply by 1.0 first"
        )
    return _fitted(np.asarray(function(*(array.astype(object) for array in arrays)), dtype=object))


def _widened(array: np.ndarray, function: Callable[..., Any]) -> np.ndarray:
    """Numbers that a sum of many of them does not overflow; booleans as 0 and 1 where they are
    computed with.
    """
    if array.dtype in _SMALL or (array.dtype == bool and function in _OF_NUMBERS):
        return array.astype(np.int64)
    is_narrow = (
        array.dtype.kind in "fV"
        and array.dtype.itemsize < np.dtype(np.float32).itemsize
        and not array.dtype.names
    )
    return array.astype(np.float32) if is_narrow else array


def _largest(function: Callable[..., Any], arrays: list[np.ndarray]) -> int | None:
    """How far from zero the result can lie; None when the function is not one of those that wrap
    around.
    """
    magnitudes = [max(-int(array.min()), int(array.max())) if array.size else 0 for array in arrays]
    if function in (np.floor_divide, np.mod) and arrays[1].size and not arrays[1].all():
        raise ZeroDivisionError("a whole number is divided by 0")
    if function is np.power:
        return _largest_power(arrays[0], arrays[1], *magnitudes)
    if function is np.matmul:
        return magnitudes[0] * magnitudes[1] * (arrays[0].shape[-1] if arrays[0].ndim else 1)
    if function is np.sum:
        return magnitudes[0] * arrays[0].size
    return _LARGEST[function](*magnitudes) if function in _LARGEST else None


def _largest_power(bases: np.ndarray, exponents: np.ndarray, base: int, exponent: int) -> int:
    """As ``_largest``; refuses what has more bits than anybody would wait for."""
    if np.any(exponents < 0):
        raise ValueError("a whole number has no negative powers: write it as a float, such as 2.0")
    if np.any(((bases > 1) | (bases < -1)) & (exponents > 64)):
        raise OverflowError(
            f"a power with the exponent {exponent} needs more than 64 bits: write the base as a float, such as 2.0"
        )
    return int(base ** min(exponent, 64))


def _fitted(exact: np.ndarray) -> Any:
    """Python's numbers as i64, or as u64 where these are needed and enough."""
    low, high = (min(exact.flat), max(exact.flat)) if exact.size else (0, 0)
    for element_type in (np.int64, np.uint64):
        if np.iinfo(element_type).min <= low and high <= np.iinfo(element_type).max:
            return exact.astype(element_type)[()]
    worst = low if low < -(2**63) else high
    raise OverflowError(
        f"the whole number {shorten(str(worst), 30)} needs more than 64 bits: write a part of it as a float, such as 2.0"
    )
