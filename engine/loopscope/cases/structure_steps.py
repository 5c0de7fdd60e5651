"""Steps of a reduction that make the structure of a model smaller.

They cut the model into a body, to an output, or to fewer nodes, and remove unused parts, iterations
and operations inside loops and branches. What a smaller model no longer computes, it receives as an
input with the value that the larger model had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from loopscope.cases.case import recorded_case
from loopscope.cases.fault_search import Candidate, ReductionSearch
from loopscope.errors import EngineError
from loopscope.ir.address import ROOT, PlacedGraph, graphs
from loopscope.ir.constant import Constant
from loopscope.ir.model import LOOP, LayerId, Model, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE
from loopscope.transform.cut import addresses
from loopscope.transform.extract import Extraction, boundary_outputs, constant_node, with_values
from loopscope.transform.graph_edits import (
    count_parts,
    fed_by,
    live_layers,
    with_graph,
    without_layers,
    without_unused_parts,
)

_MAX_ITERATIONS = 256
"""Maximum number of iterations of a loop whose body is tried alone."""


def enter_bodies(search: ReductionSearch) -> None:
    """Replace the model by a body in one iteration, as long as one shows the fault."""
    while any(
        _into_body(search, place)
        for place in graphs(search.best.model)
        if place.address.count("/") == 2
    ):
        continue


def _into_body(search: ReductionSearch, place: PlacedGraph) -> bool:
    assert place.owner is not None
    iterations = _iterations(search.best, place) if place.owner.is_loop else [None]
    for iteration in iterations:
        try:
            case = recorded_case(search.best.run, place.address, iteration=iteration)
        except EngineError:
            continue
        inside = f"{search.best.place or ROOT}{case.place.removeprefix(ROOT)}"
        if search.accepts(Candidate(case.model, tuple(case.inputs.values()), inside)):
            return True
    return False


def _iterations(candidate: Candidate, place: PlacedGraph) -> Sequence[int]:
    """Return iterations to try: the first and the last ones first, then those between."""
    record = candidate.run.record(place.address.rpartition("/")[0])
    count = getattr(record, "iterations", 0)
    if count > _MAX_ITERATIONS:
        return [*range(0, count, count // _MAX_ITERATIONS + 1), count - 1]
    return sorted(range(count), key=lambda number: min(number, count - 1 - number))


def keep_one_output(search: ReductionSearch) -> None:
    """Reduce the outputs to one if that shows the fault; otherwise remove what is not needed."""
    results = search.best.model.graph.results
    if len(results) < 2:
        return
    if any(search.accepts(_with_results(search.best, {result.id})) for result in results):
        return
    for result in results:
        remaining = {node.id for node in search.best.model.graph.results} - {result.id}
        if remaining:
            search.accepts(_with_results(search.best, remaining))


def _with_results(candidate: Candidate, remaining: Collection[LayerId]) -> Candidate:
    graph = candidate.model.graph
    dropped = {node.id for node in graph.results if node.id not in remaining}
    return without_dead_nodes(
        candidate.changed(replace(candidate.model, graph=without_layers(graph, dropped)))
    )


def without_dead_nodes(candidate: Candidate) -> Candidate:
    """Return the candidate without the nodes and inputs that no output needs."""
    graph = candidate.model.graph
    live = live_layers(graph, {node.id for node in graph.results})
    inputs = tuple(
        value
        for node, value in zip(graph.parameters, candidate.inputs, strict=True)
        if node.id in live
    )
    dead = {node.id for node in graph.nodes if node.id not in live}
    smaller = replace(candidate.model, graph=without_layers(graph, dead))
    return candidate.changed(smaller, inputs)


def remove_nodes(search: ReductionSearch) -> None:
    """Remove nodes of the outermost graph, the largest chunks first."""
    chunk = len(computing_layers(search.best.model.graph)) // 2
    while chunk:
        begin = 0
        while begin < len(layers := computing_layers(search.best.model.graph)):
            remaining = [*layers[:begin], *layers[begin + chunk :]]
            smaller = _part(search.best, remaining) if remaining else None
            if smaller is None or not search.accepts(smaller):
                begin += chunk
        chunk //= 2


def computing_layers(graph: ModelGraph) -> list[LayerId]:
    """Return the nodes of a graph that compute, in document order."""
    return [
        node.id
        for node in graph.nodes
        if node.type not in ("Parameter", "Result") and node.constant is None
    ]


def _part(candidate: Candidate, remaining: Collection[LayerId]) -> Candidate | None:
    """Return the model of some nodes, with recorded values as inputs; None if impossible."""
    model = candidate.model
    outputs = _outputs(model.graph, remaining)
    if not outputs:
        return None
    part = Extraction(model, next(graphs(model)), CATALOGUE).part(remaining, outputs)
    try:
        values = [
            candidate.run.value(address) for address in addresses(part, model.graph, "main")[0]
        ]
    except EngineError:
        return None
    return without_dead_nodes(candidate.changed(with_values(part.model, values), tuple(values)))


def _outputs(graph: ModelGraph, remaining: Collection[LayerId]) -> list[OutputRef]:
    """Return the outputs of the model among some nodes, or else what leaves the nodes."""
    own = [
        source
        for node in graph.results
        for source in graph.sources[node.id][:1]
        if source is not None and source.layer in remaining
    ]
    return own or [
        output for output in boundary_outputs(graph, remaining) if output in graph.consumers
    ]


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
