"""Operations with graphs that ONNX defines by a function of others: that function, with the
graphs written into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, TypeProto

from loopscope.native.onnx_functions import function_of
from loopscope.read.onnx.types import ELEMENT_TYPES, ValueType

_LARGEST_VERSION = 2**31 - 1
"""What ONNX keeps a version in."""
_NUMBERS = {element_type: number for number, element_type in ELEMENT_TYPES.items()}


def written_out(
    node: NodeProto,
    attributes: Mapping[str, AttributeProto],
    version: int,
    types: Sequence[ValueType],
) -> FunctionProto | None:
    """None when ONNX knows no function for the operation, or makes none of such a node."""
    if not 0 < version <= _LARGEST_VERSION or not _has_function(node.op_type, version, node.domain):
        return None
    resolved = NodeProto(
        op_type=node.op_type, domain=node.domain, input=list(node.input), output=list(node.output)
    )
    resolved.attribute.extend(attributes.values())
    return function_of(
        resolved,
        version,
        [TypeProto(tensor_type=TypeProto.Tensor(elem_type=_number(one))) for one in types],
    )


def _has_function(type: str, version: int, domain: str) -> bool:
    """Whether ONNX defines an operation by a function that depends on the node."""
    try:
        schema: Any = onnx.defs.get_schema(type, version, domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_context_dependent_function)


def _number(type: ValueType) -> int:
    """Single precision where nothing is said."""
    return (
        _NUMBERS.get(type.element_type, TensorProto.FLOAT)
        if type.element_type is not None
        else TensorProto.FLOAT
    )
