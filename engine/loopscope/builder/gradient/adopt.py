"""The nodes of a finished graph in one that is being built."""

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
"""What is known of an output of a node."""


def adopt(
    frame: GraphFrame,
    finished: ModelGraph,
    known: Knowledge,
    bound: Mapping[LayerId, Tensor] | None = None,
) -> dict[OutputRef, Tensor]:
    """Copies every node but the Results; gives the tensor that each tensor of the finished graph
    has become.

    ``bound``: what stands in the place of Parameters; the others are copied.
    """
    ordered = order(finished)
    if ordered.cycles:
        raise BuildError(
            f"{frame.title} has nodes that wait for each other, {_named(finished, ordered.cycles[0])}: nothing can run there"
        )
    became: dict[OutputRef, Tensor] = {}
    for layer in _parameters_first(finished, ordered.layers):
        node = finished.by_id[layer]
        if bound is not None and layer in bound:
            became[OutputRef(layer, 0)] = bound[layer]
        elif node.type != "Result":
            _copy(frame, finished, node, known, became)
    return became


def _parameters_first(finished: ModelGraph, layers: tuple[LayerId, ...]) -> list[LayerId]:
    parameters = [node.id for node in finished.parameters]
    there = set(parameters)
    return [*parameters, *(layer for layer in layers if layer not in there)]


def _copy(
    frame: GraphFrame,
    finished: ModelGraph,
    node: Node,
    known: Knowledge,
    became: dict[OutputRef, Tensor],
) -> None:
    layer = LayerId(len(frame.nodes))
    name = frame.names.unique(node.name)
    frame.nodes.append(
        replace(
            node,
            id=layer,
            name=name,
            bodies=tuple(replace(body, graph=_apart(body.graph)) for body in node.bodies),
        )
    )
    for port, source in zip(node.inputs, finished.sources[node.id], strict=True):
        if source is not None:
            fed = became[source]
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
    became |= {OutputRef(node.id, output): handle for output, handle in enumerate(handles)}


def _apart(graph: ModelGraph) -> ModelGraph:
    """The same graph as an object of its own, with all graphs inside: a node of a model stands
    at one place.
    """
    waiting = [graph]
    for one in waiting:
        waiting.extend(body.graph for node in one.nodes for body in node.bodies)
    made: dict[int, ModelGraph] = {}
    for one in reversed(waiting):
        made[id(one)] = replace(one, nodes=tuple(_with_bodies(node, made) for node in one.nodes))
    return made[id(graph)]


def _with_bodies(node: Node, made: Mapping[int, ModelGraph]) -> Node:
    return (
        replace(
            node, bodies=tuple(replace(body, graph=made[id(body.graph)]) for body in node.bodies)
        )
        if node.bodies
        else node
    )


def _named(finished: ModelGraph, layers: tuple[LayerId, ...]) -> str:
    return ", ".join(repr(finished.by_id[layer].name) for layer in layers[:4])
