"""One graph of an ONNX model, or one call of a function: its names, its nodes column by column,
and what is known of their types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from operator import attrgetter

from msgspec import Struct
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from loopscope.ir.model import BodyName
from loopscope.read.onnx.attributes import Given
from loopscope.read.onnx.inference import Inferred
from loopscope.read.onnx.split_weights import NOTHING, Held
from loopscope.read.onnx.types import UNKNOWN_TYPE, ValueType, value_type_of

FunctionKey = tuple[str, str, str]


class ScopedNode(Struct, eq=False):
    """A node that has scopes inside it."""

    proto: NodeProto
    name: str
    type: str
    opset: str
    inputs: list[str]
    """Names; empty where nothing is given. Captures are appended."""
    outputs: list[str]
    given: Mapping[str, AttributeProto]
    inner: tuple[tuple[BodyName, Scope], ...] = ()
    captures_from: int = 0
    """The number of inputs before the captures."""
    is_function: bool = False
    is_foreign: bool = False
    """What the operation does with its graphs is unknown."""


class Calls(Struct, frozen=True, eq=False):
    """The nodes of a graph, column by column: of one thing at a time, protobuf gives all in half
    the time.
    """

    names: list[str] = []
    types: list[str] = []
    opsets: list[str] = []
    inputs: list[list[str]] = []
    """Names; empty where nothing is given. Captures are appended."""
    outputs: list[list[str]] = []
    given: list[Given] = []
    within: dict[int, ScopedNode] = {}
    """Those that have scopes inside them, by number."""


NO_CALLS = Calls()
"""Of a graph that was not looked at yet. It stays empty."""


class Scope(Struct, eq=False):
    """One graph, or one call of a function."""

    name: str
    inputs: list[str]
    outputs: list[str]
    proto: GraphProto | FunctionProto
    parent: Scope | None
    """The scope whose names it may use; None for the outermost graph and for functions."""
    depth: int
    opsets: Mapping[str, int]
    attributes: Given
    callers: tuple[FunctionKey, ...] = ()
    """The functions that are being called, outermost first."""
    held: Held = NOTHING
    """The data of its large tensors, which was not parsed."""
    inferred: Inferred | None = None
    """Of the outermost graph: its types, for which another process is waited for."""
    place: tuple[int, str] | None = None
    """The node and the attribute of the graph around that hold it, by which it is found again
    among those with types.
    """
    calls: Calls = NO_CALLS
    captures: dict[str, None] = {}
    _types: dict[str, ValueType] | None = None
    _constants: dict[str, ValueType] | None = None
    _typed: GraphProto | None = None
    _is_found: bool = False

    def typed(self) -> GraphProto | None:
        """The same graph with the types that were inferred: found in the graphs around it,
        outermost first, as these may be hundreds.
        """
        unknown: list[Scope] = []
        scope: Scope | None = self
        while scope is not None and not scope._is_found:
            unknown.append(scope)
            scope = scope.parent
        for one in reversed(unknown):
            one._typed, one._is_found = one._find(), True
        return self._typed

    def _find(self) -> GraphProto | None:
        """As ``typed``, once that of the graph around is known."""
        if self.inferred is not None:
            return self.inferred.graph
        if self.place is None or self.parent is None:
            return None
        number, attribute = self.place
        found = node_of(self.parent._typed, number)
        for one in () if found is None else found.attribute[:]:
            if one.name == attribute and one.HasField("g"):
                body: GraphProto = one.g
                return body
        return None

    @property
    def types(self) -> Mapping[str, ValueType]:
        """What the file says of the names here, and what was inferred of them."""
        if self._types is None:
            typed = self.typed() or self.proto
            self._types = _types(typed.value_info)
            if isinstance(typed, GraphProto):
                self._types |= _types(typed.input)
                self._types |= _types(typed.output)
        return self._types

    @property
    def initializers(self) -> list[str]:
        if not isinstance(self.proto, GraphProto):
            return []
        return [
            *map(_NAME, self.proto.initializer[:]),
            *[one.values.name for one in self.proto.sparse_initializer[:]],
        ]

    @property
    def constants(self) -> Mapping[str, ValueType]:
        """The types of initializers and of Constant nodes, which no part of the file has to
        declare.
        """
        if self._constants is None:
            self._constants = {
                name: _type_of_tensor(tensor) for name, tensor in _tensors(self.proto)
            }
        return self._constants

    def type_of(self, name: str) -> ValueType:
        """What the file says of a name here or in the scopes around."""
        scope: Scope | None = self
        while scope is not None:
            found = (scope.types if scope._types is None else scope._types).get(
                name
            ) or scope.constants.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return UNKNOWN_TYPE


_NAME, _TYPE = map(attrgetter, ("name", "type"))


def _tensors(proto: GraphProto | FunctionProto) -> Iterator[tuple[str, TensorProto]]:
    if isinstance(proto, GraphProto):
        yield from ((one.name, one) for one in proto.initializer[:])
    for node in proto.node[:]:
        if node.op_type == "Constant" and len(node.output) == 1:
            yield from (
                (node.output[0], one.t)
                for one in node.attribute
                if one.name == "value" and one.HasField("t")
            )


def _type_of_tensor(tensor: TensorProto) -> ValueType:
    declared = TypeProto()
    declared.tensor_type.elem_type = tensor.data_type
    declared.tensor_type.shape.SetInParent()
    for length in tensor.dims:
        declared.tensor_type.shape.dim.add().dim_value = max(length, 0)
    return value_type_of(declared.SerializeToString())


def _types(values: Sequence[ValueInfoProto]) -> dict[str, ValueType]:
    listed = values[:]
    if not listed:
        return {}
    written = [*map(TypeProto.SerializeToString, map(_TYPE, listed))]
    return dict(
        zip(
            compress(map(_NAME, listed), written),
            map(value_type_of, filter(None, written)),
            strict=True,
        )
    )


def node_of(typed: GraphProto | None, number: int) -> NodeProto | None:
    """The same node of a graph with types; None where there is none, as in one of two bodies
    that share an attribute's name.
    """
    return None if typed is None or number >= len(typed.node) else typed.node[number]
