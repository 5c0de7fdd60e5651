"""Drift between a runtime and our run of the same model: every value of every iteration compared.

The outputs of an operator that is opened as a loop here, such as LSTM, are compared step by step
with the iterations of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.comparison.divergence import AlignedRows, Divergence, align
from loopscope.comparison.drift import TOLERANCE, Drift, values_apart
from loopscope.comparison.matched_slots import (
    ComparedValues,
    MatchedSlots,
    first_over,
    matched_slots,
    other_choice,
)
from loopscope.comparison.matching import match
from loopscope.debug.inputs import Inputs
from loopscope.debug.lookup import value_names
from loopscope.debug.run import Run
from loopscope.executor.plan.slots import ProgramIndex
from loopscope.ir.address import graphs
from loopscope.ir.model import LayerId, ModelGraph, OutputRef
from loopscope.ir.readable import significant
from loopscope.ir.rt_info import opened_operator
from loopscope.native.run_once import never
from loopscope.ops.declare import typed
from loopscope.ops.dialect import catalogue_for
from loopscope.peers import fused_outputs, inexact_products
from loopscope.peers.comparing import counted, not_compared
from loopscope.peers.differ import RuntimeComparison, beside, replacements
from loopscope.peers.fused_outputs import Replacements
from loopscope.peers.other_runtimes import batches, rows_of
from loopscope.peers.probes import Probe, ProbeSelection
from loopscope.transform.recurrences import recurrence_of
from loopscope.transform.recurrences.layers import Layout, in_order_of_iterations


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeDrift:
    """Result of comparing a run with its runtime."""

    runtime: str
    """Name and version."""
    drift: Drift
    replaced: tuple[str, ...]
    """A sentence for each loop or branch that the runtime replaced, if outputs differ and inner
    values agree.
    """
    refused: str
    """Reason why the runtime did not return inner values; empty if it did."""
    cause: str
    """Reason why only outputs differ, if the runtime confirmed it."""
    values: Mapping[str, np.ndarray]
    """Runtime's values by address without iterations, with one row per row of the pair."""

    @property
    def sentence(self) -> str:
        """Summary in a few sentences."""
        apart = self.drift.first is None and self.drift.outputs > self.drift.tolerance
        outputs = (
            f"The outputs of {self.runtime} are up to {significant(self.drift.outputs, 2)} apart."
            if apart
            else ""
        )
        refused = f"The values inside were not compared: {self.refused}." if self.refused else ""
        inside = self.drift.choice if self.refused else self.drift.sentence
        return " ".join(
            part for part in (outputs, *self.replaced, self.cause, inside, refused) if part
        )


