"""How the element types of an operation depend on each other: its shape function is asked with
one type and with another.
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
"""Asked with first, where they are allowed."""
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
    """Of one operation; nothing is known where its shape function does not answer."""

    shared: tuple[int | None, ...]
    """For each input the first one whose element type it must have too; None where there is none
    before it.
    """
    outputs: tuple[str | None, ...]
    """The element type of each output: ``input 0`` or ``attribute output_type`` that decides it,
    or its name, such as ``boolean``.
    """


def type_relations(operation: Operation, inputs: int) -> TypeRelations:
    """The relations between so many inputs, and the outputs that the operation has for them."""
    attributes = {one.keyword: _sample(one) for one in operation.attributes}
    types = [_two(operation.types[min(at, len(operation.types) - 1)]) for at in range(inputs)]
    first = [one[0] for one in types]
    base = _outputs(operation, first, attributes)
    if base is None:
        return TypeRelations((None,) * inputs, ())
    shared: list[int | None] = []
    for at in range(inputs):
        alone = _outputs(operation, [*first[:at], types[at][1], *first[at + 1 :]], attributes)
        before = next(
            (one for one in range(at) if types[one] == types[at] and shared[one] is None), None
        )
        shared.append(before if alone is None and types[at][0] is not types[at][1] else None)
    found = [None if one is None else str(one) for one in base]
    for at in range(inputs):
        changed = [
            types[one][1] if at in (one, shared[one]) else first[one] for one in range(inputs)
        ]
        _note(found, base, _outputs(operation, changed, attributes), f"input {at}")
    for attribute in operation.attributes:
        if attribute.kind == "type":
            other = {
                **attributes,
                attribute.keyword: ElementType.I32
                if attributes[attribute.keyword] is not ElementType.I32
                else ElementType.I64,
            }
            _note(found, base, _outputs(operation, first, other), f"attribute {attribute.name}")
    return TypeRelations(tuple(shared), tuple(found))


def _note(
    found: list[str | None],
    base: Sequence[ElementType | None],
    changed: Sequence[ElementType | None] | None,
    by: str,
) -> None:
    """Outputs whose type has changed are decided by what was."""
    for at, (before, after) in enumerate(zip(base, changed or (), strict=False)):
        if (
            before is not after
            and before is not None
            and not (found[at] or "").startswith(("input", "attribute"))
        ):
            found[at] = by


def _outputs(
    operation: Operation, types: Sequence[ElementType], attributes: Mapping[str, Any]
) -> list[ElementType | None] | None:
    """The element types of the outputs; None when the shape function refuses them, or there is
    none.
    """
    if operation.infer is None:
        return None
    try:
        return [
            one.element_type for one in operation.infer([Known(one) for one in types], attributes)
        ]
    except _RULE_FAULTS:
        return None


def _two(allowed: frozenset[ElementType]) -> tuple[ElementType, ElementType]:
    """Two of the allowed types; one alone twice."""
    there = [
        *(one for one in _USUAL if one in allowed),
        *(one for one in ElementType if one in allowed and one not in _USUAL),
    ]
    return there[0], there[min(1, len(there) - 1)]


def _sample(attribute: Attribute) -> Any:
    """A value that the attribute may have."""
    if attribute.default is not REQUIRED:
        return attribute.default
    item = ITEMS.get(attribute.kind)
    one = attribute.allowed[0] if attribute.allowed else _SAMPLES[item or attribute.kind]
    return (one,) if item else one
