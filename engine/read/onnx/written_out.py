"""Operations with graphs that ONNX defines by a function of others: that function, with the graphs written into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, TypeProto

from engine.read.onnx.types import ELEMENT_TYPES, ValueType

_NUMBERS = {element_type: number for number, element_type in ELEMENT_TYPES.items()}


def written_out(
    node: NodeProto, attributes: Mapping[str, AttributeProto], version: int, types: Sequence[ValueType]
) -> FunctionProto | None:
    """None when ONNX knows no function for the operation, or makes none of such a node."""
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, version, node.domain)
        if not schema.has_context_dependent_function:
            return None
        resolved = NodeProto(op_type=node.op_type, domain=node.domain, input=list(node.input), output=list(node.output))
        resolved.attribute.extend(attributes.values())
        tensors = [TypeProto(tensor_type=TypeProto.Tensor(elem_type=_number(one))).SerializeToString() for one in types]
        function = FunctionProto()
        function.ParseFromString(schema.get_context_dependent_function(resolved.SerializeToString(), tensors))
    except Exception:  # its own kinds: no schema, a node that contradicts it, a file that cannot be parsed again
        return None
    return function


def _number(type: ValueType) -> int:
    """Single precision where nothing is said."""
    return _NUMBERS.get(type.element_type, TensorProto.FLOAT) if type.element_type is not None else TensorProto.FLOAT
