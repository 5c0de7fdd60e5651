"""Attributes of the Model as AttributeProtos, in the form that the source file has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, TypeProto

from loopscope.errors import WriteError, shorten
from loopscope.ir.constant import Constant
from loopscope.read.onnx.types import ValueType
from loopscope.write.onnx.tensor_protos import array_proto, tensor_proto

_KINDS: Mapping[type, tuple[int, int]] = {
    float: (AttributeProto.FLOAT, AttributeProto.FLOATS),
    int: (AttributeProto.INT, AttributeProto.INTS),
    str: (AttributeProto.STRING, AttributeProto.STRINGS),
    np.ndarray: (AttributeProto.TENSOR, AttributeProto.TENSORS),
    ValueType: (AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS),
}
"""Kind of an attribute and of a list by the Python type of a value."""
_FIELDS: Mapping[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
_CONSTANT_DTYPES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


def attribute_protos(
    attributes: Mapping[str, object], source: NodeProto | None, operation: tuple[str, str, int]
) -> list[AttributeProto]:
    """Return the attributes of a node without its graphs.

    ``operation`` is the type, domain and version, by which the type of an empty list is known.
    """
    originals = {item.name: item for item in source.attribute} if source is not None else {}
    return [
        _attribute(name, value, originals.get(name), operation)
        for name, value in attributes.items()
    ]


def constant_attribute(constant: Constant, source: NodeProto | None) -> AttributeProto:
    """Return the value of a Constant node, as a number or list if the source has this form."""
    for original in source.attribute if source is not None else ():
        dtype = _CONSTANT_DTYPES.get(original.name)
        field = _FIELDS.get(original.type, "")
        if dtype is not None and field in ("f", "i", "floats", "ints"):
            array = np.array(getattr(original, field), dtype)
            known = constant.array()
            if (array.dtype, array.shape, array.tobytes()) == (
                known.dtype,
                known.shape,
                known.tobytes(),
            ):
                written: AttributeProto = original
                return written
    attribute = AttributeProto(name="value", type=AttributeProto.TENSOR)
    attribute.t.CopyFrom(tensor_proto(constant, ""))
    return attribute


def _attribute(
    name: str,
    value: object,
    original: AttributeProto | None,
    operation: tuple[str, str, int],
) -> AttributeProto:
    is_list = isinstance(value, tuple)
    items: Sequence[object] = value if isinstance(value, tuple) else (value,)
    if items:
        kinds = _KINDS.get(type(items[0]))
        if kinds is None or any(type(item) is not type(items[0]) for item in items):
            raise WriteError(
                f"the attribute {shorten(name, 60)!r} of {operation[0]} is "
                f"{shorten(repr(value), 60)}, which ONNX cannot express"
            )
        kind = kinds[is_list]
    else:
        kind = _kind_of_empty(name, original, operation)
    attribute = AttributeProto(name=name)
    attribute.type = cast("Any", kind)
    if original is not None:
        attribute.doc_string = original.doc_string
    field = _FIELDS[kind]
    encoded = [
        _encoded(item, text) for item, text in zip(items, _texts(original, items), strict=True)
    ]
    if is_list:
        getattr(attribute, field).extend(encoded)
    elif field in ("t", "tp"):
        getattr(attribute, field).CopyFrom(encoded[0])
    else:
        setattr(attribute, field, encoded[0])
    return attribute


def _texts(original: AttributeProto | None, items: Sequence[object]) -> Sequence[bytes | None]:
    """Return the bytes of the original's texts, or None per item if it has other texts."""
    texts: Sequence[bytes] = ()
    if original is not None and items and isinstance(items[0], str):
        texts = [original.s] if original.HasField("s") else list(original.strings)
    return texts if len(texts) == len(items) else [None] * len(items)


def _encoded(value: object, text: bytes | None) -> Any:
    """Return the content of an attribute. ``text`` is the original text, maybe not in UTF-8."""
    if isinstance(value, str):
        is_original = text is not None and text.decode("utf-8", errors="replace") == value
        return text if is_original else value.encode()
    if isinstance(value, np.ndarray):
        return array_proto(value)
    return TypeProto.FromString(value.serialized) if isinstance(value, ValueType) else value


def _kind_of_empty(
    name: str, original: AttributeProto | None, operation: tuple[str, str, int]
) -> int:
    """Return the kind of an empty list: as in the source, else as ONNX declares it, else INTS."""
    if original is not None and original.type in _FIELDS:
        return original.type
    kind, domain, version = operation
    try:
        declared = onnx.defs.get_schema(kind, version, domain).attributes.get(name)
    except onnx.defs.SchemaError:
        declared = None
    if declared is None:
        return AttributeProto.INTS
    declared_type: Any = declared.type
    return int(getattr(declared_type, "value", declared_type))
