"""Declaration of an operation as plain data, for ``loopscope ops --json`` and generators of
functions or pages.
"""

from __future__ import annotations

from typing import Any

from loopscope.ir.element_type import ElementType
from loopscope.ops.attribute_text import is_of, written
from loopscope.ops.declare import REQUIRED, Attribute, Operation
from loopscope.ops.input_names import input_names
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
