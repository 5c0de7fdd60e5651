"""Edits of a model: a nested graph or some nodes replaced, and unused parts removed.

Unused parts are nodes, and outputs, carried values and inputs of loops and branches, that no output
of the model needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from loopscope.ir.address import PlacedGraph, graphs
from loopscope.ir.model import (
    IF,
    LOOP,
    SCAN,
    Body,
    Edge,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputMap,
    OutputRef,
)
from loopscope.ir.replace import replace


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


def without_unused_parts(model: Model) -> Model:
    """Return the model without nodes and parts of loops and branches that no output needs.

    Inputs and outputs of the model remain. Functions and unknown operations remain whole.
    """
    size = -1
    while size != (size := count_parts(model)):
        for address in [place.address for place in graphs(model)]:
            place = next((place for place in graphs(model) if place.address == address), None)
            if place is not None:
                model = with_graph(model, address, _smaller(place.graph))
    return model


def count_parts(model: Model) -> int:
    """Return the number of nodes, inputs and outputs in all graphs of a model."""
    return sum(
        1 + len(node.inputs) + len(node.outputs)
        for place in graphs(model)
        for node in place.graph.nodes
    )


def _smaller(graph: ModelGraph) -> ModelGraph:
    """Return a graph without dead nodes, and with smaller loops and branches."""
    ends = {node.id for node in graph.nodes if not node.outputs} | _effects(graph)
    live = live_layers(graph, ends)
    dead = {node.id for node in graph.nodes if node.id not in live and node.type != "Parameter"}
    graph = without_layers(graph, dead) if dead else graph
    for node in graph.nodes:
        if node.bodies and not node.is_function and not node.is_foreign:
            graph = _with_smaller_region(graph, node)
    return graph


_EFFECTS = frozenset({"Assign", "Print"})


def _effects(graph: ModelGraph) -> set[LayerId]:
    """Return the nodes that set a variable or print, in their bodies too."""
    return {node.id for node in graph.nodes if _has_effect(node)}


def _has_effect(node: Node) -> bool:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type in _EFFECTS:
            return True
        waiting += [inner for body in current.bodies for inner in body.graph.nodes]
    return False


def _with_smaller_region(graph: ModelGraph, node: Node) -> ModelGraph:
    used = {
        number
        for number in range(len(node.outputs))
        if OutputRef(node.id, number) in graph.consumers
    }
    if node.type == IF:
        needed = used or {0}  # a branch has at least one output
        bodies = tuple(_branch(body, needed) for body in node.bodies)
    elif len(node.bodies) == 1:
        body, needed = _loop_body(node, node.bodies[0], used)
        bodies = (body,)
    else:
        return graph
    return _with_ports(graph, node, bodies, needed)


def _branch(body: Body, needed: Collection[int]) -> Body:
    """Return a branch with some of its outputs, and the Parameters that they need."""
    outputs = tuple(entry for number, entry in enumerate(body.outer_outputs) if number in needed)
    return _body_of(body, {entry.internal for entry in outputs}, set(), outputs)


def _loop_body(node: Node, body: Body, used: Collection[int]) -> tuple[Body, set[int]]:
    """Return a loop body with what its condition and the used outputs need, and the numbers of
    the outputs that remain.

    Slices remain, because they limit the iteration count.
    """
    outer = body.outer_outputs
    results = {entry.internal for entry in body.outputs if entry.purpose}
    results |= {
        entry.internal
        for number, entry in enumerate(outer)
        if number in used or (node.type == SCAN and entry.axis is not None)
    }
    parameters = {
        entry.internal
        for entry in body.inputs
        if entry.is_iteration_number or entry.axis is not None
    }
    effects = _effects(body.graph)
    while True:
        live = live_layers(body.graph, results | effects)
        carried = [
            edge for edge in body.back_edges if edge.to_layer in live or edge.from_layer in results
        ]
        more = {edge.from_layer for edge in carried} - results
        if not more:
            break
        results |= more
    parameters |= {edge.to_layer for edge in carried}
    needed = {number for number, entry in enumerate(outer) if entry.internal in results}
    outputs = tuple(
        entry
        for entry in body.outputs
        if entry.purpose or (entry in outer and outer.index(entry) in needed)
    )
    return _body_of(body, results, parameters, outputs), needed


def _body_of(
    body: Body,
    results: Collection[LayerId],
    parameters: Collection[LayerId],
    outputs: tuple[OutputMap, ...],
) -> Body:
    """Return a body with some Results, and with these Parameters and those that are needed."""
    graph = body.graph
    live = live_layers(graph, {*results, *_effects(graph)}) | set(parameters)
    removed = {
        node.id
        for node in graph.nodes
        if node.id not in live and node.type in ("Parameter", "Result")
    }
    return replace(
        body,
        graph=without_layers(graph, removed) if removed else graph,
        inputs=tuple(entry for entry in body.inputs if entry.internal not in removed),
        outputs=outputs,
        back_edges=tuple(
            edge
            for edge in body.back_edges
            if edge.to_layer not in removed and edge.from_layer not in removed
        ),
    )


def _with_ports(
    graph: ModelGraph, node: Node, bodies: tuple[Body, ...], outputs: Collection[int]
) -> ModelGraph:
    """Return the graph with the node's bodies replaced, without inputs that they do not read and
    without its other outputs.
    """
    own = {IF: 1, LOOP: 2}.get(node.type, 0)
    read = {entry.external for body in bodies for entry in body.inputs}
    remaining = [number for number in range(len(node.inputs)) if number < own or number in read]
    positions = {number: position for position, number in enumerate(remaining)}
    renumbered = tuple(
        replace(
            body,
            inputs=tuple(
                replace(entry, external=positions.get(entry.external, -1)) for entry in body.inputs
            ),
        )
        for body in bodies
    )
    smaller = replace(
        node,
        inputs=tuple(node.inputs[number] for number in remaining),
        outputs=tuple(port for number, port in enumerate(node.outputs) if number in outputs),
        bodies=renumbered,
    )
    ports = {port.id for port in smaller.inputs}
    edges = tuple(edge for edge in graph.edges if edge.to_layer != node.id or edge.to_port in ports)
    return replace(with_nodes(graph, {node.id: smaller}), edges=edges)
