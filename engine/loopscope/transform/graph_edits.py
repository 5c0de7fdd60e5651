"""Models with one nested graph replaced, and graphs with some nodes replaced."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef
from loopscope.ir.replace import replace
from loopscope.ir.walk import PlacedGraph, graphs


def with_graph(model: Model, address: str, graph: ModelGraph) -> Model:
    """Return the model with the graph at a static address replaced."""
    places = {place.address: place for place in graphs(model)}
    place = places[address]
    while place.owner is not None and place.body is not None:
        owner, body = place.owner, place.body
        bodies = tuple(
            replace(each, graph=graph) if each is body else each for each in owner.bodies
        )
        outer = _outer(places, place)
        graph = with_nodes(outer.graph, {owner.id: replace(owner, bodies=bodies)})
        place = outer
    return replace(model, graph=graph)


def _outer(places: Mapping[str, PlacedGraph], place: PlacedGraph) -> PlacedGraph:
    return places[place.address.rpartition("/")[0].rpartition("/")[0]]


def with_nodes(graph: ModelGraph, changed: Mapping[LayerId, Node]) -> ModelGraph:
    """Return a graph with some nodes replaced; the ids of nodes and ports must not change."""
    return replace(graph, nodes=tuple(changed.get(node.id, node) for node in graph.nodes))


def with_every_node(model: Model, change: Callable[[Node], Node]) -> Model:
    """Return the model with every node of every graph changed, inner graphs first."""
    for address in reversed([place.address for place in graphs(model)]):
        graph = next(place.graph for place in graphs(model) if place.address == address)
        model = with_graph(model, address, replace(graph, nodes=tuple(map(change, graph.nodes))))
    return model


def fed_by(graph: ModelGraph, sources: Mapping[OutputRef, OutputRef]) -> ModelGraph:
    """Return a graph whose readers of some tensors read other tensors instead."""
    ends = {
        (tensor.layer, graph.tensor(tensor).id): (other.layer, graph.tensor(other).id)
        for tensor, other in sources.items()
    }
    edges = tuple(
        Edge(*end, edge.to_layer, edge.to_port)
        if (end := ends.get((edge.from_layer, edge.from_port)))
        else edge
        for edge in graph.edges
    )
    return replace(graph, edges=edges)


def without_layers(graph: ModelGraph, layers: Collection[LayerId]) -> ModelGraph:
    """Return a graph without some nodes and the edges at them."""
    return replace(
        graph,
        nodes=tuple(node for node in graph.nodes if node.id not in layers),
        edges=tuple(
            edge
            for edge in graph.edges
            if edge.from_layer not in layers and edge.to_layer not in layers
        ),
    )


def live_layers(graph: ModelGraph, roots: Collection[LayerId]) -> set[LayerId]:
    """Return the nodes that some nodes need, with these nodes themselves."""
    live = set(roots)
    waiting = list(live)
    while waiting:
        for source in graph.sources[waiting.pop()]:
            if source is not None and source.layer not in live:
                live.add(source.layer)
                waiting.append(source.layer)
    return live


def unused_name(name: str, names: set[str]) -> str:
    """Return a name that is not among the names of a graph, and add it to them.

    The addresses of existing nodes do not change.
    """
    while name in names:
        name += "_"
    names.add(name)
    return name
