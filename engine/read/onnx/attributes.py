"""AttributeProto to frozen Python values; references to a function's attributes become the values of its call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from onnx import AttributeProto, NodeProto

from engine.ir.model import NO_ATTRIBUTES
from engine.read.onnx.tensors import ExternalData, array, constant, dense
from engine.read.onnx.types import value_type

Given = Mapping[str, AttributeProto]
"""The attributes of a function's call (and its defaults) by name."""


def given(nodes_attributes: Iterable[AttributeProto], around: Given) -> dict[str, AttributeProto]:
    """The attributes of a node by name; those that refer to an attribute of the function around it are resolved, or left out."""
    found: dict[str, AttributeProto] = {}
    for attribute in nodes_attributes:
        if not attribute.ref_attr_name:
            found[attribute.name] = attribute
        elif attribute.ref_attr_name in around:
            found[attribute.name] = around[attribute.ref_attr_name]
    return found


def attributes(node: NodeProto, around: Given, external: ExternalData) -> Mapping[str, object]:
    """All attributes of a node but its graphs, frozen; ``ValueError`` names the first that cannot be read."""
    if not node.attribute:
        return NO_ATTRIBUTES
    values: dict[str, object] = {}
    for name, attribute in given(node.attribute, around).items():
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            continue
        try:
            values[name] = frozen(attribute, external)
        except ValueError as error:
            raise ValueError(f"attribute {name[:60]!r}: {error}") from error
    return MappingProxyType(values)


def frozen(attribute: AttributeProto, external: ExternalData) -> object:
    """One attribute's value: numbers, text, tuples of them, read-only arrays, types."""
    match attribute.type:
        case AttributeProto.FLOAT:
            return float(attribute.f)
        case AttributeProto.INT:
            return int(attribute.i)
        case AttributeProto.STRING:
            return _text(attribute.s)
        case AttributeProto.FLOATS:
            return tuple(attribute.floats)
        case AttributeProto.INTS:
            return tuple(attribute.ints)
        case AttributeProto.STRINGS:
            return tuple(_text(one) for one in attribute.strings)
        case AttributeProto.TENSOR:
            return array(constant(attribute.t, external))
        case AttributeProto.TENSORS:
            return tuple(array(constant(one, external)) for one in attribute.tensors)
        case AttributeProto.SPARSE_TENSOR:
            return array(dense(attribute.sparse_tensor, external))
        case AttributeProto.SPARSE_TENSORS:
            return tuple(array(dense(one, external)) for one in attribute.sparse_tensors)
        case AttributeProto.TYPE_PROTO:
            return value_type(attribute.tp)
        case AttributeProto.TYPE_PROTOS:
            return tuple(value_type(one) for one in attribute.type_protos)
        case _:
            return _untyped(attribute, external)


def _untyped(attribute: AttributeProto, external: ExternalData) -> object:
    """Files of IR version 1 do not say the type: the field that is there tells."""
    for field, kind in _FIELDS:
        held = getattr(attribute, field)
        if (attribute.HasField(field) if field in ("f", "i", "s", "t") else len(held)) and kind != attribute.type:
            typed = AttributeProto()
            typed.CopyFrom(attribute)
            typed.type = kind
            return frozen(typed, external)
    raise ValueError("it has no value")


_FIELDS = (
    ("t", AttributeProto.TENSOR),
    ("s", AttributeProto.STRING),
    ("floats", AttributeProto.FLOATS),
    ("ints", AttributeProto.INTS),
    ("strings", AttributeProto.STRINGS),
    ("i", AttributeProto.INT),
    ("f", AttributeProto.FLOAT),
)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
