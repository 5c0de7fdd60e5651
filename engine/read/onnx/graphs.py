"""Scopes to graphs: nodes with ports and edges, initializers as Const, captured values as Parameters that are bound once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
from onnx import AttributeProto, GraphProto

from engine.errors import ReadError, Where, shorten
from engine.ir.constant import Constant
from engine.ir.model import NO_ATTRIBUTES, Body, BodyName, Edge, Graph, InputMap, LayerId, Node, Port
from engine.ir.replace import replace
from engine.ir.shape import PartialShape
from engine.read.onnx.attributes import attributes
from engine.read.onnx.body_bindings import Bound, bound
from engine.read.onnx.scopes import Call, Plain, Scope
from engine.read.onnx.tensors import ExternalData, constant, dense
from engine.read.onnx.types import UNKNOWN_TYPE, ValueType

Output = tuple[LayerId, int]
_EDGE: Callable[[tuple[LayerId, int, LayerId, int]], Edge] = partial(tuple.__new__, Edge)
"""``Edge`` itself calls a function of Python's for this."""
_TENSOR = int(AttributeProto.TENSOR)


@dataclass(slots=True, eq=False)
class Builder:
    """Builds the graph of one scope; the graphs inside it are built already."""

    scope: Scope
    external: ExternalData
    file: str
    built: Mapping[int, Built]
    """The graphs built so far, by ``id`` of their scope."""
    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[tuple[LayerId, int, LayerId, int]] = field(default_factory=list[tuple[LayerId, int, LayerId, int]])
    made: dict[str, Output] = field(default_factory=dict[str, Output])
    """What makes each name, as far as the nodes have come."""
    ports: defaultdict[int, dict[str, Port]] = field(default_factory=lambda: defaultdict(dict))
    """By number and name: one and the same for all nodes that name the value alike."""
    types: Mapping[str, ValueType] = field(default_factory=dict[str, ValueType])
    """Of the names of the scope, and of those that it captures."""
    first: int = 0
    """The number of layers before the nodes."""
    later: dict[str, Output] | None = None
    """The nodes that produce each name, computed on first use."""

    def build(self) -> Built:
        """``ReadError`` when a tensor or an attribute cannot be read."""
        scope = self.scope
        self.types = {**scope.types, **{name: scope.type_of(name) for name in scope.captures}} if scope.captures else scope.types
        parameters = [self._parameter(name) for name in scope.inputs]
        captured = {name: self._parameter(name) for name in scope.captures}
        self._initializers()
        self.first = len(self.nodes)
        self._nodes()
        results = [self._result(name) for name in scope.outputs]
        return Built(Graph(tuple(self.nodes), tuple(map(_EDGE, self.edges)), scope.name), parameters, captured, results)

    def _new(self) -> LayerId:
        return LayerId(len(self.nodes))

    def _parameter(self, name: str) -> LayerId:
        layer = self._new()
        self.nodes.append(Node(layer, name, "Parameter", outputs=(self._end_of_graph(name),)))
        self.made[name] = layer, 0
        return layer

    def _initializers(self) -> None:
        graph = self.scope.proto
        if not isinstance(graph, GraphProto):
            return
        held = self.scope.held.initializers
        for number, tensor in enumerate(graph.initializer[:]):
            name = tensor.name
            try:
                data = constant(tensor, self.external, held.get(number))
            except ValueError as error:
                raise self._unreadable(name, error) from error
            self._constant(name, data)
        for sparse in graph.sparse_initializer:
            try:
                data = dense(sparse, self.external)
            except ValueError as error:
                raise self._unreadable(sparse.values.name, error) from error
            self._constant(sparse.values.name, data)

    def _unreadable(self, initializer: str, error: ValueError) -> ReadError:
        return ReadError(f"initializer {shorten(initializer, 60)!r}: {error}", Where(self.file))

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

    def _nodes(self) -> None:
        """In one function, and with names of its own for what it uses: reading a model takes most of its time here."""
        nodes, edges, made, ports, port, external = self.nodes, self.edges, self.made, self.ports, self._port, self.external
        firsts = ports[0]
        data: Constant | None
        bodies: tuple[Body, ...]
        for number, call in enumerate(self.scope.calls):
            layer, name, names = LayerId(len(nodes)), call.name or f"{call.type}_{number}", call.outputs
            values, data, bodies = NO_ATTRIBUTES, None, ()
            try:
                if call.type == "Constant":
                    values, data = self._attributes(call, number)
                elif call.given:
                    values = attributes(call.given, external)
                if isinstance(call, Call):
                    bodies = tuple(self._body(call, body, inner) for body, inner in call.inner)
            except ValueError as error:
                raise ReadError(f"node {shorten(name, 60)!r}: {error}", Where(self.file)) from error
            inputs = []
            # What flows into a constant flows nowhere.
            for index, one in enumerate(call.inputs if data is None else ()):
                source = made.get(one) or (self._made_later(one) if one else None)
                if source is not None:
                    edges.append(source + (layer, index))  # noqa: RUF005  # takes half the time of the other way
                inputs.append(ports[index].get(one) or port(one, index))
            if data is not None:
                outputs = _of_constant(data, names)
            elif len(names) == 1:
                outputs = (firsts.get(names[0]) or port(names[0], 0),)
            else:
                outputs = tuple([ports[index].get(one) or port(one, index) for index, one in enumerate(names)])
            for index, one in enumerate(names):
                if one:
                    made[one] = layer, index
            nodes.append(Node(layer, name, call.type, call.opset, values, tuple(inputs), outputs, bodies, data, NO_ATTRIBUTES))

    def _port(self, name: str, index: int) -> Port:
        type = self.types.get(name, UNKNOWN_TYPE)
        port = Port(index, type.element_type, type.shape, (name,) if name else (), NO_ATTRIBUTES, type.form)
        self.ports[index][name] = port
        return port

    def _end_of_graph(self, name: str) -> Port:
        """Of a Parameter or a Result, which is there also where its name is empty."""
        port = self._port(name, 0)
        return port if name else replace(port, names=("",))

    def _made_later(self, name: str) -> Output | None:
        """What makes a name, in a graph that is not in order: the first node that does."""
        if self.later is None:
            self.later = {}
            for number, call in enumerate(self.scope.calls, self.first):
                for index, one in enumerate(call.outputs):
                    self.later.setdefault(one, (LayerId(number), index))
        return self.later.get(name)

    def _attributes(self, call: Plain | Call, number: int) -> tuple[Mapping[str, object], Constant | None]:
        """Of a node that is called Constant the attributes, or the data."""
        if not call.opset.startswith("ai.onnx ") or len(call.given) != 1:
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
        self.nodes.append(Node(layer, name, "Result", inputs=(self._end_of_graph(name),)))
        source = self.made.get(name)
        if source is not None:
            self.edges.append((*source, layer, 0))
        return layer


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
