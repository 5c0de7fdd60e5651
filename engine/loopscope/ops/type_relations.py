"""Dependences between the element types of an operation, found by calling its shape function with
different types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.attribute_text import ITEMS
from loopscope.ops.declare import REQUIRED, Attribute, Known, Operation

_RULE_FAULTS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
_USUAL = (ElementType.F32, ElementType.F16, ElementType.I64, ElementType.I32)
"""Types to try first, where they are allowed."""
_SAMPLES: Mapping[str, Any] = {
    "int": 0,
    "float": 0.0,
    "bool": False,
    "str": "",
    "bytes": b"",
    "type": ElementType.F32,
    "shape": PartialShape(()),
    "tensor": np.float32(0),
}


@dataclass(frozen=True, slots=True)
class TypeRelations:
    """The type dependences of one operation; empty where its shape function does not answer."""

    shared: tuple[int | None, ...]
    """First earlier input that must have the element type of each input; else None."""
    outputs: tuple[str | None, ...]
    """Origin of each output's element type: ``input 0``, ``attribute output_type``, or a fixed name
    such as ``boolean``.
    """


def type_relations(operation: Operation, inputs: int) -> TypeRelations:
    """Return the relations between ``inputs`` inputs and the outputs that the operation has for
    them.
    """
    attributes = {other.keyword: _sample(other) for other in operation.attributes}
    types = [
        _two_types(operation.types[min(index, len(operation.types) - 1)]) for index in range(inputs)
    ]
    first = [other[0] for other in types]
    base = _outputs(operation, first, attributes)
    if base is None:
        return TypeRelations((None,) * inputs, ())
    shared: list[int | None] = []
    for index in range(inputs):
        changed_alone = _outputs(
            operation, [*first[:index], types[index][1], *first[index + 1 :]], attributes
        )
        earlier = next(
            (
                other
                for other in range(index)
                if types[other] == types[index] and shared[other] is None
            ),
            None,
        )
        shared.append(
            earlier if changed_alone is None and types[index][0] is not types[index][1] else None
        )
    origins = [None if other is None else str(other) for other in base]
    for index in range(inputs):
        changed = [
            types[other][1] if index in (other, shared[other]) else first[other]
            for other in range(inputs)
        ]
        _record_origin(origins, base, _outputs(operation, changed, attributes), f"input {index}")
    for attribute in operation.attributes:
        if attribute.kind == "type":
            changed_attributes = {
                **attributes,
                attribute.keyword: ElementType.I32
                if attributes[attribute.keyword] is not ElementType.I32
                else ElementType.I64,
            }
            _record_origin(
                origins,
                base,
                _outputs(operation, first, changed_attributes),
                f"attribute {attribute.name}",
            )
    return TypeRelations(tuple(shared), tuple(origins))


def _record_origin(
    origins: list[str | None],
    base: Sequence[ElementType | None],
    changed: Sequence[ElementType | None] | None,
    by: str,
) -> None:
    """Record the origin ``by`` for the outputs whose type changed."""
    for index, (before, after) in enumerate(zip(base, changed or (), strict=False)):
        if (
            before is not after
            and before is not None
            and not (origins[index] or "").startswith(("input", "attribute"))
        ):
            origins[index] = by


def _outputs(
    operation: Operation, types: Sequence[ElementType], attributes: Mapping[str, Any]
) -> list[ElementType | None] | None:
    """Return the element types of the outputs; None if the shape function is missing or does not
    accept the types.
    """
    if operation.infer is None:
        return None
    try:
        return [
            known.element_type
            for known in operation.infer([Known(known) for known in types], attributes)
        ]
    except _RULE_FAULTS:
        return None


def _two_types(allowed: frozenset[ElementType]) -> tuple[ElementType, ElementType]:
    """Return two of the allowed types; a single allowed type twice."""
    types = [
        *(element_type for element_type in _USUAL if element_type in allowed),
        *(
            element_type
            for element_type in ElementType
            if element_type in allowed and element_type not in _USUAL
        ),
    ]
    return types[0], types[min(1, len(types) - 1)]


def _sample(attribute: Attribute) -> Any:
    """Return an allowed value of the attribute."""
    if attribute.default is not REQUIRED:
        return attribute.default
    item = ITEMS.get(attribute.kind)
    value = attribute.allowed[0] if attribute.allowed else _SAMPLES[item or attribute.kind]
    return (value,) if item else value
