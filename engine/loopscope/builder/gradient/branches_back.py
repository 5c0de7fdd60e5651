"""Backward If of an If: the same condition, with a copy of the forward branch and its derivatives
in each branch.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.builder.branches import build_if
from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient.backward_body import Reverse
from loopscope.builder.gradient.node_edits import adopt, drop_unused
from loopscope.builder.gradient.rules import filled
from loopscope.builder.gradient.step import BodyTensors, Flow, GradientStep, check_repeatable
from loopscope.builder.tensor import Tensor
from loopscope.ir.model import Body, InputMap
from loopscope.ir.rt_info import walks_back


def back_through_if(step: GradientStep, reverse: Reverse) -> Mapping[int, Tensor]:
    """Return the adjoints of an If's inputs by index; zeros from a branch that does not use an
    input.
    """
    bodies = [step.node.body(name) for name in ("then", "else")]
    flows = [_flow(step, body) for body in bodies]
    externals = sorted(
        {
            entry.external
            for flow, body in zip(flows, bodies, strict=True)
            for entry in _active_entries(flow, body)
        }
    )
    condition = step.fed[0]
    if not externals or condition is None:
        return {}
    frames, results = [], []
    for body, flow in zip(bodies, flows, strict=True):
        frame = GraphFrame(
            step.graph,
            step.graph.frame,
            f"the backward {body.name} branch of {step.node.name!r}",
        )
        with step.graph.inside(frame):
            branch_adjoints = _build_branch(step, body, flow, externals, reverse)
        pruned = drop_unused(frame, 0, branch_adjoints)
        check_repeatable(step.graph, frame.nodes)
        moved = [pruned.moved(tensor) for tensor in branch_adjoints]
        with step.graph.inside(frame):
            results.append([(frame.result(tensor, "gradient"), tensor) for tensor in moved])
        frames.append(frame)
    outputs = build_if(
        step.graph,
        "If",
        condition,
        frames,
        results,
        walks_back(step.node, [[tensor] for tensor in externals]),
    )
    return dict(zip(externals, outputs, strict=True))


def _flow(step: GradientStep, body: Body) -> Flow:
    target_results = {
        entry.internal
        for number, entry in enumerate(body.outer_outputs)
        if step.adjoints[number] is not None
    }
    active = {entry.internal for entry in body.inputs if entry.external in step.active}
    return Flow.of(BodyTensors.of(step, body), active, target_results)


def _active_entries(flow: Flow, body: Body) -> list[InputMap]:
    return [entry for entry in body.inputs if entry.internal in flow.parameters]


def _build_branch(
    step: GradientStep, body: Body, flow: Flow, externals: list[int], reverse: Reverse
) -> list[Tensor]:
    """Return the adjoint of each input in this branch."""
    graph, inside = step.graph, BodyTensors.of(step, body)
    bound = {}
    for entry in body.inputs:
        fed = step.fed[entry.external] if 0 <= entry.external < len(step.fed) else None
        if fed is not None:
            bound[entry.internal] = graph.frame.bring(fed)
    copies = adopt(graph.frame, body.graph, inside.known, bound)
    seeds = []
    for number, output in enumerate(body.outer_outputs):
        adjoint, source = step.adjoints[number], inside.source(output.internal)
        if adjoint is not None and source is not None and output.internal in flow.results:
            seeds.append((copies[source], graph.frame.bring(adjoint)))
    layers = list({entry.external: entry.internal for entry in _active_entries(flow, body)}.items())
    with graph.within("backward"):
        by_external = dict(
            zip(
                [external for external, _ in layers],
                reverse(seeds, [bound[layer] for _, layer in layers]),
                strict=True,
            )
        )
        adjoints = []
        for external in externals:
            outer, adjoint = step.fed[external], by_external.get(external)
            assert outer is not None
            adjoints.append(
                filled(graph, 0, graph.frame.bring(outer)) if adjoint is None else adjoint
            )
    return adjoints
