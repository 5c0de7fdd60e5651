"""Steps of a reduction that cut the model smaller: into a body, to an output, to fewer nodes.

What a smaller model no longer computes, it receives as an input with the value that the larger
model had.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from loopscope.cases.candidate import Candidate
from loopscope.cases.case import recorded_case
from loopscope.cases.search import ReductionSearch
from loopscope.errors import EngineError
from loopscope.ir.address import ROOT
from loopscope.ir.model import LayerId, ModelGraph, OutputRef
from loopscope.ir.replace import replace
from loopscope.ir.walk import PlacedGraph, graphs
from loopscope.ops.catalogue import CATALOGUE
from loopscope.transform.cut import addresses
from loopscope.transform.extract import Extraction, boundary_outputs, with_values
from loopscope.transform.graph_edits import live_layers, without_layers

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
