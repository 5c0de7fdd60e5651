"""Edits of nodes under construction: copies from a finished graph, removal of unused nodes.

Gradient rules also compute adjoints that no result needs; their nodes are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loopscope.builder.frame import GraphFrame
from loopscope.builder.tensor import Tensor
from loopscope.checks.order import order
from loopscope.errors import BuildError
from loopscope.ir.model import Edge, LayerId, ModelGraph, Node, OutputRef
from loopscope.ir.replace import replace
from loopscope.ops.declare import Known

Knowledge = Callable[[LayerId, int], Known]
"""Function that returns the knowledge about an output of a node."""


def adopt(
    frame: GraphFrame,
    finished: ModelGraph,
    known: Knowledge,
    bound: Mapping[LayerId, Tensor] | None = None,
) -> dict[OutputRef, Tensor]:
    """Copy every node except the Results, and map each tensor of the finished graph to its copy.

    ``bound``: replacements of Parameters; Parameters without a replacement are copied.
    """
    ordered = order(finished)
    if ordered.cycles:
        raise BuildError(
            f"{frame.title} has nodes that wait for each other: "
            f"{_node_names(finished, ordered.cycles[0])}"
        )
    copies: dict[OutputRef, Tensor] = {}
    for layer in _parameters_first(finished, ordered.layers):
        node = finished.by_id[layer]
        if bound is not None and layer in bound:
            copies[OutputRef(layer, 0)] = bound[layer]
        elif node.type != "Result":
            _copy(frame, finished, node, known, copies)
    return copies


def _parameters_first(finished: ModelGraph, layers: tuple[LayerId, ...]) -> list[LayerId]:
    parameters = [node.id for node in finished.parameters]
    parameter_ids = set(parameters)
    return [*parameters, *(layer for layer in layers if layer not in parameter_ids)]


def _copy(
    frame: GraphFrame,
    finished: ModelGraph,
    node: Node,
    known: Knowledge,
    copies: dict[OutputRef, Tensor],
) -> None:
    layer = LayerId(len(frame.nodes))
    name = frame.names.unique(node.name)
    frame.nodes.append(
        replace(
            node,
            id=layer,
            name=name,
            bodies=tuple(replace(body, graph=_deep_copy(body.graph)) for body in node.bodies),
        )
    )
    for port, source in zip(node.inputs, finished.sources[node.id], strict=True):
        if source is not None:
            fed = copies[source]
            frame.edges.append(
                Edge(
                    fed.source.layer,
                    frame.nodes[fed.source.layer].outputs[fed.source.output].id,
                    layer,
                    port.id,
                )
            )
    handles = tuple(
        Tensor(
            frame,
            OutputRef(layer, output),
            name if len(node.outputs) == 1 else f"{name}:{output}",
            known(node.id, output),
        )
        for output in range(len(node.outputs))
    )
    frame.tensors.append(handles)
    copies |= {OutputRef(node.id, output): handle for output, handle in enumerate(handles)}


def _deep_copy(graph: ModelGraph) -> ModelGraph:
    """Return a deep copy of a graph and all graphs inside, because a node of a model belongs to one
    graph.
    """
    waiting = [graph]
    for subgraph in waiting:
        waiting.extend(body.graph for node in subgraph.nodes for body in node.bodies)
    copies: dict[int, ModelGraph] = {}
    for subgraph in reversed(waiting):
        copies[id(subgraph)] = replace(
            subgraph, nodes=tuple(_with_bodies(node, copies) for node in subgraph.nodes)
        )
    return copies[id(graph)]


def _with_bodies(node: Node, copies: Mapping[int, ModelGraph]) -> Node:
    return (
        replace(
            node, bodies=tuple(replace(body, graph=copies[id(body.graph)]) for body in node.bodies)
        )
        if node.bodies
        else node
    )


def _node_names(finished: ModelGraph, layers: tuple[LayerId, ...]) -> str:
    return ", ".join(repr(finished.by_id[layer].name) for layer in layers[:4])


@dataclass(frozen=True, slots=True)
class PrunedFrame:
    """A frame after removal of unused nodes."""

    numbers: dict[LayerId, LayerId]
    frame: GraphFrame

    def holds(self, tensor: Tensor) -> bool:
        """Return True if the node of a tensor was not removed."""
        return tensor.source.layer in self.numbers

    def moved(self, tensor: Tensor) -> Tensor:
        """Return the handle of a remaining tensor with the new id of its node."""
        return self.frame.tensors[self.numbers[tensor.source.layer]][tensor.source.output]


def drop_unused(
    frame: GraphFrame,
    first: int,
    required: Sequence[Tensor],
    carried: Sequence[tuple[Tensor, Tensor]] = (),
) -> PrunedFrame:
    """Remove the nodes from id ``first`` on that none of the tensors needs, and renumber the rest.

    ``carried``: carried Parameters, each with the next value that it needs.
    """
    needed = _needed(frame, first, required, carried)
    numbers = {LayerId(layer): LayerId(layer) for layer in range(first)}
    for layer in map(LayerId, range(first, len(frame.nodes))):
        if layer in needed:
            numbers[layer] = LayerId(len(numbers))
    frame.nodes = [
        replace(frame.nodes[layer], id=numbers[layer]) if layer >= first else frame.nodes[layer]
        for layer in numbers
    ]
    frame.tensors = [
        tuple(_moved(frame, handle, numbers) for handle in frame.tensors[layer])
        for layer in numbers
    ]
    frame.edges = [
        edge._replace(from_layer=numbers[edge.from_layer], to_layer=numbers[edge.to_layer])
        for edge in frame.edges
        if edge.to_layer in numbers
    ]
    pruned = PrunedFrame(numbers, frame)
    frame.captures = {
        key: (outer, pruned.moved(inner))
        for key, (outer, inner) in frame.captures.items()
        if pruned.holds(inner)
    }
    return pruned


def _needed(
    frame: GraphFrame,
    first: int,
    required: Sequence[Tensor],
    carried: Sequence[tuple[Tensor, Tensor]],
) -> set[LayerId]:
    """Return the nodes from ``first`` on that the tensors need."""
    fed: dict[LayerId, list[LayerId]] = {}
    for edge in frame.edges:
        fed.setdefault(edge.to_layer, []).append(edge.from_layer)
    for parameter, after in carried:
        fed.setdefault(parameter.source.layer, []).append(after.source.layer)
    waiting = [tensor.source.layer for tensor in required]
    needed: set[LayerId] = set()
    while waiting:
        layer = waiting.pop()
        if layer >= first and layer not in needed:
            needed.add(layer)
            waiting += fed.get(layer, [])
    return needed


def _moved(frame: GraphFrame, tensor: Tensor, numbers: dict[LayerId, LayerId]) -> Tensor:
    number = numbers[tensor.source.layer]
    if number == tensor.source.layer:
        return tensor
    return Tensor(frame, OutputRef(number, tensor.source.output), tensor.name, tensor.known)
