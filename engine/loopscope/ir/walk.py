"""The one way to visit every graph of a model, without recursion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from loopscope.ir.address import ROOT, labels
from loopscope.ir.model import Body, LayerId, Model, ModelGraph, Node


@dataclass(frozen=True, eq=False)
class PlacedGraph:
    """A graph with its place in the model."""

    address: str
    """Static address: ``main`` or ``main/while_3/body``."""
    graph: ModelGraph
    owner: Node | None = None
    """The control-flow node that holds it; None for the outermost graph."""
    body: Body | None = None

    @cached_property
    def labels(self) -> Mapping[LayerId, str]:
        """The address segment of each node."""
        return labels(self.graph)


def graphs(model: Model) -> Iterator[PlacedGraph]:
    """Every graph, an outer one before those inside it, in document order."""
    waiting = [PlacedGraph(ROOT, model.graph)]
    while waiting:
        place = waiting.pop()
        yield place
        if not any(node.bodies for node in place.graph.nodes):
            continue
        inner = [
            PlacedGraph(
                f"{place.address}/{place.labels[node.id]}/{body.name}", body.graph, node, body
            )
            for node in place.graph.nodes
            for body in node.bodies
        ]
        waiting.extend(reversed(inner))


def nodes(model: Model) -> Iterator[tuple[str, Node]]:
    """Every node of every graph with its static address."""
    for place in graphs(model):
        for node in place.graph.nodes:
            yield f"{place.address}/{place.labels[node.id]}", node
