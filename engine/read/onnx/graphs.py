"""Scopes to graphs: nodes with ports and edges, initializers as Const, captured values as Parameters that are bound once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
from onnx import AttributeProto, GraphProto

from engine.errors import ReadError, Where, shorten
from engine.ir.constant import Constant
from engine.ir.model import NO_ATTRIBUTES, Body, BodyName, Edge, Graph, InputMap, LayerId, Node, Port
from engine.ir.shape import PartialShape
from engine.read.onnx.attributes import attributes
from engine.read.onnx.body_bindings import Bound, bound
from engine.read.onnx.scopes import Call, Scope
from engine.read.onnx.tensors import ExternalData, constant, dense
from engine.read.onnx.types import UNKNOWN_TYPE, ValueType

Output = tuple[LayerId, int]
_TENSOR = int(AttributeProto.TENSOR)
Tensor = TypeVar("Tensor")


@dataclass(slots=True, eq=False)
class Builder:
    """Builds the graph of one scope; the graphs inside it are built already."""

    scope: Scope
    external: ExternalData
    file: str
    built: Mapping[int, Built]
    """The graphs built so far, by ``id`` of their scope."""
    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])
    made: dict[str, Output] = field(default_factory=dict[str, Output])
    """What makes each name, as far as the nodes have come."""
    ports: dict[tuple[str, int], _Typed] = field(default_factory=dict[tuple[str, int], "_Typed"])
    """By name and number, with the type that the name has there."""
    types: Mapping[str, ValueType] = field(default_factory=dict[str, ValueType])
    """Of the names of the scope."""
    first: int = 0
    """The number of layers before the nodes."""
    later: dict[str, Output] | None = None
    """The nodes that produce each name, computed on first use."""

    def build(self) -> Built:
        """``ReadError`` when a tensor or an attribute cannot be read."""
        scope = self.scope
        self.types = scope.types
        parameters = [self._parameter(name, self.types.get(name, UNKNOWN_TYPE)) for name in scope.inputs]
        captured = {name: self._parameter(name, scope.type_of(name)) for name in scope.captures}
        self._initializers()
        self.first = len(self.nodes)
        for number, call in enumerate(scope.calls):
            self._node(number, call)
        results = [self._result(name) for name in scope.outputs]
        return Built(Graph(tuple(self.nodes), tuple(self.edges), scope.name), parameters, captured, results)

    def _new(self) -> LayerId:
        return LayerId(len(self.nodes))

    def _parameter(self, name: str, type: ValueType) -> LayerId:
        layer = self._new()
        self.nodes.append(Node(layer, name, "Parameter", outputs=(type.port(0, (name,)),)))
        self.made[name] = layer, 0
        return layer

    def _initializers(self) -> None:
        graph = self.scope.proto
        if not isinstance(graph, GraphProto):
            return
        for number, tensor in enumerate(graph.initializer[:]):
            self._initializer(tensor.name, tensor, partial(constant, data=self.scope.held.initializers.get(number)))
        for sparse in graph.sparse_initializer:
            self._initializer(sparse.values.name, sparse, dense)

    def _initializer(self, name: str, tensor: Tensor, read: Callable[[Tensor, ExternalData], Constant | np.ndarray]) -> None:
        try:
            self._constant(name, read(tensor, self.external))
        except ValueError as error:
            raise ReadError(f"initializer {shorten(name, 60)!r}: {error}", Where(self.file)) from error

    def _constant(self, name: str, data: Constant | np.ndarray) -> None:
        layer = self._new()
        self.made[name] = layer, 0
        if isinstance(data, Constant):
            port = Port(0, data.element_type, _shape(data.shape), (name,), NO_ATTRIBUTES)
            self.nodes.append(Node(layer, name, "Const", "", NO_ATTRIBUTES, (), (port,), (), data, NO_ATTRIBUTES))
        else:
            # Types that OpenVINO lacks: the operation Constant gives the array.
            port = Port(0, None, _shape(data.shape), (name,))
            self.nodes.append(Node(layer, name, "Constant", "ai.onnx 13", {"value": data}, outputs=(port,)))

    def _node(self, number: int, call: Call) -> None:
        layer = LayerId(len(self.nodes))
        name = call.name or f"{call.type}_{number}"
        try:
            values, data = self._attributes(call, number)
            bodies = tuple(self._body(call, body, inner) for body, inner in call.inner) if call.inner else ()
        except ValueError as error:
            raise ReadError(f"node {shorten(name, 60)!r}: {error}", Where(self.file)) from error
        # What flows into a constant flows nowhere.
        inputs = () if data is not None else self._inputs(layer, call.inputs)
        outputs = self._outputs(call.outputs) if data is None else _of_constant(data, call.outputs)
        self.nodes.append(Node(layer, name, call.type, call.opset, values, inputs, outputs, bodies, data, NO_ATTRIBUTES))
        for index, one in enumerate(call.outputs):
            if one:
                self.made[one] = layer, index

    def _inputs(self, layer: LayerId, names: Sequence[str]) -> tuple[Port, ...]:
        """The ports of a node, connected to what makes the names."""
        ports = []
        for index, name in enumerate(names):
            source = (self.made.get(name) or self._made_later(name)) if name else None
            if source is not None:
                self.edges.append(Edge(*source, layer, index))
            ports.append(self._port(name, index, self.types.get(name) or self.scope.type_of(name)))
        return tuple(ports)

    def _outputs(self, names: Sequence[str]) -> tuple[Port, ...]:
        return tuple([self._port(name, index, self.types.get(name)) for index, name in enumerate(names)])

    def _port(self, name: str, index: int, type: ValueType | None) -> Port:
        """One and the same for all nodes that name the value alike: what one gives, others take."""
        found = self.ports.get((name, index))
        if found is None or found[0] is not type:
            found = self.ports[name, index] = type, (type or UNKNOWN_TYPE).port(index, (name,) if name else ())
        return found[1]

    def _made_later(self, name: str) -> Output | None:
        """What makes a name, in a graph that is not in order: the first node that does."""
        if self.later is None:
            self.later = {}
            for number, call in enumerate(self.scope.calls, self.first):
                for index, one in enumerate(call.outputs):
                    self.later.setdefault(one, (LayerId(number), index))
        return self.later.get(name)

    def _attributes(self, call: Call, number: int) -> tuple[Mapping[str, object], Constant | None]:
        """The attributes of a node; of a Constant its data."""
        if call.type != "Constant" or not call.opset.startswith("ai.onnx ") or len(call.given) != 1:
            return attributes(call.given, self.external), None
        held = call.given.get("value")
        if held is not None and held.type == _TENSOR:
            data = constant(held.t, self.external, self.scope.held.constants.get(number))
            return ({}, data) if isinstance(data, Constant) else ({"value": data}, None)
        return _written_out(attributes(call.given, self.external))

    def _body(self, call: Call, name: BodyName, inner: Scope) -> Body:
        built = self.built[id(inner)]
        kind = "" if call.is_function else call.type
        # Which inputs an unknown operation passes to its graphs is unknown; only their captures are certain.
        port_map = Bound() if call.is_foreign else bound(kind, call.given, call.captures_from, built.parameters, built.results)
        at = {captured: index for index, captured in reversed([*enumerate(call.inputs)][call.captures_from :])}
        captures = tuple(InputMap(at[captured], layer) for captured, layer in built.captured.items())
        return Body(name, built.graph, (*port_map.inputs, *captures), port_map.outputs, port_map.back_edges)

    def _result(self, name: str) -> LayerId:
        layer = self._new()
        self.nodes.append(Node(layer, name, "Result", inputs=(self.scope.type_of(name).port(0, (name,)),)))
        source = self.made.get(name)
        if source is not None:
            self.edges.append(Edge(*source, layer, 0))
        return layer


_Typed = tuple[ValueType | None, Port]


def _of_constant(data: Constant, names: Sequence[str]) -> tuple[Port, ...]:
    return tuple([Port(0, data.element_type, _shape(data.shape), (name,) if name else (), NO_ATTRIBUTES) for name in names[:1]])


@lru_cache(maxsize=1024)
def _shape(lengths: tuple[int, ...]) -> PartialShape:
    """A model has few shapes for many constants."""
    return PartialShape.of(lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """A finished graph, and the layers by which it is bound."""

    graph: Graph
    parameters: Sequence[LayerId]
    captured: Mapping[str, LayerId]
    results: Sequence[LayerId]


def _written_out(values: Mapping[str, object]) -> tuple[Mapping[str, object], Constant | None]:
    """A Constant that says its numbers or texts as attributes."""
    ((name, value),) = values.items()
    dtypes = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if name in dtypes:
        try:
            return {}, Constant.of(np.array(value, dtypes[name]))
        except (TypeError, ValueError, OverflowError):  # the file says that the attribute is of another kind
            return values, None
    if name in ("value_string", "value_strings") and _is_text(value):
        return {}, Constant.of(np.array(value, dtype=object))
    if name == "sparse_value" and isinstance(value, np.ndarray):
        try:
            return {}, Constant.of(value)
        except KeyError:
            return {"value": value}, None
    return values, None


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(one, str) for one in value))
