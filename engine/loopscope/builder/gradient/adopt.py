"""Copying the nodes of a finished graph into a graph under construction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
