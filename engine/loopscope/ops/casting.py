"""Category type of the OpenVINO specs: Convert, and the conversion of values and promotion of types
that it defines.

The page of the promotion of two types is type/convert-promote-types-14.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, FLOATS, SIGNED, ElementType
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import type_from_attribute

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
"""The sixteen quantiles for the nf4 codes (QLoRA, arXiv 2305.14314, appendix E)."""
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
_MAX_F4 = np.float32(6)
_MIN_F8E8M0 = np.float32(2.0**-127)
_MAX_F8E8M0 = np.float32(2.0**127)


def cast(data: Array, element_type: ElementType) -> Array:
    """Convert the values of a tensor to another element type (page type/convert-1); text cannot be
    converted.

    Floats are truncated towards zero when they become integers. Integers wrap modulo their width.
    Boolean is "is not 0". For cases that the spec leaves undefined, the result is that of
    OpenVINO's core.
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
        return _cast_plain(data, dtype)
    if dtype.hasobject or source.hasobject:
        raise ValueError("text converts neither from nor to another element type")
    numbers = _numbers(data)
    if element_type is ElementType.BOOLEAN:
        return numbers != 0
    if element_type in SMALL_INTEGERS:
        return _to_small_integers(numbers, element_type)
    if element_type in _SMALL_FLOATS:
        return _to_small_floats(numbers.astype(np.float32), element_type)
    if numbers.dtype.kind == "f":
        return _truncate(numbers, dtype) if element_type.is_integer else numbers.astype(dtype)
    return numbers.astype(dtype)


def _cast_plain(data: Array, dtype: np.dtype) -> Array:
    """Convert between types that numpy has: a short path, because most conversions are of this
    kind.
    """
    if dtype.kind == "b":
        return data != 0
    return (
        _truncate(data, dtype)
        if data.dtype.kind == "f" and dtype.kind != "f"
        else data.astype(dtype)
    )


def _numbers(data: Array) -> Array:
    """Return the values in a type that numpy computes with."""
    dtype = data.dtype
    if dtype.isbuiltin == 1:
        return data
    if dtype.names:
        codes = np.asarray(data[dtype.names[0]])
        return NF4_VALUES[codes & 15] if dtype.names == ("nf4",) else codes
    return data.astype(np.int8 if ElementType.of_dtype(dtype).is_integer else np.float32)


def _truncate(numbers: Array, dtype: np.dtype) -> Array:
    """Convert floats to integers; types of 8 and 16 bits take the low bits of a 32-bit integer."""
    if dtype.itemsize < np.dtype(np.int32).itemsize:
        return numbers.astype(np.int32).astype(dtype)
    return numbers.astype(np.int64).astype(dtype) if dtype == np.uint32 else numbers.astype(dtype)


def _to_small_integers(numbers: Array, element_type: ElementType) -> Array:
    whole = numbers.astype(np.int32) if numbers.dtype.kind == "f" else numbers
    codes = np.asarray(whole.astype(np.uint8) & (2**element_type.bits - 1))
    if element_type is ElementType.I4:
        return ((codes ^ 8).astype(np.int8) - 8).astype(element_type.dtype)
    return (
        codes.view(element_type.dtype)
        if element_type.dtype.names
        else codes.astype(element_type.dtype)
    )


def _to_small_floats(numbers: Array, element_type: ElementType) -> Array:
    """Round to the nearest value. f4e2m1 and nf4 lack infinity and NaN, f8e8m0 lacks a sign and
    zero.
    """
    match element_type:
        case ElementType.NF4:
            codes = np.where(np.isnan(numbers), 0, np.searchsorted(_NF4_BOUNDS, numbers)).astype(
                np.uint8
            )
            return np.asarray(codes).view(element_type.dtype)
        case ElementType.F4E2M1:
            return np.where(np.isnan(numbers), _MAX_F4, numbers).astype(element_type.dtype)
        case ElementType.F8E8M0:
            return _power_of_two(np.clip(numbers, _MIN_F8E8M0, _MAX_F8E8M0)).astype(
                element_type.dtype
            )
        case _:
            return numbers.astype(element_type.dtype)


def _power_of_two(numbers: Array) -> Array:
    """Return the nearest power of two; a tie goes to the even code (ml_dtypes would round up)."""
    mantissa, exponent = np.frexp(numbers)
    up = (mantissa > 0.75) | ((mantissa == 0.75) & (exponent % 2 == 1))
    return np.where(np.isnan(numbers), numbers, np.ldexp(np.float32(1), exponent - 1 + up))


def convert(data: Array, /, *, destination_type: ElementType) -> Array:
    """Convert the values to the type ``destination_type``.

    Page type/convert-1.
    """
    return cast(data, destination_type)


def convert_like(data: Array, like: Array, /) -> Array:
    """Convert the values of the first tensor to the element type of the second.

    Page type/convert-like-1.
    """
    return cast(data, ElementType.of(like))


def convert_promote_types(
    left: Array,
    right: Array,
    /,
    *,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: ElementType = ElementType.F32,
) -> tuple[Array, Array]:
    """Convert both tensors to one type that holds the values of both.

    Raise ``ValueError`` if the promotion loses precision or widens a type, and ``promote_unsafe``
    is false. Page type/convert-promote-types-14.
    """
    dimensioned = (left.ndim > 0, right.ndim > 0) if pytorch_scalar_promotion else (True, True)
    promoted = promotion(
        (ElementType.of(left), ElementType.of(right)),
        dimensioned,
        unsafe=promote_unsafe,
        for_u64=u64_integer_promotion_target,
    )
    return cast(left, promoted), cast(right, promoted)


