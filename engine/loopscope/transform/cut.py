"""Parts of a model as models of their own: a body, a node with its neighbours, a path."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from loopscope.errors import AddressError, shorten
from loopscope.ir.address import Address, PlacedGraph, graphs, labels
from loopscope.ir.address_search import full_address
from loopscope.ir.constant import Constant
from loopscope.ir.model import LayerId, Model, ModelGraph, OutputRef, expect_model
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.transform.extract import Extraction, Part, boundary_outputs


def cut(
    model: Model,
    address: str = "",
    *,
    around: int = 0,
    start: str = "",
    end: str = "",
    catalogue: Catalogue = CATALOGUE,
) -> Model:
    """Return a part of a model as a model of its own.

    ``address`` names a graph (``main/loop/body``, ``main/if/then``) or a node, which is cut out
    with the nodes that are at most ``around`` edges away. ``start`` and ``end`` name two nodes of
    one graph instead: everything on the paths between them is cut out. Iterations in an address
    are ignored.

    Names, element types and attributes do not change. Every value that the part reads becomes an
    input. A weight stays a constant, also if the part is a body that captures the weight. Random
    numbers and variables of the part become inputs, so that the part computes the same values in
    every run.

    ``AddressError`` for an address that names no graph or node, or for two nodes without a path.
    """
    expect_model(model, "loopscope.cut")
    return part_of(model, address, around=around, start=start, end=end, catalogue=catalogue).model


def part_of(
    model: Model,
    address: str = "",
    *,
    around: int = 0,
    start: str = "",
    end: str = "",
    catalogue: Catalogue = CATALOGUE,
) -> Part:
    """Return the same part as ``cut``, with the tensors that its inputs and outputs stand for."""
    if bool(address) is bool(start or end) or bool(start) is not bool(end):
        raise AddressError("expected one address, or the two ends of a path")
    places = {place.address: place for place in graphs(model)}
    if start:
        return _between(model, places, start, end, catalogue)
    graph_address = _graph_address(model, places, address)
    if graph_address:
        if around:
            raise AddressError(
                f"{shorten(address)!r} names a graph: a neighbourhood is that of a node"
            )
        return _whole(model, places, graph_address, catalogue)
    place, output = _node_at(model, places, address)
    layers = _neighbours(place.graph, output.layer, around)
    weights = captured_weights(places, place.address)
    extraction = Extraction(model, place, catalogue, weights)
    return extraction.part(layers, boundary_outputs(place.graph, extraction.computing(layers)))


def _whole(
    model: Model, places: dict[str, PlacedGraph], address: str, catalogue: Catalogue
) -> Part:
    place = places[address]
    outputs = [sources[0] for node in place.graph.results if (sources := _sources(place, node.id))]
    return Extraction(model, place, catalogue, captured_weights(places, address)).part(
        set(place.graph.by_id), [source for source in outputs if source is not None], whole=True
    )


def _sources(place: PlacedGraph, layer: LayerId) -> tuple[OutputRef | None, ...]:
    return place.graph.sources[layer]


def _between(
    model: Model, places: dict[str, PlacedGraph], start: str, end: str, catalogue: Catalogue
) -> Part:
    place, first = _node_at(model, places, start)
    other, last = _node_at(model, places, end)
    if place is not other:
        raise AddressError(
            f"{shorten(start)!r} and {shorten(end)!r} are in different graphs: "
            "expected two nodes of one graph"
        )
    graph = place.graph
    layers = _reached(graph, first.layer, forward=True) & _reached(graph, last.layer, forward=False)
    if not layers:
        raise AddressError(f"no path leads from {shorten(start)!r} to {shorten(end)!r}")
    ports = range(len(graph.by_id[last.layer].outputs))
    outputs = [
        OutputRef(last.layer, port)
        for port in ports
        if not end.rpartition(":")[1] or port == last.output
    ]
    used = [output for output in outputs if output in graph.consumers]
    weights = captured_weights(places, place.address)
    return Extraction(model, place, catalogue, weights).part(layers, used or outputs)


def _graph_address(model: Model, places: dict[str, PlacedGraph], text: str) -> str:
    """Return the static address of the graph that a text names; empty if it names none."""
    address = Address.parse(text)
    if address.static in places:
        return address.static
    owner, _, body = text.rpartition("/")
    full = Address.parse(full_address(model, owner)).static if owner else ""
    return f"{full}/{body}" if f"{full}/{body}" in places else ""


def with_iterations(model: Model, text: str) -> str:
    """Return the full address, with its iterations, of the graph or node that a text names."""
    address = Address.parse(text)
    places = {place.address for place in graphs(model)}
    if address.static in places:
        return str(address)
    owner, _, body = text.rpartition("/")
    full = full_address(model, owner) if owner else ""
    if full and f"{Address.parse(full).static}/{body}" in places:
        return str(Address.parse(f"{full}/{body}"))
    return str(Address.parse(full_address(model, text)))


def _node_at(
    model: Model, places: dict[str, PlacedGraph], text: str
) -> tuple[PlacedGraph, OutputRef]:
    address = Address.parse(full_address(model, text))
    graph, _, label = address.static.rpartition("/")
    place = places.get(graph)
    if place is not None:
        for layer, name in place.labels.items():
            if name == label:
                node = place.graph.by_id[layer]
                if node.type in ("Parameter", "Result"):
                    break
                return place, OutputRef(layer, address.output)
        else:
            raise AddressError(f"the model has no node or graph {shorten(text)!r}")
        raise AddressError(
            f"{shorten(text)!r} is a {node.type}: expected an operation or a graph to cut out"
        )
    raise AddressError(f"the model has no node or graph {shorten(text)!r}")


def _neighbours(graph: ModelGraph, layer: LayerId, around: int) -> set[LayerId]:
    """Return the operations at most ``around`` edges away from a node.

    Parameters, Results and Consts connect nothing: a shared weight is not a neighbourhood.
    """
    layers = {layer}
    edge = {layer}
    for _ in range(around):
        edge = {
            near
            for current in edge
            for near in _adjacent(graph, current)
            if near not in layers
            and graph.by_id[near].type not in ("Parameter", "Result")
            and graph.by_id[near].constant is None
        }
        layers |= edge
    return layers


def _adjacent(graph: ModelGraph, layer: LayerId) -> set[LayerId]:
    before = {source.layer for source in graph.sources[layer] if source is not None}
    return before | _readers(graph, layer)


def _readers(graph: ModelGraph, layer: LayerId) -> set[LayerId]:
    return {
        reader
        for number in range(len(graph.by_id[layer].outputs))
        for reader, _ in graph.consumers.get(OutputRef(layer, number), ())
    }


def _reached(graph: ModelGraph, layer: LayerId, *, forward: bool) -> set[LayerId]:
    """Return the operations that a node leads to, or that lead to it, with the node itself."""
    reached = {layer}
    waiting = [layer]
    while waiting:
        current = waiting.pop()
        following = (
            _readers(graph, current)
            if forward
            else {source.layer for source in graph.sources[current] if source is not None}
        )
        new = {
            near
            for near in following - reached
            if graph.by_id[near].type not in ("Parameter", "Result")
        }
        reached |= new
        waiting += new
    return reached


def captured_weights(places: dict[str, PlacedGraph], address: str) -> dict[LayerId, Constant]:
    """Return the constants that a body receives unchanged, by Parameter.

    A constant may pass through several bodies.
    """
    enclosing = [address]
    while (outer := enclosing[-1].rpartition("/")[0].rpartition("/")[0]) in places:
        enclosing.append(outer)
    weights: dict[LayerId, Constant] = {}
    for outer, inner in pairwise(reversed(enclosing)):
        weights = _passed_weights(places[outer].graph, places[inner], weights)
    return weights


def _passed_weights(
    outer: ModelGraph, place: PlacedGraph, outer_weights: Mapping[LayerId, Constant]
) -> dict[LayerId, Constant]:
    assert place.owner is not None
    assert place.body is not None
    sources = outer.sources[place.owner.id]
    carried = {edge.to_layer for edge in place.body.back_edges}
    weights: dict[LayerId, Constant] = {}
    for entry in place.body.inputs:
        source = sources[entry.external] if 0 <= entry.external < len(sources) else None
        if source is None or entry.axis is not None or entry.internal in carried:
            continue
        constant = outer.by_id[source.layer].constant or outer_weights.get(source.layer)
        if constant is not None:
            weights[entry.internal] = constant
    return weights


def addresses(part: Part, graph: ModelGraph, prefix: str) -> tuple[list[str], list[str]]:
    """Return the addresses of the tensors of a part's inputs and outputs.

    ``prefix`` is the address of their graph, with iterations.
    """
    names = labels(graph)
    inputs, outputs = (
        [
            f"{prefix}/{names[tensor.layer]}" + (f":{tensor.output}" if tensor.output else "")
            for tensor in tensors
        ]
        for tensors in (part.inputs, part.outputs)
    )
    return inputs, outputs
