"""Conversion of one graph of a model (the outermost graph or a body) to TensorFlow nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from loopscope.errors import WriteError, shorten
from loopscope.ir.model import LayerId, ModelGraph, Node, OutputRef
from loopscope.write.tensorflow.nodes import GraphDefNodes, GraphDefTensor, NodeRequest, with_port
from loopscope.write.tensorflow.translations import RULES

Region = Callable[[GraphDefNodes, Node, Sequence[GraphDefTensor], str], Sequence[GraphDefTensor]]
"""Function that writes a node with bodies: (nodes, node, inputs, address) -> outputs."""


def write_graph(
    graph: ModelGraph,
    parameters: Mapping[LayerId, GraphDefTensor],
    nodes: GraphDefNodes,
    address: str,
    region: Region,
) -> Mapping[LayerId, GraphDefTensor]:
    """Write the nodes of a graph, and return the tensor that feeds each Result.

    ``parameters`` has a tensor for each Parameter. ``WriteError`` names a node without a
    translation.
    """
    tensors: dict[OutputRef, GraphDefTensor] = {
        OutputRef(layer, 0): tensor for layer, tensor in parameters.items()
    }
    results: dict[LayerId, GraphDefTensor] = {}
    for node in _topological_order(graph):
        sources = graph.sources[node.id]
        node_address = f"{address}/{node.name}"
        inputs = _inputs(sources, tensors, node_address)
        if node.type == "Result":
            results[node.id] = inputs[0]
        elif node.id not in parameters:
            outputs = _outputs(graph, node, inputs, nodes, node_address, region)
            for index, (tensor, port) in enumerate(zip(outputs, node.outputs, strict=True)):
                tensors[OutputRef(node.id, index)] = with_port(tensor, port)
    return results


def _outputs(
    graph: ModelGraph,
    node: Node,
    inputs: Sequence[GraphDefTensor],
    nodes: GraphDefNodes,
    node_address: str,
    region: Region,
) -> Sequence[GraphDefTensor]:
    try:
        if node.constant is not None:
            return [nodes.constant(node.constant.array(), node.name)]
        if node.bodies:
            return _check_count(region(nodes, node, inputs, node_address), node)
        if node.type not in RULES:
            raise WriteError(f"there is no translation of {shorten(node.type, 60)}")
        constants = [_constant(graph, source) for source in graph.sources[node.id]]
        return _check_count(RULES[node.type](NodeRequest(nodes, node, inputs, constants)), node)
    except WriteError as error:
        if error.args[0].startswith("main/"):
            raise
        raise WriteError(
            f"{shorten(node_address, 200)} cannot be written as a TensorFlow graph: {error}"
        ) from None


def _check_count(outputs: Sequence[GraphDefTensor], node: Node) -> Sequence[GraphDefTensor]:
    """Return the outputs; ``WriteError`` if the node declares a different number."""
    if len(outputs) != len(node.outputs):
        raise WriteError(
            f"it declares {len(node.outputs)} outputs, expected {len(outputs)}: "
            "see what the checks say"
        )
    return outputs


def _inputs(
    sources: Sequence[OutputRef | None],
    tensors: Mapping[OutputRef, GraphDefTensor],
    node_address: str,
) -> list[GraphDefTensor]:
    candidates = [None if source is None else tensors.get(source) for source in sources]
    while candidates and candidates[-1] is None:
        candidates.pop()
    inputs = [tensor for tensor in candidates if tensor is not None]
    if len(inputs) < len(candidates):
        raise WriteError(
            f"{shorten(node_address, 200)} cannot be written as a TensorFlow graph: "
            "an input is missing"
        )
    return inputs


def _constant(graph: ModelGraph, source: OutputRef | None) -> np.ndarray | None:
    node = graph.by_id[source.layer] if source else None
    return node.constant.array() if node and node.constant else None


def _topological_order(graph: ModelGraph) -> Iterator[Node]:
    """Yield each node after the nodes that feed it."""
    unmet = {
        node.id: {source.layer for source in graph.sources[node.id] if source}
        for node in graph.nodes
    }
    readers: dict[LayerId, list[LayerId]] = {}
    for layer, sources in unmet.items():
        for source in sources:
            readers.setdefault(source, []).append(layer)
    ready = [node.id for node in reversed(graph.nodes) if not unmet[node.id]]
    count = 0
    while ready:
        layer = ready.pop()
        count += 1
        yield graph.by_id[layer]
        for reader in readers.get(layer, ()):
            unmet[reader].discard(layer)
            if not unmet[reader]:
                ready.append(reader)
    if count < len(graph.nodes):
        raise WriteError("the graph has a cycle of edges, which a TensorFlow graph cannot have")


def declared(node: Node, text: str) -> GraphDefTensor:
    """Return the tensor of a Parameter under a reference.

    ``WriteError`` for an unknown element type.
    """
    port = node.outputs[0]
    if port.element_type is None:
        raise WriteError(f"the Parameter {shorten(node.name)!r} does not declare its element type")
    return replace(GraphDefTensor(text, port.element_type), shape=port.shape)
