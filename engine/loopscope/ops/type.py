"""Category type of the OpenVINO operation specs: conversion to another element type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ops.casting import cast
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import passed_on as gradients
from loopscope.ops.infer import type_from_attribute
from loopscope.ops.promotion import promotion


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
