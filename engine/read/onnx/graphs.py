"""Scopes to graphs: nodes with ports and edges, initializers as Const, captured values as Parameters that are bound once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import AttributeProto, GraphProto

from engine.errors import ReadError, Where, shorten
from engine.ir.constant import Constant
from engine.ir.model import Body, BodyName, Edge, Graph, InputMap, LayerId, Node, Port
from engine.ir.shape import PartialShape
from engine.read.onnx.attributes import attributes
from engine.read.onnx.port_maps import bound
from engine.read.onnx.scopes import Call, Scope
from engine.read.onnx.tensors import ExternalData, constant, dense
from engine.read.onnx.types import UNKNOWN_TYPE, ValueType

Output = tuple[LayerId, int]


@dataclass(slots=True, eq=False)
class Builder:
    """Builds the graph of one scope; the graphs inside it are built already."""

    scope: Scope
    external: ExternalData
    file: str
    built: Mapping[int, Built]
    """What has been built, by ``id`` of its scope."""
    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])
    made: dict[str, Output] = field(default_factory=dict[str, Output])
    """What makes each name, as far as the nodes have come."""

    def build(self) -> Built:
        """``ReadError`` when a tensor or an attribute cannot be read."""
        scope = self.scope
        parameters = [self._parameter(name, scope.types.get(name, UNKNOWN_TYPE)) for name in scope.inputs]
        captured = {name: self._parameter(name, scope.type_of(name)) for name in scope.captures}
        self._initializers()
        later = self._later()
        for number, call in enumerate(scope.calls):
            self._node(number, call, later)
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
        for tensor in graph.initializer:
            with self._place(f"initializer {shorten(tensor.name, 60)!r}"):
                self._constant(tensor.name, constant(tensor, self.external))
        for sparse in graph.sparse_initializer:
            with self._place(f"initializer {shorten(sparse.values.name, 60)!r}"):
                self._constant(sparse.values.name, dense(sparse, self.external))

    def _constant(self, name: str, data: Constant | np.ndarray) -> None:
        layer = self._new()
        self.made[name] = layer, 0
        if isinstance(data, Constant):
            port = Port(0, data.element_type, PartialShape.of(data.shape), (name,))
            self.nodes.append(Node(layer, name, "Const", outputs=(port,), constant=data))
        else:
            # Types that OpenVINO lacks: the operation Constant gives the array.
            port = Port(0, None, PartialShape.of(data.shape), (name,))
            self.nodes.append(Node(layer, name, "Constant", "ai.onnx 13", {"value": data}, outputs=(port,)))

    def _later(self) -> dict[str, Output]:
        """What nodes make each name, for graphs that are not in order: the first node that does."""
        first = len(self.nodes)
        later: dict[str, Output] = {}
        for number, call in enumerate(self.scope.calls):
            for index, name in enumerate(call.outputs):
                if name:
                    later.setdefault(name, (LayerId(first + number), index))
        return later

    def _node(self, number: int, call: Call, later: Mapping[str, Output]) -> None:
        layer, scope = self._new(), self.scope
        name = call.proto.name or f"{call.proto.op_type}_{number}"
        with self._place(f"node {shorten(name, 60)!r}"):
            values, data = self._attributes(call)
            bodies = tuple(self._body(call, body, inner) for body, inner in call.inner)
        # What flows into a constant flows nowhere.
        names = [] if data is not None else call.inputs
        self._connect(layer, names, later)
        inputs = tuple(scope.type_of(one).port(index, (one,) if one else ()) for index, one in enumerate(names))
        outputs = tuple(scope.types.get(one, UNKNOWN_TYPE).port(index, (one,) if one else ()) for index, one in enumerate(call.outputs))
        if data is not None and outputs:
            outputs = (Port(0, data.element_type, PartialShape.of(data.shape), outputs[0].names),)
        self.nodes.append(Node(layer, name, call.proto.op_type, call.opset, values, inputs, outputs, bodies, data))
        self.made.update((one, (layer, index)) for index, one in enumerate(call.outputs) if one)

    def _connect(self, layer: LayerId, names: Sequence[str], later: Mapping[str, Output]) -> None:
        for index, name in enumerate(names):
            source = self.made.get(name) or later.get(name) if name else None
            if source is not None:
                self.edges.append(Edge(*source, layer, index))

    def _attributes(self, call: Call) -> tuple[Mapping[str, object], Constant | None]:
        """The attributes of a node; of a Constant its data."""
        values = attributes(call.proto, self.scope.attributes, self.external)
        if call.proto.op_type != "Constant" or not call.opset.startswith("ai.onnx ") or len(values) != 1:
            return values, None
        held = call.given.get("value")
        if held is not None and held.type == AttributeProto.TENSOR:
            data = constant(held.t, self.external)
            return ({}, data) if isinstance(data, Constant) else (values, None)
        return _written_out(values)

    def _body(self, call: Call, name: BodyName, inner: Scope) -> Body:
        built = self.built[id(inner)]
        kind = "" if call.is_function else call.proto.op_type
        port_map = bound(kind, call.given, call.captures_from, built.parameters, built.results)
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

    def _place(self, what: str) -> _Place:
        return _Place(what, self.file)


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
        return {}, Constant.of(np.array(value, dtypes[name]))
    if name in ("value_string", "value_strings"):
        return {}, Constant.of(np.array(value, dtype=object))
    if name == "sparse_value" and isinstance(value, np.ndarray):
        try:
            return {}, Constant.of(value)
        except KeyError:
            return {"value": value}, None
    return values, None


class _Place:
    """Within it, a ``ValueError`` becomes a ``ReadError`` that says where."""

    def __init__(self, what: str, file: str) -> None:
        self._what, self._file = what, file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError):
            raise ReadError(f"{self._what}: {error}", Where(self._file)) from error
