"""The condition of a while loop before its first iteration, where a converter left it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from loopscope.checks.order import order
from loopscope.checks.subject import CheckedRegion
from loopscope.errors import BuildError, shorten
from loopscope.ir.constant import Constant
from loopscope.ir.model import Edge, LayerId, Model, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.transform.extract import constant_node
from loopscope.transform.graph_edits import with_graph, without_layers

_CONDITION_INPUT = 1
"""Number of the input of a Loop that decides whether the first iteration runs."""


def with_first_condition(model: Model, region: CheckedRegion) -> Model:
    """Return the model with a Loop's condition also computed from the initial values.

    The Loop then runs 0 times if the condition is false at the start, as a while loop does.
    ``BuildError`` if the condition needs a value that exists only inside the loop.
    """
    copy = _ConditionCopy(model, region)
    condition = copy.build()
    outer, loop = region.place.graph, region.node
    port = loop.inputs[_CONDITION_INPUT].id
    edges = [edge for edge in outer.edges if (edge.to_layer, edge.to_port) != (loop.id, port)]
    edges += [*copy.edges, Edge(*condition, loop.id, port)]
    position = outer.nodes.index(loop)
    nodes = (*outer.nodes[:position], *copy.nodes, *outer.nodes[position:])
    graph = replace(outer, nodes=nodes, edges=tuple(edges))
    replaced = outer.sources[loop.id][_CONDITION_INPUT]
    if replaced is not None and replaced not in graph.consumers:
        graph = without_layers(graph, {replaced.layer})
    return with_graph(model, region.place.address, graph)


@dataclass
class _ConditionCopy:
    """The operations of a loop's condition, copied to the graph around the loop."""

    model: Model
    region: CheckedRegion
    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])

    def __post_init__(self) -> None:
        outer = self.region.place.graph
        self._next = max(outer.by_id) + 1
        self._names = {node.name for node in outer.nodes}
        self._ends: dict[OutputRef, tuple[LayerId, int]] = {}
        """Layer and port of the outer graph for each tensor of the body that is known there."""

    def build(self) -> tuple[LayerId, int]:
        """Copy the operations; return the layer and the port of the condition."""
        graph = self.region.body.graph
        condition = next(
            entry.internal
            for entry in self.region.body.outputs
            if entry.purpose == "execution_condition"
        )
        initial = self._initial_ends()
        self._ends |= {OutputRef(layer, 0): end for layer, end in initial.items()}
        self._ends |= self._next_values(condition, initial)
        (source,) = graph.sources[condition]
        assert source is not None
        for layer in self._needed(source):
            self._copy(graph.by_id[layer])
        return self._ends[source]

    def _initial_ends(self) -> dict[LayerId, tuple[LayerId, int]]:
        """Return the outer tensor that each Parameter receives in the first iteration."""
        outer, loop = self.region.place.graph, self.region.node
        ends: dict[LayerId, tuple[LayerId, int]] = {}
        for entry in self.region.body.inputs:
            sources = outer.sources[loop.id]
            source = sources[entry.external] if 0 <= entry.external < len(sources) else None
            if entry.is_iteration_number:
                ends[entry.internal] = self._zero(self.region.body.graph.by_id[entry.internal])
            elif source is not None and entry.axis is None:
                ends[entry.internal] = source.layer, outer.tensor(source).id
        return ends

    def _zero(self, parameter: Node) -> tuple[LayerId, int]:
        element_type = parameter.outputs[0].element_type
        dtype = np.int64 if element_type is None else element_type.dtype
        name = self._copy_name(parameter.name)
        is_onnx = self.model.dialect == "onnx"
        port = Port(0, names=(name,) if is_onnx else ())
        node = constant_node(
            self._fresh(), name, port, Constant.of(np.zeros((), dtype)), is_onnx=is_onnx
        )
        self.nodes.append(node)
        return node.id, 0

    def _next_values(
        self, condition: LayerId, initial: Mapping[LayerId, tuple[LayerId, int]]
    ) -> dict[OutputRef, tuple[LayerId, int]]:
        """Return the initial value for each tensor that the body carries on.

        The condition asks for the carried values after an iteration; before the first one these
        are the initial values.
        """
        graph = self.region.body.graph
        (decided,) = graph.sources[condition]
        ends: dict[OutputRef, tuple[LayerId, int]] = {}
        for edge in self.region.body.back_edges:
            (source,) = graph.sources[edge.from_layer]
            if source is None or source == decided or edge.to_layer not in initial:
                continue
            node = graph.by_id[source.layer]
            if node.type == "Parameter" or node.constant is not None:
                continue
            if ends.setdefault(source, initial[edge.to_layer]) != initial[edge.to_layer]:
                raise BuildError(
                    f"the condition of {shorten(self.region.node.name)!r} cannot be computed "
                    f"before the loop: {shorten(node.name)!r} is carried on as two values that "
                    "begin differently"
                )
        return ends

    def _needed(self, source: OutputRef) -> list[LayerId]:
        """Return the operations that the condition needs, in document order."""
        graph = self.region.body.graph
        needed: set[LayerId] = set()
        waiting = [source]
        while waiting:
            tensor = waiting.pop()
            if tensor in self._ends or tensor.layer in needed:
                continue
            node = graph.by_id[tensor.layer]
            if node.type == "Parameter":
                raise BuildError(
                    f"the condition of {shorten(self.region.node.name)!r} cannot be computed "
                    f"before the loop: it reads {shorten(node.name)!r}, which exists only inside"
                )
            needed.add(tensor.layer)
            waiting += [each for each in graph.sources[tensor.layer] if each is not None]
        return [layer for layer in order(graph).layers if layer in needed]

    def _copy(self, node: Node) -> None:
        layer, graph = self._fresh(), self.region.body.graph
        is_onnx = self.model.dialect == "onnx"
        outputs = tuple(
            replace(port, names=tuple(map(self._copy_name, port.names)) if is_onnx else ())
            for port in node.outputs
        )
        name = self._copy_name(node.name)
        self.nodes.append(replace(node, id=layer, name=name, outputs=outputs))
        for index, source in enumerate(graph.sources[node.id]):
            if source is not None:
                self.edges.append(Edge(*self._ends[source], layer, node.inputs[index].id))
        for number, port in enumerate(node.outputs):
            self._ends.setdefault(OutputRef(node.id, number), (layer, port.id))

    def _fresh(self) -> LayerId:
        layer = LayerId(self._next)
        self._next += 1
        return layer

    def _copy_name(self, name: str) -> str:
        """Return an unused name for the copy of a node or tensor of the body."""
        name = f"{self.region.node.name}/first/{name}"
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name
