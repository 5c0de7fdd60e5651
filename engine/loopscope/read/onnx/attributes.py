"""AttributeProto to frozen Python values; references to a function's attributes become the
values of its call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice, repeat
from operator import attrgetter, getitem
from types import MappingProxyType

from onnx import AttributeProto, NodeProto

from loopscope.ir.model import NO_ATTRIBUTES
from loopscope.read.onnx.tensors import ExternalData, array, constant, dense
from loopscope.read.onnx.types import value_type

Given = Mapping[str, AttributeProto]
"""The attributes of a function's call (and its defaults) by name."""


def given_of(nodes: Sequence[NodeProto], around: Given) -> list[Given]:
    """``given`` of each node."""
    listed = [*map(getitem, map(_ATTRIBUTE, nodes), WHOLE)]
    every = [*chain.from_iterable(listed)]
    if any(map(_REFERENCE, every)):
        return [given(one, around) for one in listed]
    names = map(_NAME, every)
    return [
        dict(zip(islice(names, len(one)), one, strict=True)) if one else _NONE for one in listed
    ]


def given(nodes_attributes: Sequence[AttributeProto], around: Given) -> Given:
    """The attributes of a node by name; those that refer to an attribute of the function around
    it are resolved, or left out.
    """
    found: dict[str, AttributeProto] = {}
    for attribute in nodes_attributes:
        reference = attribute.ref_attr_name
        if not reference:
            found[attribute.name] = attribute
        elif reference in around:
            found[attribute.name] = around[reference]
    return found


def attributes(given: Given, external: ExternalData) -> Mapping[str, object]:
    """All attributes of a node but its graphs, frozen; ``ValueError`` names the first that
    cannot be read.
    """
    if not given:
        return NO_ATTRIBUTES
    values: dict[str, object] = {}
    for name, attribute in given.items():
        kind = attribute.type
        if kind in _GRAPHS:
            continue
        try:
            plain = _PLAIN.get(kind)
            values[name] = (
                plain(attribute) if plain is not None else _frozen(attribute, kind, external)
            )
        except ValueError as error:
            raise ValueError(f"attribute {name[:60]!r}: {error}") from error
    return MappingProxyType(values)


def _frozen(attribute: AttributeProto, kind: int, external: ExternalData) -> object:
    """One attribute's value: numbers, text, tuples of them, read-only arrays, types."""
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain(attribute)
    tensors = _TENSORS.get(kind)
    return _untyped(attribute, external) if tensors is None else tensors(attribute, external)


_NONE: Given = MappingProxyType({})
_NAME, _ATTRIBUTE, _REFERENCE = map(attrgetter, ("name", "attribute", "ref_attr_name"))
WHOLE = repeat(slice(None))
"""A slice of a container of protobuf is a list, and made four times as fast as by ``list``."""
_GRAPHS = (int(AttributeProto.GRAPH), int(AttributeProto.GRAPHS))
_PLAIN: Mapping[int, Callable[[AttributeProto], object]] = {
    AttributeProto.FLOAT: attrgetter("f"),
    AttributeProto.INT: attrgetter("i"),
    AttributeProto.STRING: lambda one: _text(one.s),
    AttributeProto.FLOATS: lambda one: tuple(one.floats[:]),
    AttributeProto.INTS: lambda one: tuple(one.ints[:]),
    AttributeProto.STRINGS: lambda one: _texts(one.strings[:]),
    AttributeProto.TYPE_PROTO: lambda one: value_type(one.tp),
    AttributeProto.TYPE_PROTOS: lambda one: tuple(value_type(type) for type in one.type_protos),
}
_TENSORS: Mapping[int, Callable[[AttributeProto, ExternalData], object]] = {
    AttributeProto.TENSOR: lambda one, external: array(constant(one.t, external)),
    AttributeProto.TENSORS: lambda one, external: tuple(
        array(constant(tensor, external)) for tensor in one.tensors
    ),
    AttributeProto.SPARSE_TENSOR: lambda one, external: array(dense(one.sparse_tensor, external)),
    AttributeProto.SPARSE_TENSORS: lambda one, external: tuple(
        array(dense(tensor, external)) for tensor in one.sparse_tensors
    ),
}


def _untyped(attribute: AttributeProto, external: ExternalData) -> object:
    """Files of IR version 1 do not say the type: the field that is there tells."""
    for field, kind in _FIELDS:
        held = getattr(attribute, field)
        if (
            attribute.HasField(field) if field in ("f", "i", "s", "t") else len(held)
        ) and kind != attribute.type:
            typed = AttributeProto()
            typed.CopyFrom(attribute)
            typed.type = kind
            return _frozen(typed, kind, external)
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


def _texts(listed: Sequence[bytes]) -> tuple[str, ...]:
    """Decode each different text once: a forest has millions of a few."""
    decoded = {data: _text(data) for data in {*listed}}
    return tuple([decoded[data] for data in listed])


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
