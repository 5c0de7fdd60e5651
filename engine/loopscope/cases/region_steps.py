"""Steps of a reduction inside loops and branches: unused parts, iterations, operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from loopscope.cases.candidate import Candidate
from loopscope.cases.node_steps import computing_layers, without_dead_nodes
from loopscope.cases.search import ReductionSearch
from loopscope.errors import EngineError
from loopscope.ir.address import ROOT
from loopscope.ir.constant import Constant
from loopscope.ir.model import LOOP, LayerId, Model, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ir.walk import PlacedGraph, graphs
from loopscope.transform.extract import constant_node
from loopscope.transform.graph_edits import fed_by, with_graph
from loopscope.transform.unused_parts import count_parts, without_unused_parts

_MAX_CONSTANT = 1 << 16
"""Maximum number of elements of a recorded value that becomes a constant of a body."""


def remove_unused_parts(search: ReductionSearch) -> None:
    """Remove outputs, carried values and inputs of loops and branches that nothing needs."""
    smaller = without_unused(search.best)
    if count_parts(smaller.model) < count_parts(search.best.model):
        search.accepts(smaller)


def without_unused(candidate: Candidate) -> Candidate:
    """Return the candidate without parts of its regions and inputs that no output needs."""
    return without_dead_nodes(candidate.changed(without_unused_parts(candidate.model)))


def reduce_iterations(search: ReductionSearch) -> None:
    """Replace the trip counts of the outermost loops by the smallest that shows the fault."""
    for node in search.best.model.graph.nodes:
        if node.type != LOOP or not node.is_loop:
            continue
        record = search.best.run.record(f"main/{_label(search.best.model, node)}")
        count = getattr(record, "iterations", 0)
        for smaller in sorted({1, 2, 3, count // 8, count // 4, count // 2}):
            if 0 < smaller < count and any(
                search.accepts(candidate)
                for candidate in _with_trip_count(search.best, node.id, smaller)
            ):
                break


def _label(model: Model, node: Node) -> str:
    return next(graphs(model)).labels[node.id]


def _with_trip_count(candidate: Candidate, layer: LayerId, count: int) -> Iterator[Candidate]:
    """Yield the candidate with another trip count: as the input that it is, then as a constant.

    Some runtimes unroll a loop whose trip count is constant.
    """
    graph = candidate.model.graph
    source = graph.sources[layer][0]
    if source is None:
        return
    parameters = [node.id for node in graph.parameters]
    if source.layer in parameters:
        inputs = list(candidate.inputs)
        position = parameters.index(source.layer)
        inputs[position] = np.full_like(inputs[position], count)
        yield candidate.changed(candidate.model, tuple(inputs))
    number = LayerId(max(graph.by_id) + 1)
    node = constant_node(
        number,
        f"trip_count_{number}",
        replace(graph.tensor(source), names=(f"trip_count_{number}",)),
        Constant.of(np.full(_shape_of(candidate, source), count, np.int64)),
        is_onnx=candidate.model.dialect == "onnx",
    )
    yield _with_input_fed(candidate, layer, 0, node)


def _shape_of(candidate: Candidate, source: OutputRef) -> tuple[int, ...]:
    label = next(graphs(candidate.model)).labels[source.layer]
    try:
        value = candidate.run.value(f"main/{label}:{source.output}")
    except EngineError:
        return ()
    return np.shape(value)


def _with_input_fed(candidate: Candidate, layer: LayerId, index: int, node: Node) -> Candidate:
    """Return the candidate with one input of a node fed by a new node."""
    graph = candidate.model.graph
    port = graph.by_id[layer].inputs[index].id
    edges = tuple(
        edge._replace(from_layer=node.id, from_port=node.outputs[0].id)
        if (edge.to_layer, edge.to_port) == (layer, port)
        else edge
        for edge in graph.edges
    )
    fed = replace(graph, nodes=(node, *graph.nodes), edges=edges)
    return without_dead_nodes(candidate.changed(replace(candidate.model, graph=fed)))


def bypass_nodes(search: ReductionSearch) -> None:
    """Bypass operations: each is replaced by one of its inputs, in a body also by a constant."""
    for address in [place.address for place in graphs(search.best.model)]:
        tried: set[LayerId] = set()
        while (layer := _untried(search.best.model, address, tried)) is not None:
            tried.add(layer)
            for smaller in _without_node(search.best, address, layer):
                if search.accepts(smaller):
                    break


def _untried(model: Model, address: str, tried: set[LayerId]) -> LayerId | None:
    """Return the last operation of a graph that was not tried; None if the graph is gone."""
    place = _place(model, address)
    if place is None:
        return None
    layers = [layer for layer in computing_layers(place.graph) if layer not in tried]
    return layers[-1] if layers else None


def _place(model: Model, address: str) -> PlacedGraph | None:
    return next((place for place in graphs(model) if place.address == address), None)


def _without_node(candidate: Candidate, address: str, layer: LayerId) -> Iterator[Candidate]:
    """Yield the candidate without an operation whose first output is replaced."""
    place = _place(candidate.model, address)
    assert place is not None
    graph, node = place.graph, place.graph.by_id[layer]
    label = f"{address}/{place.labels[layer]}"
    value = _recorded(candidate, label)
    if value is None or len(node.outputs) != 1:
        return
    output = OutputRef(layer, 0)
    for source in dict.fromkeys(graph.sources[layer]):
        if source is None:
            continue
        other = _recorded(candidate, f"{address}/{place.labels[source.layer]}:{source.output}")
        if other is not None and (other.dtype, other.shape) == (value.dtype, value.shape):
            yield _replaced(candidate, address, graph, {output: source})
    if address != ROOT and value.size <= _MAX_CONSTANT:
        yield _with_constant(candidate, address, graph, node, value)


def _recorded(candidate: Candidate, address: str) -> np.ndarray | None:
    """Return the last value of a tensor as an array of numbers; None if there is none."""
    try:
        value: Any = candidate.run.value(address)
    except EngineError:
        return None
    is_number = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf"
    return np.asarray(value) if is_number else None


def _replaced(
    candidate: Candidate, address: str, graph: ModelGraph, sources: dict[OutputRef, OutputRef]
) -> Candidate:
    model = with_graph(candidate.model, address, fed_by(graph, sources))
    return without_unused(candidate.changed(model))


def _with_constant(
    candidate: Candidate, address: str, graph: ModelGraph, node: Node, value: np.ndarray
) -> Candidate:
    """Return the candidate with an operation replaced by its last recorded value."""
    port: Port = node.outputs[0]
    constant = constant_node(
        node.id,
        node.name,
        port,
        Constant.of(value),
        is_onnx=candidate.model.dialect == "onnx",
    )
    nodes = tuple(constant if each.id == node.id else each for each in graph.nodes)
    edges = tuple(edge for edge in graph.edges if edge.to_layer != node.id)
    model = with_graph(candidate.model, address, replace(graph, nodes=nodes, edges=edges))
    return without_unused(candidate.changed(model))
