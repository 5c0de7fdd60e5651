"""Insertion of a finished graph into a graph under construction, with tensors for its
Parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from loopscope.builder.tensor import Tensor
from loopscope.checks.order import order
from loopscope.checks.propagate import propagate
from loopscope.errors import BuildError, shorten
from loopscope.ir.address import ROOT
from loopscope.ir.model import LayerId, Model, Node, OutputRef
from loopscope.ir.model import ModelGraph as FinishedGraph

if TYPE_CHECKING:
    from loopscope.builder.graph_builder import Graph


def inline_graph(
    graph: Graph, source: FinishedGraph, feeds: Mapping[LayerId, Tensor], what: str
) -> tuple[Tensor, ...]:
    """Add the nodes of ``source`` and return the inputs of its Results, in order.

    ``feeds``: a tensor of the current graph or body for each Parameter. Types and shapes are
    inferred again from the feeds. ``BuildError`` if they contradict an operation; its message
    starts with ``what``.
    """
    propagated = propagate(
        Model(source), graph.catalogue, {layer: tensor.known for layer, tensor in feeds.items()}
    )
    for contradiction in propagated.contradictions:
        where = (
            shorten(source.by_id[contradiction.layer].name)
            if contradiction.graph == ROOT
            else contradiction.graph
        )
        raise BuildError(f"{what}: {where}: {contradiction.message}")
    tensors: dict[OutputRef, Tensor] = {
        OutputRef(layer, 0): tensor for layer, tensor in feeds.items()
    }
    results: dict[LayerId, Tensor] = {}
    for layer in order(source).layers:
        node = source.by_id[layer]
        if layer in feeds:
            continue
        inputs = _inputs(source, node, tensors, what)
        if node.type == "Result":
            results[layer] = inputs[0]
            continue
        known = [propagated.output(ROOT, layer, output) for output in range(len(node.outputs))]
        for output, tensor in enumerate(graph.frame.adopt(node, inputs, known)):
            tensors[OutputRef(layer, output)] = tensor
    return tuple(results[node.id] for node in source.results)


def _inputs(
    source: FinishedGraph, node: Node, computed: Mapping[OutputRef, Tensor], what: str
) -> list[Tensor]:
    tensors = [
        computed.get(source_ref) if source_ref is not None else None
        for source_ref in source.sources[node.id]
    ]
    while tensors and tensors[-1] is None:
        tensors.pop()
    inputs = [source_ref for source_ref in tensors if source_ref is not None]
    if len(inputs) < len(tensors) or (node.type == "Result" and not inputs):
        raise BuildError(f"{what}: an input of {node.type} {shorten(node.name)!r} is not connected")
    return inputs
