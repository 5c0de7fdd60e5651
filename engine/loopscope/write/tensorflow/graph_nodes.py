"""One graph of a model as nodes of TensorFlow's: the outermost one, or a body in the function
that it becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from loopscope.errors import WriteError, shorten
from loopscope.ir.model import LayerId, ModelGraph, Node, OutputRef
from loopscope.write.tensorflow.asked_node import NodeRequest
from loopscope.write.tensorflow.nodes import GraphDefNodes, GraphDefTensor, of_port
from loopscope.write.tensorflow.translations import RULES

Region = Callable[[GraphDefNodes, Node, Sequence[GraphDefTensor], str], Sequence[GraphDefTensor]]
"""Writes a node with bodies: its nodes, itself, its inputs, its address; gives its outputs."""


def write_graph(
    graph: ModelGraph,
    given: Mapping[LayerId, GraphDefTensor],
    nodes: GraphDefNodes,
    address: str,
    region: Region,
) -> Mapping[LayerId, GraphDefTensor]:
    """What each Result gets; ``given``: a tensor for each Parameter. ``WriteError`` names the
    node that TensorFlow has nothing for.
    """
    made: dict[OutputRef, GraphDefTensor] = {
        OutputRef(layer, 0): tensor for layer, tensor in given.items()
    }
    results: dict[LayerId, GraphDefTensor] = {}
    for node in _in_order(graph):
        sources = graph.sources[node.id]
        place = f"{address}/{node.name}"
        inputs = _inputs(sources, made, place)
        if node.type == "Result":
            results[node.id] = inputs[0]
        elif node.id not in given:
            outputs = _outputs(graph, node, inputs, nodes, place, region)
            for at, (tensor, port) in enumerate(zip(outputs, node.outputs, strict=True)):
                made[OutputRef(node.id, at)] = of_port(tensor, port)
    return results


def _outputs(
    graph: ModelGraph,
    node: Node,
    inputs: Sequence[GraphDefTensor],
    nodes: GraphDefNodes,
    place: str,
    region: Region,
) -> Sequence[GraphDefTensor]:
    try:
        if node.constant is not None:
            return [nodes.constant(node.constant.array(), node.name)]
        if node.bodies:
            return _as_many(region(nodes, node, inputs, place), node)
        if node.type not in RULES:
            raise WriteError(f"there is no rule for {shorten(node.type, 60)}")
        constants = [_constant(graph, source) for source in graph.sources[node.id]]
        return _as_many(RULES[node.type](NodeRequest(nodes, node, inputs, constants)), node)
    except WriteError as error:
        if error.args[0].startswith("main/"):
            raise
        raise WriteError(
            f"{shorten(place, 200)} cannot be written as a TensorFlow graph: {error}"
        ) from None


def _as_many(outputs: Sequence[GraphDefTensor], node: Node) -> Sequence[GraphDefTensor]:
    """The outputs, as many as a node declares."""
    if len(outputs) != len(node.outputs):
        raise WriteError(
            f"it declares {len(node.outputs)} outputs, expected {len(outputs)}: see what the checks say"
        )
    return outputs


def _inputs(
    sources: Sequence[OutputRef | None], made: Mapping[OutputRef, GraphDefTensor], place: str
) -> list[GraphDefTensor]:
    found = [None if source is None else made.get(source) for source in sources]
    while found and found[-1] is None:
        found.pop()
    inputs = [one for one in found if one is not None]
    if len(inputs) < len(found):
        raise WriteError(
            f"{shorten(place, 200)} cannot be written as a TensorFlow graph: it leaves an input out"
        )
    return inputs


def _constant(graph: ModelGraph, source: OutputRef | None) -> np.ndarray | None:
    node = graph.by_id[source.layer] if source else None
    return node.constant.array() if node and node.constant else None


def _in_order(graph: ModelGraph) -> Iterator[Node]:
    """Each node after those that feed it."""
    waiting = {
        node.id: {source.layer for source in graph.sources[node.id] if source}
        for node in graph.nodes
    }
    readers: dict[LayerId, list[LayerId]] = {}
    for layer, before in waiting.items():
        for one in before:
            readers.setdefault(one, []).append(layer)
    ready = [node.id for node in reversed(graph.nodes) if not waiting[node.id]]
    count = 0
    while ready:
        layer = ready.pop()
        count += 1
        yield graph.by_id[layer]
        for reader in readers.get(layer, ()):
            waiting[reader].discard(layer)
            if not waiting[reader]:
                ready.append(reader)
    if count < len(graph.nodes):
        raise WriteError("the graph has a circle of edges: a TensorFlow graph has none")


def declared(node: Node, text: str) -> GraphDefTensor:
    """A Parameter's tensor, as it is referred to; ``WriteError`` when its element type is not
    known.
    """
    port = node.outputs[0]
    if port.element_type is None:
        raise WriteError(f"the Parameter {shorten(node.name)!r} does not say its element type")
    return replace(GraphDefTensor(text, port.element_type), shape=port.shape)