def drift_from_runtime(
    run: Run,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> RuntimeDrift:
    """Compare a finished run with its model's runtime, as ``against``, and return the error of
    every iteration.

    Outputs come from the unmodified model. Inner values come from a model with additional outputs.
    Raises the errors of ``against``.
    """
    return drift_beside(
        beside(
            run, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped
        ),
        tolerance,
    )


def drift_beside(both: RuntimeComparison, tolerance: float = TOLERANCE) -> RuntimeDrift:
    """Return the drift between a run and the values of its runtime."""
    run, answer = both.run, both.answer
    drift, values = _drift(both, tolerance)
    sentences: tuple[str, ...] = ()
    cause = ""
    if drift.first is None and drift.outputs > tolerance:
        names = [signature.name for signature in run.model.outputs]
        if not answer.refused:
            replaced = replacements(both, names, tolerance)
            sentences = replaced.sentences
            drift, values = _with_steps(run, drift, values, replaced)
        if not sentences:
            cause = inexact_products.quantization_sentence(
                run, both.feeds, names, both.patience, tolerance, both.document
            )
    return RuntimeDrift(answer.runtime, drift, sentences, answer.refused, cause, values)


def _with_steps(
    run: Run, drift: Drift, values: Mapping[str, np.ndarray], replaced: Replacements
) -> tuple[Drift, Mapping[str, np.ndarray]]:
    """Return a drift and its values with each step of the operators that replace loops.

    The runtime computes a step in the loop where its inner values are requested, and in the
    operator otherwise. The operator's values count.
    """
    rows = _aligned_rows(run)
    pairs = [
        (_exact_pair(run, probe, peer, rows, drift.tolerance), peer)
        for probe, peer in fused_outputs.steps(run, replaced.values)
    ]
    if not pairs:
        return drift, values
    names = {pair.one for pair, _ in pairs}
    merged = [pair for pair in drift.pairs if pair.one not in names]
    merged += [pair for pair, _ in pairs]
    merged.sort(key=lambda pair: (pair.program.index, pair.position))
    return (
        replace(drift, pairs=tuple(merged), first=first_over(merged)),
        {**values, **{pair.one: peer for pair, peer in pairs}},
    )


def _drift(both: RuntimeComparison, tolerance: float) -> tuple[Drift, Mapping[str, np.ndarray]]:
    run, answer = both.run, both.answer
    rows = _aligned_rows(run)
    left_out = dict(both.left_out)
    pairs: list[MatchedSlots] = []
    divergences: list[Divergence] = []
    values: dict[str, np.ndarray] = {}
    for probe, peer in answer.values.items():
        peer_rows = rows_of(probe, peer)
        if peer_rows is None:
            left_out["of another shape"] = left_out.get("of another shape", 0) + 1
            continue
        if peer.shape[: len(probe.lengths)] != probe.lengths:
            divergences.append(_count_divergence(run, probe, peer.shape[0], len(peer_rows)))
        if len(peer_rows):
            pairs.append(_exact_pair(run, probe, peer_rows, rows, tolerance))
            values[pairs[-1].one] = peer_rows
    for probe, estimated in both.estimated.items():
        if len(estimated.relative):
            pairs.append(_pair_of(run, probe, estimated, rows, tolerance))
    pairs.sort(key=lambda pair: (pair.program.index, pair.position))
    outputs = zip(run.result.outputs, answer.outputs, strict=True)
    error = values_apart((own, peer) for own, peer in outputs if not not_compared(own, peer))
    named_outputs = zip(run.model.outputs, run.result.outputs, answer.outputs, strict=True)
    choice = other_choice((signature.name, own, peer) for signature, own, peer in named_outputs)
    divergences.sort(key=lambda parting: parting.step)
    return Drift(
        tolerance,
        tuple(pairs),
        first_over(pairs),
        tuple(divergences[:1]),
        ((), ()),
        left_out,
        error,
        choice=choice,
    ), values


def _aligned_rows(run: Run) -> Mapping[ProgramIndex, AlignedRows]:
    """Return the rows of each graph of a run beside themselves."""
    return {
        graph.left.index: aligned for graph, aligned in align(run, run, match(run, run))[0].items()
    }


def _exact_pair(
    run: Run,
    probe: Probe,
    peer_rows: np.ndarray,
    rows: Mapping[ProgramIndex, AlignedRows],
    tolerance: float,
) -> MatchedSlots:
    return _pair_of(
        run, probe, Deviations.of(probe.expected[: len(peer_rows)], peer_rows), rows, tolerance
    )


def _pair_of(
    run: Run,
    probe: Probe,
    deviations: Deviations,
    rows: Mapping[ProgramIndex, AlignedRows],
    tolerance: float,
) -> MatchedSlots:
    whole, count = rows[probe.program.index], len(deviations.relative)
    aligned = AlignedRows(
        whole.left[:count], whole.right[:count], whole.execution[:count], whole.iteration[:count]
    )
    place = f"{probe.program.address}/{value_names(probe.program)[probe.slot]}"
    values = ComparedValues(
        place,
        place,
        "name",
        (probe.program, probe.program),
        (probe.slot, probe.slot),
        probe.position + 1,
    )
    return matched_slots(run, aligned, values, deviations, tolerance)


def _count_divergence(run: Run, probe: Probe, times: int, common: int) -> Divergence:
    """Return the divergence of the outermost loop around a value whose iteration count differs."""
    body = [program for program in probe.program.around() if program.loop is not None][-1]
    address = run.timeline.address(body, 0).rpartition("[")[0]
    step = run.timeline.step_at(probe.program, max(common - 1, 0), len(probe.program.instructions))
    return Divergence(
        "iterations",
        address,
        step,
        counted(probe.lengths[0], "iteration"),
        counted(times, "iteration"),
        "",
    )


_Place = tuple[str, LayerId, int]
"""Address of a graph, id of a node, and number of its output."""


def drift_of_opened(
    opened: Run,
    closed: Run,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> RuntimeDrift:
    """Compare a finished run of an opened model with the runtime on the model as it was.

    ``closed``: a finished run of the model before its operators were opened, on the same inputs.
    Values of the opened model that the model did not have are compared only if they are steps of an
    operator's output. Raises the errors of ``drift_from_runtime``.
    """
    both = beside(
        closed, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped
    )
    selection = ProbeSelection(opened, nameless=True)
    own = {
        (probe.program.address, probe.layer, probe.output): probe
        for part in batches(selection.candidates)
        for probe in selection.probes(part)
        if probe.fingerprint is None
    }
    places = {place.address: place.graph for place in graphs(opened.model)}
    values: dict[Probe, np.ndarray] = {}
    for probe, peer in both.answer.values.items():
        graph = places[probe.program.address]
        closed_graph = _graph_at(closed, probe.program.address)
        matched = _own_place(closed_graph, graph, probe)
        same = own.get((probe.program.address, *matched)) if matched else None
        if same is not None and same.expected.shape == probe.expected.shape:
            values[same] = peer
        values.update(_steps(closed, opened, graph, probe, peer, own))
    answer = replace(both.answer, values=values, estimated={})
    return drift_beside(replace(both, run=opened, answer=answer, estimated={}), tolerance)


def _graph_at(run: Run, address: str) -> ModelGraph:
    return next(place.graph for place in graphs(run.model) if place.address == address)


def _own_place(closed: ModelGraph, opened: ModelGraph, probe: Probe) -> tuple[LayerId, int] | None:
    """Return the node and output of the opened graph that compute a value of the closed graph.

    An output of an opened operator is found through a node that reads it.
    """
    node = opened.by_id.get(probe.layer)
    if node is None or not opened_operator(node):
        return probe.layer, probe.output
    for layer, position in closed.consumers.get(OutputRef(probe.layer, probe.output), ()):
        reader = opened.by_id.get(layer)
        if reader is None or opened_operator(reader):
            continue
        source = opened.sources[layer][position]
        return None if source is None else (source.layer, source.output)
    return None


def _steps(
    closed: Run,
    opened: Run,
    graph: ModelGraph,
    probe: Probe,
    peer: np.ndarray,
    own: Mapping[_Place, Probe],
) -> Iterator[tuple[Probe, np.ndarray]]:
    """Yield the probe of the steps of a loop, and the runtime's values of these steps.

    ``probe``: the first output of the operator that is opened as this loop, which has all steps.
    """
    loop = graph.by_id.get(probe.layer)
    if loop is None or not opened_operator(loop) or probe.output or probe.fingerprint is not None:
        return
    body = loop.bodies[0]
    entry = next((entry for entry in body.outer_outputs if entry.axis is not None), None)
    if entry is None or entry.axis is None:
        return
    source = body.graph.sources[entry.internal][0]
    address = f"{probe.program.address}/{_label(opened, probe)}/{body.name}"
    step_probe = own.get((address, source.layer, source.output)) if source else None
    ordered = _as_iterated(closed, probe, peer)
    if step_probe is None or ordered is None:
        return
    outer = len(probe.lengths)
    axis = outer + entry.axis
    steps = np.expand_dims(np.moveaxis(ordered, axis, outer), axis + 1)
    if steps.shape[outer + 1 :] == step_probe.expected.shape[1:]:
        yield step_probe, steps


def _label(run: Run, probe: Probe) -> str:
    program = next(
        program for program in run.plan.programs if program.address == probe.program.address
    )
    return next(label for label, layer in program.layer_of_label.items() if layer == probe.layer)


def _as_iterated(closed: Run, probe: Probe, peer: np.ndarray) -> np.ndarray | None:
    """Return the runtime's output in the order and layout of the loop's own output.

    None if the operator runs backwards inside another loop, where lengths may differ.
    """
    instruction = probe.program.instructions[probe.position]
    node = instruction.node
    operation = catalogue_for(closed.model.dialect).find(node.type, node.opset)
    recurrence = recurrence_of(node, closed.model.dialect)
    if operation is None or recurrence is None:
        return None
    attributes = typed(operation, node.attributes)
    backwards = {"reverse": [True], "bidirectional": [False, True]}.get(
        str(attributes.get("direction", "forward"))
    )
    if backwards is None:
        return None if attributes.get("reverse") else peer
    if probe.lengths:
        return None
    layout: Layout = "time, direction, batch"
    if recurrence.domain == "openvino":
        layout = "batch, direction, time"
    elif attributes.get("layout"):
        layout = "batch, time, direction"
    lengths = None
    position = recurrence.inputs.index("lengths")
    sources = closed.model.graph.sources[node.id]
    if position < len(sources) and (source := sources[position]) is not None:
        slot = probe.program.slots[source.layer, source.output]
        lengths = np.asarray(closed.values.get(closed.timeline, probe.program, 0, slot))
    return in_order_of_iterations(peer, layout, backwards, lengths)
