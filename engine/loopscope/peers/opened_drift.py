"""Drift from a runtime that runs an operator, such as LSTM, which is opened as a loop here.

The operator's outputs of all steps are compared with the iterations of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from loopscope.comparison.drift import TOLERANCE
from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.ir.model import LayerId, ModelGraph, OutputRef
from loopscope.ir.opened_operator import opened_operator
from loopscope.ir.walk import graphs
from loopscope.native.run_once import never
from loopscope.ops.declare import typed
from loopscope.ops.dialect import catalogue_for
from loopscope.peers.differ import beside
from loopscope.peers.drifting import RuntimeDrift, drift_beside
from loopscope.peers.probe_batches import batches
from loopscope.peers.probes import Probe, ProbeSelection
from loopscope.transform.recurrences import recurrence_of
from loopscope.transform.recurrences.layers import Layout, in_order_of_iterations

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
