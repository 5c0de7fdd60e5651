"""Expansion of operations that ONNX defines by a function, with the node's graphs inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, TypeProto

from loopscope.native.onnx_functions import function_of
from loopscope.read.onnx.types import ELEMENT_TYPES, ValueType

_LARGEST_VERSION = 2**31 - 1
"""Largest opset version that the onnx package accepts."""
_NUMBERS = {element_type: number for number, element_type in ELEMENT_TYPES.items()}


def expand_function(
    node: NodeProto,
    attributes: Mapping[str, AttributeProto],
    version: int,
    types: Sequence[ValueType],
) -> FunctionProto | None:
    """Return the function that defines the node, or None if ONNX does not define one for it."""
    if not 0 < version <= _LARGEST_VERSION or not _has_function(node.op_type, version, node.domain):
        return None
    resolved = NodeProto(
        op_type=node.op_type, domain=node.domain, input=list(node.input), output=list(node.output)
    )
    resolved.attribute.extend(attributes.values())
    return function_of(
        resolved,
        version,
        [
            TypeProto(tensor_type=TypeProto.Tensor(elem_type=_number(value_type)))
            for value_type in types
        ],
    )


def _has_function(type: str, version: int, domain: str) -> bool:
    """Return True if ONNX defines the operation by a function that depends on the node."""
    try:
        schema: Any = onnx.defs.get_schema(type, version, domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_context_dependent_function)


def _number(type: ValueType) -> int:
    """Return ONNX's number of the element type; f32 if it is unknown."""
    return (
        _NUMBERS.get(type.element_type, TensorProto.FLOAT)
        if type.element_type is not None
        else TensorProto.FLOAT
    )
