"""An operation's declaration as plain data, for ``loopscope ops --json``: what a generator of functions or pages needs."""

from __future__ import annotations

from typing import Any

from engine.ir.element_type import ElementType
from engine.ops.attribute_text import is_of, written
from engine.ops.declare import REQUIRED, Attribute, Operation
from engine.ops.input_names import input_names


def operation_data(operation: Operation, category: str) -> dict[str, Any]:
    """One version of an operation. ``outputs.most`` is None where a node has any number; attribute values are texts, as in an IR."""
    least, most = operation.inputs
    return {
        "name": operation.name,
        "version": operation.version,
        "category": category,
        "opset": operation.opset or None,
        "opsets": list(operation.opsets),
        "page": operation.page or None,
        "doc": operation.description,
        "inputs": {"least": least, "most": most, "each": [_input(operation, *one) for one in enumerate(input_names(operation))]},
        "outputs": {"most": operation.outputs, "each": [{"name": name, "doc": doc} for name, doc in operation.output_docs.items()]},
        "attributes": [_attribute(one) for one in operation.attributes],
    }


def _input(operation: Operation, number: int, name: str) -> dict[str, Any]:
    types = operation.types[min(number, len(operation.types) - 1)] if operation.types else frozenset(ElementType)
    named = [one.value for one in ElementType if one in types]
    return {"name": name, "types": named, "doc": operation.input_docs.get(name, "")}


def _attribute(attribute: Attribute) -> dict[str, Any]:
    return {
        "name": attribute.name,
        "keyword": attribute.keyword,
        "kind": attribute.kind,
        "required": attribute.default is REQUIRED,
        "default": _default(attribute),
        "allowed": [str(one) for one in attribute.allowed],
        "least": None if attribute.least is None else f"{attribute.least:g}",
        "fewest": attribute.fewest,
        "doc": attribute.doc,
    }


def _default(attribute: Attribute) -> str | None:
    if attribute.default is REQUIRED or attribute.default is None:
        return None
    return written(attribute.kind, attribute.default) if is_of(attribute.kind, attribute.default) else str(attribute.default)
