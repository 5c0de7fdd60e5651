"""The part of a model that some of its tensors need, as a model of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from loopscope.ir.constant import Constant
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace

Named = tuple[str, OutputRef]
"""What an output is to be called, and the tensor of the outermost graph that it is."""


def pruned(model: Model, outputs: Sequence[Named], also: Collection[LayerId] = ()) -> Model:
    """The nodes that the given tensors need (and those of ``also``), with a Result for each tensor
    in place of the model's own.

    Ids, names and addresses stay what they are; bodies stay whole.
    """
    graph = model.graph
    needed = _needed(graph, {*(source.layer for _, source in outputs), *also})
    uses = Counter(node.name for node in graph.nodes)
    nodes = [
        node if node.id in needed else _placeholder(node)
        for node in graph.nodes
        if node.id in needed or _is_namesake(node, uses)
    ]
    edges = [edge for edge in graph.edges if edge.to_layer in needed and edge.from_layer in needed]
    opset = next((node.opset for node in graph.results), "opset1")
    layer = max(graph.by_id, default=LayerId(-1))
    for number, (name, source) in enumerate(outputs, 1):
        port = graph.tensor(source)
        fetched = LayerId(layer + number)
        nodes.append(
            Node(
                fetched,
                _free(f"fetch_{number}", uses),
                "Result",
                opset,
                inputs=(replace(port, id=0),),
                output_names=(name,),
            )
        )
        edges.append(Edge(source.layer, port.id, fetched, 0))
    return replace(model, graph=replace(graph, nodes=tuple(nodes), edges=tuple(edges)))


def _needed(graph: ModelGraph, wanted: Collection[LayerId]) -> set[LayerId]:
    needed = set(wanted)
    waiting = list(needed)
    while waiting:
        for source in graph.sources[waiting.pop()]:
            if source is not None and source.layer not in needed:
                needed.add(source.layer)
                waiting.append(source.layer)
    return needed


def _is_namesake(node: Node, uses: Counter[str]) -> bool:
    """Nodes of one name are told apart by their ids in addresses, which depends on there being
    several.
    """
    return uses[node.name] > 1


def _placeholder(node: Node) -> Node:
    """Keeps a name in use, and computes nothing."""
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


def _free(wanted: str, uses: Counter[str]) -> str:
    while wanted in uses:
        wanted += "_"
    return wanted
