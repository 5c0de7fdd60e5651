"""One graph of an ONNX model, or one call of a function: its names, node columns and types."""

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
from loopscope.read.onnx.inference import Inferred
from loopscope.read.onnx.node_attributes import AttributeMap
from loopscope.read.onnx.split_weights import NO_VIEWS, WeightViews
from loopscope.read.onnx.tensors_and_types import UNKNOWN_TYPE, ValueType, value_type_of

FunctionKey = tuple[str, str, str]
Trail = tuple[int | None, tuple[tuple[int, str], ...]]
"""Index of a model function or None, then node index and attribute name of each step."""


class ScopedNode(Struct, eq=False):
    """A node with scopes inside it."""

    proto: NodeProto
    name: str
    type: str
    opset: str
    inputs: list[str]
    """Input names, empty for omitted inputs. Captures are appended."""
    outputs: list[str]
    attributes: Mapping[str, AttributeProto]
    inner: tuple[tuple[BodyName, Scope], ...] = ()
    captures_from: int = 0
    """Number of inputs before the captures."""
    is_function: bool = False
    is_foreign: bool = False
    """True if it is unknown how the operation runs its graphs."""
    is_batched: bool = False
    """True for a Scan of opset 8, which is read as two Scans."""

    @property
    def is_rewritten(self) -> bool:
        """True if the node in the file cannot be derived from the bodies."""
        return self.is_function or self.is_foreign or self.is_batched


class NodeColumns(Struct, frozen=True, eq=False):
    """The nodes of a graph as columns, because protobuf returns one field of all nodes in half the
    time.
    """

    names: list[str] = []
    types: list[str] = []
    opsets: list[str] = []
    inputs: list[list[str]] = []
    """Input names, empty for omitted inputs. Captures are appended."""
    outputs: list[list[str]] = []
    attributes: list[AttributeMap] = []
    within: dict[int, ScopedNode] = {}
    """Nodes that have scopes inside them, by index."""
    details: dict[int, Mapping[str, object]] = {}
    """Metadata and documentation of nodes, by index."""


NO_COLUMNS = NodeColumns()
"""Columns of a graph that was not read yet. They stay empty."""


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
    attributes: AttributeMap
    callers: tuple[FunctionKey, ...] = ()
    """The functions whose calls contain this scope, outermost first."""
    views: WeightViews = NO_VIEWS
    """Data of the graph's large tensors, which was not parsed."""
    inferred: Inferred | None = None
    """Inferred types of the outermost graph; reading them waits for another process."""
    place: tuple[int, str] | None = None
    """Node index and attribute name of this graph in its parent; they locate its typed copy."""
    trail: Trail | None = None
    """Way from the file's outermost graphs to this graph; None if the graph is not in the file."""
    source: int = 0
    """Number of the graph in ``Model.source``, or 0."""
    first_source: int = 0
    """Number of the graph's first node in ``Model.source``, or 0."""
    columns: NodeColumns = NO_COLUMNS
    captures: dict[str, None] = {}
    _types: dict[str, ValueType] | None = None
    _constants: dict[str, ValueType] | None = None
    _typed: GraphProto | None = None
    _is_found: bool = False

    def typed(self) -> GraphProto | None:
        """Return the copy of this graph with inferred types, or None.

        Typed copies of the parents are found first, in a loop, because graphs may nest hundreds
        deep.
        """
        unknown: list[Scope] = []
        scope: Scope | None = self
        while scope is not None and not scope._is_found:
            unknown.append(scope)
            scope = scope.parent
        for graph_scope in reversed(unknown):
            graph_scope._typed, graph_scope._is_found = graph_scope._find(), True
        return self._typed

    def _find(self) -> GraphProto | None:
        """Find the typed copy of this graph inside its parent's typed copy."""
        if self.inferred is not None:
            return self.inferred.graph
        if self.place is None or self.parent is None:
            return None
        number, attribute = self.place
        node = node_of(self.parent._typed, number)
        for attribute_proto in () if node is None else node.attribute[:]:
            if attribute_proto.name == attribute and attribute_proto.HasField("g"):
                body: GraphProto = attribute_proto.g
                return body
        return None

    @property
    def types(self) -> Mapping[str, ValueType]:
        """Types of the names of this graph: those that the file declares, then inferred ones."""
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
            *[sparse.values.name for sparse in self.proto.sparse_initializer[:]],
        ]

    @property
    def constants(self) -> Mapping[str, ValueType]:
        """Types of initializers and Constant nodes, which the file need not declare."""
        if self._constants is None:
            self._constants = {
                name: _type_of_tensor(tensor) for name, tensor in _tensors(self.proto)
            }
        return self._constants

    def type_of(self, name: str) -> ValueType:
        """Return the declared or inferred type of a name of this scope or of a scope around it."""
        scope: Scope | None = self
        while scope is not None:
            value_type = (scope.types if scope._types is None else scope._types).get(
                name
            ) or scope.constants.get(name)
            if value_type is not None:
                return value_type
            scope = scope.parent
        return UNKNOWN_TYPE


_NAME, _TYPE = map(attrgetter, ("name", "type"))


def _tensors(proto: GraphProto | FunctionProto) -> Iterator[tuple[str, TensorProto]]:
    if isinstance(proto, GraphProto):
        yield from ((item.name, item) for item in proto.initializer[:])
    for node in proto.node[:]:
        if node.op_type == "Constant" and len(node.output) == 1:
            yield from (
                (node.output[0], item.t)
                for item in node.attribute
                if item.name == "value" and item.HasField("t")
            )


def _type_of_tensor(tensor: TensorProto) -> ValueType:
    declared = TypeProto()
    declared.tensor_type.elem_type = tensor.data_type
    declared.tensor_type.shape.SetInParent()
    for length in tensor.dims:
        declared.tensor_type.shape.dim.add().dim_value = max(length, 0)
    return value_type_of(declared.SerializeToString())


def _types(values: Sequence[ValueInfoProto]) -> dict[str, ValueType]:
    infos = values[:]
    if not infos:
        return {}
    serialized = [*map(TypeProto.SerializeToString, map(_TYPE, infos))]
    return dict(
        zip(
            compress(map(_NAME, infos), serialized),
            map(value_type_of, filter(None, serialized)),
            strict=True,
        )
    )


def node_of(typed: GraphProto | None, number: int) -> NodeProto | None:
    """Return the node at this index of a typed graph, or None.

    A graph may have fewer nodes if two bodies of a node share an attribute's name.
    """
    return None if typed is None or number >= len(typed.node) else typed.node[number]
