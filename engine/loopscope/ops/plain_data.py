"""Declaration of an operation as plain data, and the names of a node's ports.

The data is for ``loopscope ops --json`` and generators of functions or pages. The names are those
of the specification.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from onnx import defs

from loopscope.ir.element_type import ElementType
from loopscope.ops.attribute_text import is_of, written
from loopscope.ops.declare import REQUIRED, Attribute, Operation
from loopscope.ops.onnx.reference import since
from loopscope.ops.port_meanings import input_names
from loopscope.ops.type_relations import TypeRelations, type_relations


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
