"""Repairs of faults that silently change the results of a model in a runtime.

One inserts Identities between a value and the carried value that copies it, which OpenVINO needs.
The other adds the condition of a while loop before its first iteration, where a converter left it
out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from loopscope.checks.check import check
from loopscope.checks.order import order
from loopscope.checks.rule import CheckedRegion, Subject
from loopscope.checks.rules.runtimes import overwritten_parameters
from loopscope.errors import BuildError, shorten
from loopscope.ir.constant import Constant
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE
from loopscope.transform.extract import constant_node
from loopscope.transform.graph_edits import with_graph, without_layers

OVERWRITTEN, DO_WHILE = "LS906", "LS931"
REPAIRABLE = (OVERWRITTEN, DO_WHILE)
"""Codes of the faults that can be repaired."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that repairs a fault."""

    code: str
    address: str
    """Static address of the loop."""
    change: str
    """The change in one sentence."""
    reason: str
    """Effect of the fault in one sentence."""
    refused: str = ""
    """Reason why the fault is not repaired; empty if it is."""


def repair(model: Model, codes: Collection[str] = REPAIRABLE) -> tuple[Model, tuple[Repair, ...]]:
    """Return the model without the faults of these codes, and the changes.

    LS906: an Identity between a value and the carried value that copies it; the results by the
    specification do not change. LS931: the condition of a loop is computed before the loop too, so
    that the loop may run 0 times, as a while loop does.
    """
    repairs: list[Repair] = []
    repaired = model
    if OVERWRITTEN in codes and model.dialect == "openvino":
        for region in overwriting_regions(model):
            repaired = with_identities(repaired, _same_region(repaired, region))
            repairs.append(_identity_repair(region))
    if DO_WHILE in codes:
        for address in _do_while_loops(model):
            region = _loop_at(repaired, address)
            repair, repaired = _condition_repair(repaired, region, address)
            repairs.append(repair)
    changed = any(not repair.refused for repair in repairs)
    return (replace(repaired, file="") if changed else model), tuple(repairs)


def _same_region(model: Model, region: CheckedRegion) -> CheckedRegion:
    return _loop_at(model, region.body_place.address.rpartition("/")[0])


def _loop_at(model: Model, address: str) -> CheckedRegion:
    return next(
        region
        for region in Subject(model, CATALOGUE).iterating
        if region.body_place.address.rpartition("/")[0] == address
    )


def _do_while_loops(model: Model) -> list[str]:
    return [
        diagnostic.where.address
        for diagnostic in check(model, CATALOGUE).diagnostics
        if diagnostic.code == DO_WHILE
    ]


def _identity_repair(region: CheckedRegion) -> Repair:
    nodes = region.body.graph.by_id
    names = [
        f"{nodes[source].name!r} and {nodes[layer].name!r}"
        for layer, source in overwritten_parameters(region).items()
    ]
    return Repair(
        OVERWRITTEN,
        region.body_place.address.rpartition("/")[0],
        f"An Identity is put between {', '.join(names)}.",
        "OpenVINO's CPU overwrites the first value before it copies it to the second.",
    )


def _condition_repair(model: Model, region: CheckedRegion, address: str) -> tuple[Repair, Model]:
    change = "The condition is also computed from the initial values, before the loop."
    reason = (
        "The loop runs at least once; a while loop whose condition is false at the start does not."
    )
    try:
        repaired = with_first_condition(model, region)
    except BuildError as error:
        return Repair(DO_WHILE, address, change, reason, str(error)), model
    return Repair(DO_WHILE, address, change, reason), repaired


def overwriting_regions(model: Model) -> list[CheckedRegion]:
    """Return the loops whose carried values OpenVINO's CPU overwrites before it copies them."""
    return [
        region for region in Subject(model, CATALOGUE).iterating if overwritten_parameters(region)
    ]


def with_identities(model: Model, region: CheckedRegion) -> Model:
    """Return the model with an Identity before each back edge that OpenVINO's CPU copies late.

    The values do not change: an Identity is a computation, whose result is not overwritten.
    """
    graph = region.body.graph
    results = {edge.to_layer: edge.from_layer for edge in region.body.back_edges}
    for parameter in overwritten_parameters(region):
        graph = _with_identity(graph, results[parameter])
    return with_graph(model, region.body_place.address, graph)


def _with_identity(graph: ModelGraph, result: LayerId) -> ModelGraph:
    source = graph.sources[result][0]
    assert source is not None
    node, port = graph.by_id[result], graph.tensor(source)
    layer = LayerId(max(graph.by_id) + 1)
    names = {each.name for each in graph.nodes}
    name = f"{node.name}/identity"
    while name in names:
        name += "_"
    identity = Node(
        layer,
        name,
        "Identity",
        "opset16",
        inputs=(replace(port, id=0, names=()),),
        outputs=(Port(1, port.element_type, port.shape),),
    )
    edges = [edge for edge in graph.edges if edge.to_layer != result]
    edges += [
        Edge(source.layer, port.id, layer, 0),
        Edge(layer, 1, result, node.inputs[0].id),
    ]
    position = graph.nodes.index(node)
    nodes = (*graph.nodes[:position], identity, *graph.nodes[position:])
    return replace(graph, nodes=nodes, edges=tuple(edges))


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
