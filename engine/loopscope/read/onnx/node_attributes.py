"""Attributes, documentation and metadata of ONNX nodes as frozen Python values.

References to attributes of a function are replaced by the values of its call. Exporters state the
source in documentation and metadata of nodes, tensors and graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice, repeat
from operator import attrgetter, getitem
from types import MappingProxyType

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from loopscope.errors import shorten
from loopscope.ir.model import NO_ATTRIBUTES
from loopscope.read.onnx.tensors_and_types import (
    ExternalData,
    array,
    attribute_type,
    constant,
    dense,
)

AttributeMap = Mapping[str, AttributeProto]
"""Attributes by name, such as those of a function's call and its defaults."""


def attributes_of(nodes: Sequence[NodeProto], outer: AttributeMap) -> list[AttributeMap]:
    """Return the resolved attributes of each node."""
    per_node = [*map(getitem, map(_ATTRIBUTE, nodes), WHOLE)]
    all_attributes = [*chain.from_iterable(per_node)]
    if any(map(_REFERENCE, all_attributes)):
        return [resolve_attributes(items, outer) for items in per_node]
    names = map(_NAME, all_attributes)
    return [
        dict(zip(islice(names, len(items)), items, strict=True)) if items else _NO_ATTRIBUTES
        for items in per_node
    ]


def resolve_attributes(
    node_attributes: Sequence[AttributeProto], outer: AttributeMap
) -> AttributeMap:
    """Return the attributes of a node by name.

    References to an attribute of the surrounding function are resolved, or omitted if it is not
    set.
    """
    resolved: dict[str, AttributeProto] = {}
    for attribute in node_attributes:
        reference = attribute.ref_attr_name
        if not reference:
            resolved[attribute.name] = attribute
        elif reference in outer:
            resolved[attribute.name] = outer[reference]
    return resolved


def attributes(resolved: AttributeMap, external: ExternalData) -> Mapping[str, object]:
    """Return all attributes of a node except graphs, frozen.

    ``ValueError`` names the first attribute that cannot be read.
    """
    if not resolved:
        return NO_ATTRIBUTES
    values: dict[str, object] = {}
    for name, attribute in resolved.items():
        kind = attribute.type
        if kind in _GRAPHS:
            continue
        try:
            read_plain = _PLAIN.get(kind)
            values[name] = (
                read_plain(attribute)
                if read_plain is not None
                else _frozen(attribute, kind, external)
            )
        except ValueError as error:
            raise ValueError(f"attribute {name[:60]!r}: {error}") from error
    return MappingProxyType(values)


def _frozen(attribute: AttributeProto, kind: int, external: ExternalData) -> object:
    """Return an attribute's value: a number, text, tuple of them, read-only array, or type."""
    read_plain = _PLAIN.get(kind)
    if read_plain is not None:
        return read_plain(attribute)
    read_tensor = _TENSORS.get(kind)
    return (
        _untyped(attribute, external) if read_tensor is None else read_tensor(attribute, external)
    )


_NO_ATTRIBUTES: AttributeMap = MappingProxyType({})
_NAME, _ATTRIBUTE, _REFERENCE = map(attrgetter, ("name", "attribute", "ref_attr_name"))
WHOLE = repeat(slice(None))
"""Slices for protobuf containers: a slice makes a list four times as fast as ``list`` does."""
_GRAPHS = (int(AttributeProto.GRAPH), int(AttributeProto.GRAPHS))
_PLAIN: Mapping[int, Callable[[AttributeProto], object]] = {
    AttributeProto.FLOAT: attrgetter("f"),
    AttributeProto.INT: attrgetter("i"),
    AttributeProto.STRING: lambda proto: _text(proto.s),
    AttributeProto.FLOATS: lambda proto: tuple(proto.floats[:]),
    AttributeProto.INTS: lambda proto: tuple(proto.ints[:]),
    AttributeProto.STRINGS: lambda proto: _texts(proto.strings[:]),
    AttributeProto.TYPE_PROTO: lambda proto: attribute_type(proto.tp),
    AttributeProto.TYPE_PROTOS: lambda proto: tuple(map(attribute_type, proto.type_protos)),
}
_TENSORS: Mapping[int, Callable[[AttributeProto, ExternalData], object]] = {
    AttributeProto.TENSOR: lambda proto, external: array(constant(proto.t, external)),
    AttributeProto.TENSORS: lambda proto, external: tuple(
        array(constant(tensor, external)) for tensor in proto.tensors
    ),
    AttributeProto.SPARSE_TENSOR: lambda proto, external: array(
        dense(proto.sparse_tensor, external)
    ),
    AttributeProto.SPARSE_TENSORS: lambda proto, external: tuple(
        array(dense(tensor, external)) for tensor in proto.sparse_tensors
    ),
}


def _untyped(attribute: AttributeProto, external: ExternalData) -> object:
    """Return the value of an attribute of IR version 1, whose type follows from the field that is
    set.
    """
    for field, kind in _FIELD_TYPES:
        content = getattr(attribute, field)
        if (
            attribute.HasField(field) if field in ("f", "i", "s", "t") else len(content)
        ) and kind != attribute.type:
            typed = AttributeProto()
            typed.CopyFrom(attribute)
            typed.type = kind
            return _frozen(typed, kind, external)
    raise ValueError("it has no value")


_FIELD_TYPES = (
    ("t", AttributeProto.TENSOR),
    ("s", AttributeProto.STRING),
    ("floats", AttributeProto.FLOATS),
    ("ints", AttributeProto.INTS),
    ("strings", AttributeProto.STRINGS),
    ("i", AttributeProto.INT),
    ("f", AttributeProto.FLOAT),
)


def _texts(texts: Sequence[bytes]) -> tuple[str, ...]:
    """Decode each distinct text once, because a tree ensemble repeats a few texts millions of
    times.
    """
    decoded = {data: _text(data) for data in {*texts}}
    return tuple([decoded[data] for data in texts])


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


DOC_STRING = "doc_string"
"""Key of a node's documentation among its metadata."""
_MAX_ENTRIES = 32
_MAX_KEY = 200
_MAX_TEXT = 4_000


def node_details(nodes: Sequence[NodeProto]) -> dict[int, Mapping[str, object]]:
    """Return metadata and documentation of the nodes that have some, by index.

    Long texts are shortened. Texts that are not UTF-8 are left out.
    """
    return {
        index: details
        for index, node in enumerate(nodes)
        if (node.metadata_props or node.doc_string) and (details := details_of(node))
    }


def input_details(graph: GraphProto | FunctionProto) -> dict[str, Mapping[str, object]]:
    """Return metadata and documentation of the inputs that have some, by name."""
    return {
        value.name: details
        for value in (graph.input if isinstance(graph, GraphProto) else ())
        if (details := details_of(value))
    }


def details_of(
    documented: NodeProto | ValueInfoProto | TensorProto | GraphProto | FunctionProto,
) -> Mapping[str, object]:
    """Return metadata and documentation; empty if there are none."""
    if not documented.metadata_props and not documented.doc_string:
        return NO_ATTRIBUTES
    texts = [
        *((entry.key, entry.value) for entry in documented.metadata_props[:_MAX_ENTRIES]),
        (DOC_STRING, documented.doc_string),
    ]
    return {
        shorten(key, _MAX_KEY): shorten(text, _MAX_TEXT)
        for key, text in texts
        if isinstance(key, str) and isinstance(text, str) and key and text
    }
