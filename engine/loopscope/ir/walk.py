"""Iteration over every graph and node of a model, without recursion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from loopscope.ir.address import ROOT, labels
from loopscope.ir.model import Body, LayerId, Model, ModelGraph, Node


@dataclass(frozen=True, eq=False)
class PlacedGraph:
    """A graph with its address in the model."""

    address: str
    """Static address: ``main`` or ``main/while_3/body``."""
    graph: ModelGraph
    owner: Node | None = None
    """The control-flow node that the graph belongs to; None for the outermost graph."""
    body: Body | None = None

    @cached_property
    def labels(self) -> Mapping[LayerId, str]:
        """Return the address segment of each node."""
        return labels(self.graph)


def graphs(model: Model) -> Iterator[PlacedGraph]:
    """Yield every graph in document order, an outer graph before its inner graphs."""
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
    """Yield every node of every graph with its static address."""
    for place in graphs(model):
        for node in place.graph.nodes:
            yield f"{place.address}/{place.labels[node.id]}", node
