"""The one way to visit every graph of a model, without recursion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.ir.address import ROOT, labels
from engine.ir.model import Body, Graph, Model, Node


@dataclass(frozen=True, slots=True, eq=False)
class PlacedGraph:
    """A graph with its place in the model."""

    address: str
    """Static address: ``main`` or ``main/while_3/body``."""
    graph: Graph
    depth: int
    owner: Node | None = None
    """The control-flow node that holds it; None for the outermost graph."""
    body: Body | None = None


def graphs(model: Model) -> Iterator[PlacedGraph]:
    """Every graph, an outer one before those inside it, in document order."""
    waiting = [PlacedGraph(ROOT, model.graph, 0)]
    while waiting:
        place = waiting.pop()
        yield place
        if not any(node.bodies for node in place.graph.nodes):
            continue
        label = labels(place.graph)
        inner = [
            PlacedGraph(f"{place.address}/{label[node.id]}/{body.name}", body.graph, place.depth + 1, node, body)
            for node in place.graph.nodes
            for body in node.bodies
        ]
        waiting.extend(reversed(inner))


def nodes(model: Model) -> Iterator[tuple[str, Node]]:
    """Every node of every graph with its static address."""
    for place in graphs(model):
        label = labels(place.graph)
        for node in place.graph.nodes:
            yield f"{place.address}/{label[node.id]}", node
