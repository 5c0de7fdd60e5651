"""Declaration of an operation as plain data, names of ports, and relations of element types.

The data is for ``loopscope ops --json`` and generators of functions or pages. The names are those
of the specification. Relations are found by calling the shape function with different types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
from onnx import defs

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.attribute_text import ITEMS, is_of, written
from loopscope.ops.declare import REQUIRED, Attribute, Known, Operation
from loopscope.ops.onnx.reference import since
from loopscope.ops.port_meanings import input_names


def operation_data(operation: Operation, category: str) -> dict[str, Any]:
    """Return one version of an operation as plain data.

    ``outputs.most`` is None where a node may have any number of outputs. Attribute values are
    texts, as in an IR. ``same_type_as`` is the input whose element type an input must have. The
    ``type`` of an output is the input or the attribute that decides it (``input 0``, ``attribute
    output_type``), or the type itself; None if it depends on more.
    """
    lower, upper = operation.inputs
    names = input_names(operation)
    relations = type_relations(operation, len(names))
    return {
        "name": operation.name,
        "version": operation.version,
        "category": category,
        "opset": operation.opset or None,
        "opsets": list(operation.opsets),
        "page": operation.page or None,
        "doc": operation.description,
        "inputs": {
            "least": lower,
            "most": upper,
            "each": [_input(operation, index, name, relations) for index, name in enumerate(names)],
        },
        "outputs": {"most": operation.outputs, "each": _outputs(operation, relations)},
        "attributes": [_attribute(attribute) for attribute in operation.attributes],
    }


def _input(
    operation: Operation, number: int, name: str, relations: TypeRelations
) -> dict[str, Any]:
    types = (
        operation.types[min(number, len(operation.types) - 1)]
        if operation.types
        else frozenset(ElementType)
    )
    type_names = [element_type.value for element_type in ElementType if element_type in types]
    return {
        "name": name,
        "types": type_names,
        "same_type_as": relations.shared[number],
        "doc": operation.input_docs.get(name, ""),
    }


def _outputs(operation: Operation, relations: TypeRelations) -> list[dict[str, Any]]:
    docs = list(operation.output_docs.items())
    count = max(len(docs), operation.outputs or 0)
    docs += [("", "")] * (count - len(docs))
    types = [*relations.outputs, *[None] * count]
    return [
        {"name": name, "type": kind, "doc": doc}
        for (name, doc), kind in zip(docs, types, strict=False)
    ]


def _attribute(attribute: Attribute) -> dict[str, Any]:
    return {
        "name": attribute.name,
        "keyword": attribute.keyword,
        "kind": attribute.kind,
        "required": attribute.default is REQUIRED,
        "default": _default(attribute),
        "allowed": [str(value) for value in attribute.allowed],
        "least": None if attribute.least is None else f"{attribute.least:g}",
        "fewest": attribute.fewest,
        "doc": attribute.doc,
    }


def _default(attribute: Attribute) -> str | None:
    if attribute.default is REQUIRED or attribute.default is None:
        return None
    return (
        written(attribute.kind, attribute.default)
        if is_of(attribute.kind, attribute.default)
        else str(attribute.default)
    )


@dataclass(frozen=True, slots=True)
class PortNames:
    """Names of the ports of a node; a port without a name in the specification has its number."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def port_names(operation: Operation | None, opset: str, inputs: int, outputs: int) -> PortNames:
    """Return the names of a node with these numbers of inputs and outputs.

    ``opset`` is that of the node, such as ``ai.onnx 18``. Ports of one variadic parameter are
    numbered.

    >>> from loopscope.ops import catalogue_for
    >>> gru = catalogue_for("onnx").find("GRU", "ai.onnx 22")
    >>> port_names(gru, "ai.onnx 22", 4, 1)
    PortNames(inputs=('X', 'W', 'R', 'B'), outputs=('Y',))
    >>> concat = catalogue_for("onnx").find("Concat", "ai.onnx 13")
    >>> port_names(concat, "ai.onnx 13", 2, 1).inputs
    ('inputs 0', 'inputs 1')
    """
    schema = _schema(operation.name, opset) if operation is not None else None
    if schema is not None:
        return PortNames(_formal(schema.inputs, inputs), _formal(schema.outputs, outputs))
    if operation is None:
        return PortNames(_numbered((), inputs), _numbered((), outputs))
    described = [name for name in input_names(operation, inputs) if not name.startswith("input_")]
    return PortNames(_numbered(described, inputs), _numbered(operation.output_docs, outputs))


def _schema(name: str, opset: str) -> Any:
    """Return ONNX's schema of an operation; None for an operation of OpenVINO."""
    domain, _, version = opset.rpartition(" ")
    if not version.isdigit() or len(version) > 6:
        return None
    return since("" if domain == "ai.onnx" else domain, name, int(version))


def _formal(parameters: Iterable[Any], count: int) -> tuple[str, ...]:
    names: list[str] = []
    for parameter in parameters:
        if parameter.option is defs.OpSchema.FormalParameterOption.Variadic:
            names += [f"{parameter.name} {number}" for number in range(count - len(names))]
        else:
            names.append(parameter.name)
    return _numbered(names, count)


def _numbered(names: Iterable[str], count: int) -> tuple[str, ...]:
    """Return ``count`` names; ports beyond the named ones have their number."""
    padded = chain(names, repeat(""))
    return tuple(name or str(number) for number, name in zip(range(count), padded, strict=False))


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
    base = _inferred_outputs(operation, first, attributes)
    if base is None:
        return TypeRelations((None,) * inputs, ())
    shared: list[int | None] = []
    for index in range(inputs):
        changed_alone = _inferred_outputs(
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
        _record_origin(
            origins, base, _inferred_outputs(operation, changed, attributes), f"input {index}"
        )
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
                _inferred_outputs(operation, first, changed_attributes),
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


def _inferred_outputs(
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
