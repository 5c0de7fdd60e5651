"""Values of one element type as values of another, as Convert-1 defines it."""

from __future__ import annotations

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Array

_NUMBER_KINDS = frozenset("fiub")

NF4_VALUES = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ],
    np.float32,
)
"""The sixteen quantiles that nf4 codes stand for (QLoRA, arXiv 2305.14314, appendix E)."""
_NF4_BOUNDS = (NF4_VALUES[1:] + NF4_VALUES[:-1]) / 2

_SMALL_FLOATS = frozenset(
    {
        ElementType.F8E4M3,
        ElementType.F8E5M2,
        ElementType.F8E8M0,
        ElementType.F4E2M1,
        ElementType.NF4,
    }
)
SMALL_INTEGERS = frozenset(
    {ElementType.U1, ElementType.U2, ElementType.U3, ElementType.U4, ElementType.U6, ElementType.I4}
)
_MOST_F4 = np.float32(6)
_LEAST_F8E8M0 = np.float32(2.0**-127)
_MOST_F8E8M0 = np.float32(2.0**127)


def cast(data: Array, element_type: ElementType) -> Array:
    """The values of a tensor in another element type (page type/convert-1); text neither from nor
    to.

    Floats are cut off towards zero when they become integers; integers wrap modulo their width; to
    boolean is "is not 0". What the spec leaves undefined is what OpenVINO's core does.
    """
    dtype, source = element_type.dtype, data.dtype
    if source == dtype:
        return data
    if (
        source.isbuiltin == 1
        and source.kind in _NUMBER_KINDS
        and dtype.isbuiltin == 1
        and dtype.kind in _NUMBER_KINDS
    ):
        return _between_plain_types(data, dtype)
    if dtype.hasobject or source.hasobject:
        raise ValueError("text converts neither from nor to another element type")
    numbers = _numbers(data)
    if element_type is ElementType.BOOLEAN:
        return numbers != 0
    if element_type in SMALL_INTEGERS:
        return _small_integers(numbers, element_type)
    if element_type in _SMALL_FLOATS:
        return _small_floats(numbers.astype(np.float32), element_type)
    if numbers.dtype.kind == "f":
        return _truncated(numbers, dtype) if element_type.is_integer else numbers.astype(dtype)
    return numbers.astype(dtype)


def _between_plain_types(data: Array, dtype: np.dtype) -> Array:
    """Between types that numpy has: most conversions, so that this way is short."""
    if dtype.kind == "b":
        return data != 0
    return (
        _truncated(data, dtype)
        if data.dtype.kind == "f" and dtype.kind != "f"
        else data.astype(dtype)
    )


def _numbers(data: Array) -> Array:
    """The values in a type that numpy computes with."""
    dtype = data.dtype
    if dtype.isbuiltin == 1:
        return data
    if dtype.names:
        codes = np.asarray(data[dtype.names[0]])
        return NF4_VALUES[codes & 15] if dtype.names == ("nf4",) else codes
    return data.astype(np.int8 if ElementType.of_dtype(dtype).is_integer else np.float32)


def _truncated(numbers: Array, dtype: np.dtype) -> Array:
    """Floats as integers; types of 8 and 16 bits take the low bits of a 32-bit integer."""
    if dtype.itemsize < np.dtype(np.int32).itemsize:
        return numbers.astype(np.int32).astype(dtype)
    return numbers.astype(np.int64).astype(dtype) if dtype == np.uint32 else numbers.astype(dtype)


def _small_integers(numbers: Array, element_type: ElementType) -> Array:
    whole = numbers.astype(np.int32) if numbers.dtype.kind == "f" else numbers
    codes = np.asarray(whole.astype(np.uint8) & (2**element_type.bits - 1))
    if element_type is ElementType.I4:
        return ((codes ^ 8).astype(np.int8) - 8).astype(element_type.dtype)
    return (
        codes.view(element_type.dtype)
        if element_type.dtype.names
        else codes.astype(element_type.dtype)
    )


def _small_floats(numbers: Array, element_type: ElementType) -> Array:
    """Rounded to the nearest. f4e2m1 and nf4 have neither infinity nor NaN, f8e8m0 no sign and
    no zero.
    """
    match element_type:
        case ElementType.NF4:
            codes = np.where(np.isnan(numbers), 0, np.searchsorted(_NF4_BOUNDS, numbers)).astype(
                np.uint8
            )
            return np.asarray(codes).view(element_type.dtype)
        case ElementType.F4E2M1:
            return np.where(np.isnan(numbers), _MOST_F4, numbers).astype(element_type.dtype)
        case ElementType.F8E8M0:
            return _power_of_two(np.clip(numbers, _LEAST_F8E8M0, _MOST_F8E8M0)).astype(
                element_type.dtype
            )
        case _:
            return numbers.astype(element_type.dtype)


def _power_of_two(numbers: Array) -> Array:
    """The nearest power of two; halfway between two, that with the even code (ml_dtypes would
    round up).
    """
    mantissa, exponent = np.frexp(numbers)
    up = (mantissa > 0.75) | ((mantissa == 0.75) & (exponent % 2 == 1))
    return np.where(np.isnan(numbers), numbers, np.ldexp(np.float32(1), exponent - 1 + up))
