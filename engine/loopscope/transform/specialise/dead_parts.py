"""Removal of nodes that no output needs, and of captured values that no body reads."""

from __future__ import annotations

from collections.abc import Callable

from loopscope.ir.model import (
    IF,
    LOOP,
    Body,
    InputMap,
    LayerId,
    ModelGraph,
    Node,
    OutputRef,
)
from loopscope.ir.replace import replace
from loopscope.transform.specialise.editable_graph import EditableGraph

_SINKS = frozenset({"Assign"})
"""Operations with an effect, which remain although nothing reads their outputs."""


_FIXED_INPUTS = {IF: 1, LOOP: 2}
"""Number of inputs with a meaning of their own: condition, or trip count and condition."""


def remove_dead(graph: EditableGraph, can_change: Callable[[Node], bool]) -> None:
    """Remove the dead nodes of a graph, whose bodies are done already.

    Parameters remain: they are the inputs of a model or are bound by a port map.
    """
    for layer, node in list(graph.nodes.items()):
        if node.bodies and can_change(node):
            _drop_unread_captures(graph, layer)
            if node.type == IF:
                _drop_unread_outputs(graph, layer)
    needed = _needed(graph)
    for layer, node in list(graph.nodes.items()):
        if layer not in needed and node.type != "Parameter":
            graph.remove(layer)


def _needed(graph: EditableGraph) -> set[LayerId]:
    needed = {
        layer
        for layer, node in graph.nodes.items()
        if node.type == "Result" or not node.outputs or _has_effect(node)
    }
    waiting = list(needed)
    while waiting:
        layer = waiting.pop()
        for index in range(len(graph.sources[layer])):
            source = graph.source(layer, index)
            if source is not None and source.layer not in needed:
                needed.add(source.layer)
                waiting.append(source.layer)
    return needed


def _has_effect(node: Node) -> bool:
    """Return True for a sink, and for a node with a sink in its bodies."""
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if inner.type in _SINKS:
            return True
        waiting += [other for body in inner.bodies for other in body.graph.nodes]
    return False


def is_invariant(body: Body, entry: InputMap) -> bool:
    """Return True if a Parameter receives one outer tensor in every iteration."""
    carried = {edge.to_layer for edge in body.back_edges}
    return entry.axis is None and entry.external >= 0 and entry.internal not in carried


def _drop_unread_captures(graph: EditableGraph, layer: LayerId) -> None:
    """Remove invariant Parameters that no node of the body reads, and inputs that feed none."""
    node = graph.nodes[layer]
    if node.is_function:
        return  # the inputs of a function are bound by position
    bodies = tuple([_without_unread(body) for body in node.bodies])
    used = {entry.external for body in bodies for entry in body.inputs}
    captured = {
        entry.external for body in node.bodies for entry in body.inputs if is_invariant(body, entry)
    }
    fixed = _FIXED_INPUTS.get(node.type, 0)
    remaining = [
        index
        for index in range(len(node.inputs))
        if index < fixed or index in used or index not in captured
    ]
    if len(remaining) == len(node.inputs) and all(
        new is old for new, old in zip(bodies, node.bodies, strict=True)
    ):
        return
    number = {old: new for new, old in enumerate(remaining)}
    bodies = tuple(
        [
            replace(
                body,
                inputs=tuple(
                    [
                        replace(entry, external=number.get(entry.external, -1))
                        for entry in body.inputs
                    ]
                ),
            )
            for body in bodies
        ]
    )
    graph.sources[layer] = [graph.sources[layer][index] for index in remaining]
    graph.put(
        replace(node, bodies=bodies, inputs=tuple([node.inputs[index] for index in remaining]))
    )


def _without_unread(body: Body) -> Body:
    unread = {
        entry.internal
        for entry in body.inputs
        if is_invariant(body, entry) and OutputRef(entry.internal, 0) not in body.graph.consumers
    }
    if not unread:
        return body
    nodes = tuple([node for node in body.graph.nodes if node.id not in unread])
    inputs = tuple([entry for entry in body.inputs if entry.internal not in unread])
    return replace(body, graph=replace(body.graph, nodes=nodes), inputs=inputs)


def _drop_unread_outputs(graph: EditableGraph, layer: LayerId) -> None:
    """Remove outputs of an If that nothing reads, with the Results of its branches."""
    node = graph.nodes[layer]
    read = {
        source.output
        for reader in graph.nodes
        for index in range(len(graph.sources[reader]))
        if (source := graph.source(reader, index)) is not None and source.layer == layer
    }
    remaining = [index for index in range(len(node.outputs)) if index in read]
    if len(remaining) == len(node.outputs) or not remaining:
        return
    number = {OutputRef(layer, old): OutputRef(layer, new) for new, old in enumerate(remaining)}
    bodies = tuple([_with_outputs(body, remaining) for body in node.bodies])
    graph.renumber_outputs(number)
    graph.put(replace(node, bodies=bodies, outputs=tuple([node.outputs[n] for n in remaining])))


def _with_outputs(body: Body, remaining: list[int]) -> Body:
    entries = [body.outer_outputs[index] for index in remaining]
    results = {entry.internal for entry in entries}
    graph: ModelGraph = body.graph
    dropped = {entry.internal for entry in body.outer_outputs if entry.internal not in results}
    return replace(
        body,
        graph=replace(
            graph,
            nodes=tuple([node for node in graph.nodes if node.id not in dropped]),
            edges=tuple([edge for edge in graph.edges if edge.to_layer not in dropped]),
        ),
        outputs=tuple([replace(entry, external=new) for new, entry in enumerate(entries)]),
    )
