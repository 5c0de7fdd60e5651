"""Removal of parts that no output of a model needs: nodes, and outputs, carried values and inputs
of loops and branches.
"""

from __future__ import annotations

from collections.abc import Collection

from loopscope.ir.model import (
    IF,
    LOOP,
    SCAN,
    Body,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputMap,
    OutputRef,
)
from loopscope.ir.replace import replace
from loopscope.ir.walk import graphs
from loopscope.transform.graph_edits import live_layers, with_graph, with_nodes, without_layers


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
