"""Elementwise kernels: element types with arithmetic, conversion to integers, broadcasting modes.

The modes are none, numpy and pdpd.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import FLOATS, INTEGERS, NUMERIC, ElementType
from loopscope.ops.declare import Array, Attribute

PACKED = frozenset({ElementType.U1, ElementType.U3, ElementType.U6, ElementType.NF4})
"""Storage types, which OpenVINO only converts and never computes in."""
COMPUTED = NUMERIC - PACKED
"""Numeric types with arithmetic."""
COMPUTED_FLOATS = FLOATS - PACKED
COMPUTED_INTEGERS = INTEGERS - PACKED

INTEGER_DTYPES = frozenset(item.dtype for item in COMPUTED_INTEGERS)
WIDE_DTYPES = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_NARROW_INTEGERS = frozenset(
    item.dtype for item in (ElementType.I4, ElementType.U4, ElementType.U2)
)
_MAX_EXACT_IN_DOUBLE = 2**53


def widened(data: Array) -> Array:
    """Return the array in the type for evaluating formulas: f64 for integers, f32 for floats of 16
    bits or fewer.
    """
    dtype = data.dtype
    if dtype in WIDE_DTYPES:
        return data
    return data.astype(np.float64 if dtype in INTEGER_DTYPES else np.float32)


def to_element_type(values: Array, dtype: np.dtype) -> Array:
    """Convert computed floats to a tensor's type: integers are rounded to the nearest and saturate,
    as on OpenVINO's CPU.
    """
    if values.dtype == dtype:
        return values
    if dtype not in INTEGER_DTYPES:
        return values.astype(dtype)
    return saturate(np.rint(values), dtype)


def saturate(values: Array, dtype: np.dtype) -> Array:
    """Convert floats to integers, truncated towards zero.

    Values out of range become the nearest limit, and NaN becomes the smallest integer.
    """
    lower, upper = integer_limits(dtype)
    wide = np.dtype(np.uint64 if lower == 0 else np.int64)
    above = values > upper if upper < _MAX_EXACT_IN_DOUBLE else values >= float(upper)
    inside = (values >= lower) & ~above
    whole = np.where(inside, values, 0).astype(wide)
    return np.where(inside, whole, np.where(above, wide.type(upper), wide.type(lower))).astype(
        dtype
    )


@cache
def integer_limits(dtype: np.dtype) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type."""
    if dtype.isbuiltin == 2:  # numpy has no limits for these types, and int2 is not an IR type.
        narrow = ml_dtypes.iinfo(dtype)
        return int(narrow.min), int(narrow.max)
    element_type = ElementType.of_dtype(dtype)
    if element_type.is_signed:
        return -(2 ** (element_type.bits - 1)), 2 ** (element_type.bits - 1) - 1
    return 0, 2**element_type.bits - 1


def elementwise(function: Callable[[Array], Array], text: str) -> Callable[[Array], Array]:
    """Return a kernel of one tensor from a float ufunc; integers are computed in f64 and rounded.

    numpy and ml_dtypes evaluate f16, bf16 and f8 in f32 and round once, as the runtime does.
    """

    def kernel(data: Array, /) -> Array:
        result = function(data)
        return (
            result
            if result.dtype is data.dtype
            else to_element_type(function(widened(data)), data.dtype)
        )

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = getattr(function, "__name__", "kernel")
    return kernel


def through_float(formula: Callable[..., Array]) -> Callable[..., Array]:
    """Return a kernel for a formula of several steps: tensors are widened before and rounded once
    at the end.
    """

    @wraps(formula)
    def kernel(data: Array, /, *others: Array, **attributes: object) -> Array:
        if data.dtype in WIDE_DTYPES:
            return formula(data, *others, **attributes)
        return to_element_type(
            formula(widened(data), *[widened(other) for other in others], **attributes), data.dtype
        )

    return kernel


def own_type(result: Array, dtype: np.dtype) -> Array:
    """Convert a result that numpy promoted (4-bit integers become int8) back to its type."""
    return result if result.dtype is dtype else result.astype(dtype)


def as_numbers(data: Array) -> Array:
    """Return 4-bit and 2-bit integers in a type with all numpy operations; other arrays
    unchanged.
    """
    return data.astype(np.int8) if data.dtype in _NARROW_INTEGERS else data


def means(values: Array, axes: int | tuple[int, ...]) -> Array:
    """Return means of floats along axes, which stay with length 1; NaN without a warning for no
    elements.

    >>> means(np.float32([[1, 4], [2, 2]]), -1).tolist()
    [[2.5], [2.0]]
    """
    sums = np.add.reduce(values, axis=axes, keepdims=True)
    count = values.size // max(sums.size, 1) if values.size else 0
    return np.asarray(sums / values.dtype.type(count))


AUTO_BROADCAST = Attribute(
    "auto_broadcast", "str", "numpy", allowed=("numpy", "none", "pdpd", "explicit")
)
"""Broadcasting mode; ``explicit`` is the name of ``none`` in old files."""

BinaryKernel = Callable[..., Array]


def fit_operand(left: Array, right: Array, mode: str) -> Array:
    """Reshape ``right`` so that numpy's broadcasting gives the result of ``mode``.

    Raise ``ValueError`` if the mode does not allow these shapes.

    pdpd (broadcast-rules): only the second input is stretched, to the shape of the first. A file
    cannot name the axis to start at, and OpenVINO then aligns both at the first axis.
    """
    if mode in ("none", "explicit"):
        if left.shape != right.shape:
            raise ValueError(
                f"shapes {list(left.shape)} and {list(right.shape)} differ, and "
                f"auto_broadcast is '{mode}'"
            )
    elif mode == "pdpd":
        lengths = pdpd_lengths(right.shape, left.ndim)
        if len(lengths) > left.ndim or any(
            length not in (1, target) for length, target in zip(lengths, left.shape, strict=True)
        ):
            raise ValueError(
                f"shape {right.shape} cannot be broadcast to {left.shape}, as "
                "auto_broadcast 'pdpd' requires"
            )
        return right.reshape(lengths)
    return right


def pdpd_lengths(lengths: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Append lengths of 1 to a shape.

    >>> pdpd_lengths((2, 3), 4)
    (2, 3, 1, 1)
    """
    return lengths + (1,) * (rank - len(lengths))


def binary(function: Callable[[Array, Array], Array], text: str) -> BinaryKernel:
    """Return a kernel of two tensors with ``auto_broadcast`` from a function with numpy's
    broadcasting.
    """

    def kernel(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
        if auto_broadcast != "numpy":
            right = fit_operand(left, right, auto_broadcast)
        return function(left, right)

    kernel.__doc__ = text
    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel
