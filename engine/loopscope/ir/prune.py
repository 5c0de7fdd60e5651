"""Extraction of the part of a model that computes some of its tensors, as a model of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from loopscope.ir.constant import Constant
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace

Named = tuple[str, OutputRef]
"""Name of a new output, and the tensor of the outermost graph that it returns."""


def pruned(model: Model, outputs: Sequence[Named], also: Collection[LayerId] = ()) -> Model:
    """Return the model reduced to the nodes that the given tensors (and ``also``) need.

    The model's own Results are replaced by a Result for each tensor. Ids, names and addresses do
    not change; bodies stay whole.
    """
    graph = model.graph
    needed = _required_layers(graph, {*(source.layer for _, source in outputs), *also})
    uses = Counter(node.name for node in graph.nodes)
    nodes = [
        node if node.id in needed else _placeholder(node)
        for node in graph.nodes
        if node.id in needed or _shares_name(node, uses)
    ]
    edges = [edge for edge in graph.edges if edge.to_layer in needed and edge.from_layer in needed]
    opset = next((node.opset for node in graph.results), "opset1")
    layer = max(graph.by_id, default=LayerId(-1))
    for number, (name, source) in enumerate(outputs, 1):
        port = graph.tensor(source)
        result_layer = LayerId(layer + number)
        nodes.append(
            Node(
                result_layer,
                _unused_name(f"fetch_{number}", uses),
                "Result",
                opset,
                inputs=(replace(port, id=0),),
                output_names=(name,),
            )
        )
        edges.append(Edge(source.layer, port.id, result_layer, 0))
    return replace(model, graph=replace(graph, nodes=tuple(nodes), edges=tuple(edges)))


def _required_layers(graph: ModelGraph, targets: Collection[LayerId]) -> set[LayerId]:
    required = set(targets)
    waiting = list(required)
    while waiting:
        for source in graph.sources[waiting.pop()]:
            if source is not None and source.layer not in required:
                required.add(source.layer)
                waiting.append(source.layer)
    return required


def _shares_name(node: Node, uses: Counter[str]) -> bool:
    """Return True if several nodes have this name.

    Addresses of such nodes contain their ids. Each of these nodes must remain, so that the
    addresses do not change.
    """
    return uses[node.name] > 1


def _placeholder(node: Node) -> Node:
    """Return an empty Const that keeps the name of a node in use."""
    empty = Constant.of(np.empty(0, np.float32))
    return Node(
        node.id,
        node.name,
        "Const",
        "opset1",
        {"element_type": "f32", "shape": "0"},
        outputs=(Port(0),),
        constant=empty,
    )


def _unused_name(name: str, uses: Counter[str]) -> str:
    while name in uses:
        name += "_"
    return name