def _promote_rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    left, right = inputs[0], inputs[1]
    ranks = (left.shape.rank, right.shape.rank)
    scalars_matter = attributes["pytorch_scalar_promotion"]
    promoted = None
    if left.element_type and right.element_type and not (scalars_matter and None in ranks):
        dimensioned = (bool(ranks[0]), bool(ranks[1])) if scalars_matter else (True, True)
        promoted = promotion(
            (left.element_type, right.element_type),
            dimensioned,
            unsafe=attributes["promote_unsafe"],
            for_u64=attributes["u64_integer_promotion_target"],
        )
    return (Known(promoted, left.shape), Known(promoted, right.shape))


def _convert_like_rule(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    return (Known(inputs[1].element_type, inputs[0].shape),)


_EXPONENT_AND_MANTISSA = {
    ElementType.F8E4M3: (4, 3),
    ElementType.F8E5M2: (5, 2),
    ElementType.F16: (5, 10),
    ElementType.BF16: (8, 7),
    ElementType.F32: (8, 23),
    ElementType.F64: (11, 52),
}
"""Bits of exponent and mantissa, narrowest type first; f16 precedes bf16, because (f8e4m3, f8e5m2)
gives f16.
"""
_SIGNED_BY_WIDTH = (
    ElementType.I4,
    ElementType.I8,
    ElementType.I16,
    ElementType.I32,
    ElementType.I64,
)


def promotion(
    types: tuple[ElementType, ElementType],
    dimensioned: tuple[bool, bool],
    *,
    unsafe: bool,
    for_u64: ElementType,
) -> ElementType:
    """Return the common type of two inputs.

    ``dimensioned`` marks the inputs that count as more than a scalar: of two types of one kind, the
    type of the only dimensioned input wins. Raise ``ValueError`` if the promotion is not safe and
    ``unsafe`` is false.
    """
    left, right = types
    if left is right:
        return left
    if _rank(left) != _rank(right):
        return _join_kinds(*sorted(types, key=_rank), unsafe=unsafe)
    if dimensioned[0] != dimensioned[1]:
        result, dropped = (left, right) if dimensioned[0] else (right, left)
        if not unsafe and not _may_keep(result, dropped):
            raise ValueError(f"{result} cannot hold every {dropped}, and promote_unsafe is false")
        return result
    joined = _join(left, right, for_u64)
    if not unsafe and joined not in types:
        raise ValueError(
            f"{left} and {right} would be widened to {joined}, and promote_unsafe is false"
        )
    return joined


def _may_keep(target: ElementType, source: ElementType) -> bool:
    """Return True if a scalar may be converted to the type of a tensor; for floats only the width
    counts, as in OpenVINO.
    """
    return target.bits >= source.bits and (
        target in FLOATS or target in SIGNED or source not in SIGNED
    )


def _rank(element_type: ElementType) -> int:
    """Return the order of the kinds: floats above integers above booleans."""
    if element_type is ElementType.STRING:
        raise ValueError("text does not have a common type with another type")
    return 2 if element_type in FLOATS else 0 if element_type is ElementType.BOOLEAN else 1


def _join_kinds(lower: ElementType, higher: ElementType, *, unsafe: bool) -> ElementType:
    if (
        not unsafe
        and lower is not ElementType.BOOLEAN
        and higher in FLOATS
        and higher.bits < 2 * lower.bits
    ):
        raise ValueError(
            f"{higher} does not have twice the bits of {lower}, and promote_unsafe is false"
        )
    return higher


def _join(left: ElementType, right: ElementType, for_u64: ElementType) -> ElementType:
    if left in FLOATS:
        return _join_floats(left, right)
    if (left in SIGNED) == (right in SIGNED):
        return max(left, right, key=lambda element_type: element_type.bits)
    signed, unsigned = (left, right) if left in SIGNED else (right, left)
    bits = max(signed.bits, 2 * unsigned.bits)
    return next(
        (element_type for element_type in _SIGNED_BY_WIDTH if element_type.bits >= bits), for_u64
    )


def _join_floats(left: ElementType, right: ElementType) -> ElementType:
    if left not in _EXPONENT_AND_MANTISSA or right not in _EXPONENT_AND_MANTISSA:
        raise ValueError(f"no type is declared to hold both {left} and {right}")
    required = tuple(
        max(pair)
        for pair in zip(_EXPONENT_AND_MANTISSA[left], _EXPONENT_AND_MANTISSA[right], strict=True)
    )
    return next(
        element_type
        for element_type, (exponent, mantissa) in _EXPONENT_AND_MANTISSA.items()
        if exponent >= required[0] and mantissa >= required[1]
    )


_NUMBERS = ANY_TYPE - {ElementType.STRING}

row = family("type")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Convert",
        convert,
        opsets=(1, 17),
        infer=type_from_attribute("destination_type"),
        attributes=(Attribute("destination_type", "type"),),
        types=(_NUMBERS,),
        gradient=gradients.convert,
    ),
    row(
        "ConvertLike",
        convert_like,
        infer=_convert_like_rule,
        inputs=(2, 2),
        types=(ANY_TYPE,),
        gradient=gradients.convert,
    ),
    row(
        "ConvertPromoteTypes",
        convert_promote_types,
        version=14,
        infer=_promote_rule,
        inputs=(2, 2),
        outputs=2,
        attributes=(
            Attribute("promote_unsafe", "bool", False),
            Attribute("pytorch_scalar_promotion", "bool", False),
            Attribute("u64_integer_promotion_target", "type", ElementType.F32),
        ),
        types=(_NUMBERS,),
        gradient=gradients.convert_both,
    ),
)
