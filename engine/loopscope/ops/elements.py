"""How elementwise kernels treat element types: which ones arithmetic is defined for, and how
floats become integers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import FLOATS, INTEGERS, NUMERIC, ElementType
from loopscope.ops.declare import Array

PACKED = frozenset({ElementType.U1, ElementType.U3, ElementType.U6, ElementType.NF4})
"""Storage types: OpenVINO converts them and computes nothing in them."""
COMPUTED = NUMERIC - PACKED
"""The numeric types that arithmetic is defined for."""
COMPUTED_FLOATS = FLOATS - PACKED
COMPUTED_INTEGERS = INTEGERS - PACKED

INTEGER_DTYPES = frozenset(one.dtype for one in COMPUTED_INTEGERS)
WIDE_DTYPES = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_NARROW_INTEGERS = frozenset(one.dtype for one in (ElementType.I4, ElementType.U4, ElementType.U2))
_EXACT_IN_DOUBLE = 2**53


def widened(data: Array) -> Array:
    """The array in the type that formulas are evaluated in: f64 for integers, f32 for floats of
    16 bits or fewer.
    """
    dtype = data.dtype
    if dtype in WIDE_DTYPES:
        return data
    return data.astype(np.float64 if dtype in INTEGER_DTYPES else np.float32)


def narrowed(values: Array, dtype: np.dtype) -> Array:
    """Computed floats in a tensor's own type: integers are rounded to the nearest and saturate,
    as OpenVINO's CPU does.
    """
    if values.dtype == dtype:
        return values
    if dtype not in INTEGER_DTYPES:
        return values.astype(dtype)
    return saturated(np.rint(values), dtype)


def saturated(values: Array, dtype: np.dtype) -> Array:
    """Floats as integers, cut towards zero; what is out of range becomes the nearest end of it,
    NaN the least integer.
    """
    least, most = integer_limits(dtype)
    wide = np.dtype(np.uint64 if least == 0 else np.int64)
    too_much = values > most if most < _EXACT_IN_DOUBLE else values >= float(most)
    inside = (values >= least) & ~too_much
    whole = np.where(inside, values, 0).astype(wide)
    return np.where(inside, whole, np.where(too_much, wide.type(most), wide.type(least))).astype(
        dtype
    )


def integer_limits(dtype: np.dtype) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    if dtype.isbuiltin == 2:  # numpy itself knows no limits of these; int2 is of no IR
        narrow = ml_dtypes.iinfo(dtype)
        return int(narrow.min), int(narrow.max)
    element_type = ElementType.of_dtype(dtype)
    if element_type.is_signed:
        return -(2 ** (element_type.bits - 1)), 2 ** (element_type.bits - 1) - 1
    return 0, 2**element_type.bits - 1


def elementwise(function: Callable[[Array], Array], text: str) -> Callable[[Array], Array]:
    """A kernel of one tensor from a float ufunc; integers go through f64 and are rounded.

    numpy and ml_dtypes evaluate f16, bf16 and f8 through f32 and round once, which is what the
    runtime does.
    """

    def kernel(data: Array, /) -> Array:
        result = function(data)
        return (
            result if result.dtype is data.dtype else narrowed(function(widened(data)), data.dtype)
        )

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = getattr(function, "__name__", "kernel")
    return kernel


def through_float(formula: Callable[..., Array]) -> Callable[..., Array]:
    """A kernel whose formula has several steps: it sees its tensors in wide precision, and is
    rounded once, at its end.
    """

    @wraps(formula)
    def kernel(data: Array, /, *others: Array, **attributes: object) -> Array:
        if data.dtype in WIDE_DTYPES:
            return formula(data, *others, **attributes)
        return narrowed(
            formula(widened(data), *[widened(other) for other in others], **attributes), data.dtype
        )

    return kernel


def own_type(result: Array, dtype: np.dtype) -> Array:
    """A result that numpy promoted (4-bit integers become int8), back in its type."""
    return result if result.dtype is dtype else result.astype(dtype)


def as_numbers(data: Array) -> Array:
    """4-bit and 2-bit integers in a type for which numpy has every operation; anything else as
    it is.
    """
    return data.astype(np.int8) if data.dtype in _NARROW_INTEGERS else data


def means(values: Array, axes: int | tuple[int, ...]) -> Array:
    """Floats' means along axes, which are kept, in the type of the values; of no elements NaN,
    without numpy's warning.

    >>> means(np.float32([[1, 4], [2, 2]]), -1).tolist()
    [[2.5], [2.0]]
    """
    sums = np.add.reduce(values, axis=axes, keepdims=True)
    count = values.size // max(sums.size, 1) if values.size else 0
    return np.asarray(sums / values.dtype.type(count))
