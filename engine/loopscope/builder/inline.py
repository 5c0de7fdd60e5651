"""A finished graph put into the one that is being built, with tensors in place of its
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


def inlined(
    graph: Graph, source: FinishedGraph, feeds: Mapping[LayerId, Tensor], what: str
) -> tuple[Tensor, ...]:
    """What the Results of ``source`` get, in their order; ``feeds``: a tensor of the current graph
    or body for each Parameter.

    Types and shapes are inferred anew from those of the feeds. ``BuildError`` when they contradict
    an operation, with ``what`` in front.
    """
    found = propagate(
        Model(source), graph.catalogue, {layer: tensor.known for layer, tensor in feeds.items()}
    )
    for contradiction in found.contradictions:
        where = (
            shorten(source.by_id[contradiction.layer].name)
            if contradiction.graph == ROOT
            else contradiction.graph
        )
        raise BuildError(f"{what}: {where}: {contradiction.message}")
    made: dict[OutputRef, Tensor] = {OutputRef(layer, 0): tensor for layer, tensor in feeds.items()}
    results: dict[LayerId, Tensor] = {}
    for layer in order(source).layers:
        node = source.by_id[layer]
        if layer in feeds:
            continue
        inputs = _inputs(source, node, made, what)
        if node.type == "Result":
            results[layer] = inputs[0]
            continue
        known = [found.output(ROOT, layer, output) for output in range(len(node.outputs))]
        for output, tensor in enumerate(graph.frame.adopt(node, inputs, known)):
            made[OutputRef(layer, output)] = tensor
    return tuple(results[node.id] for node in source.results)


def _inputs(
    source: FinishedGraph, node: Node, made: Mapping[OutputRef, Tensor], what: str
) -> list[Tensor]:
    found = [made.get(one) if one is not None else None for one in source.sources[node.id]]
    while found and found[-1] is None:
        found.pop()
    inputs = [one for one in found if one is not None]
    if len(inputs) < len(found) or (node.type == "Result" and not inputs):
        raise BuildError(f"{what}: an input of {node.type} {shorten(node.name)!r} is not connected")
    return inputs
