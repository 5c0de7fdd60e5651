"""The backward If of an If: one on the same condition, each of whose branches holds a copy of
the forward one and its derivatives.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.builder.branches import joined_branches
from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient.adopt import adopt
from loopscope.builder.gradient.flow import Flow
from loopscope.builder.gradient.loops_back import Reverse
from loopscope.builder.gradient.rules import filled
from loopscope.builder.gradient.step import BodyTensors, GradientStep, must_be_repeatable
from loopscope.builder.gradient.unused import drop_unused
from loopscope.builder.tensor import Tensor
from loopscope.ir.gradient_info import walks_back
from loopscope.ir.model import Body, InputMap


def back_through_if(step: GradientStep, reverse: Reverse) -> Mapping[int, Tensor]:
    """The adjoints of an If's inputs, by their numbers; zeros from a branch that does not use an
    input.
    """
    bodies = [step.node.body(name) for name in ("then", "else")]
    flows = [_flow(step, body) for body in bodies]
    externals = sorted(
        {
            entry.external
            for flow, body in zip(flows, bodies, strict=True)
            for entry in _entries(flow, body)
        }
    )
    condition = step.fed[0]
    if not externals or condition is None:
        return {}
    frames, given = [], []
    for body, flow in zip(bodies, flows, strict=True):
        frame = GraphFrame(
            step.graph,
            step.graph.frame,
            f"the {body.name} branch that walks back {step.node.name!r}",
        )
        with step.graph.inside(frame):
            made = _branch(step, body, flow, externals, reverse)
        kept = drop_unused(frame, 0, made)
        must_be_repeatable(step.graph, frame.nodes)
        moved = [kept.moved(one) for one in made]
        with step.graph.inside(frame):
            given.append([(frame.result(tensor, "gradient"), tensor) for tensor in moved])
        frames.append(frame)
    outputs = joined_branches(
        step.graph,
        "If",
        condition,
        frames,
        given,
        walks_back(step.node, [[one] for one in externals]),
    )
    return dict(zip(externals, outputs, strict=True))


def _flow(step: GradientStep, body: Body) -> Flow:
    wanted = {
        entry.internal
        for number, entry in enumerate(body.outer_outputs)
        if step.adjoints[number] is not None
    }
    active = {entry.internal for entry in body.inputs if entry.external in step.active}
    return Flow.of(BodyTensors.of(step, body), active, wanted)


def _entries(flow: Flow, body: Body) -> list[InputMap]:
    return [entry for entry in body.inputs if entry.internal in flow.parameters]


def _branch(
    step: GradientStep, body: Body, flow: Flow, externals: list[int], reverse: Reverse
) -> list[Tensor]:
    """The adjoint of each of the inputs in this branch."""
    graph, inside = step.graph, BodyTensors.of(step, body)
    bound = {}
    for entry in body.inputs:
        fed = step.fed[entry.external] if 0 <= entry.external < len(step.fed) else None
        if fed is not None:
            bound[entry.internal] = graph.frame.bring(fed)
    became = adopt(graph.frame, body.graph, inside.known, bound)
    seeds = []
    for number, output in enumerate(body.outer_outputs):
        adjoint, source = step.adjoints[number], inside.source(output.internal)
        if adjoint is not None and source is not None and output.internal in flow.results:
            seeds.append((became[source], graph.frame.bring(adjoint)))
    layers = list({entry.external: entry.internal for entry in _entries(flow, body)}.items())
    with graph.within("backward"):
        found = dict(
            zip(
                [external for external, _ in layers],
                reverse(seeds, [bound[layer] for _, layer in layers]),
                strict=True,
            )
        )
        made = []
        for external in externals:
            outer, adjoint = step.fed[external], found.get(external)
            assert outer is not None
            made.append(filled(graph, 0, graph.frame.bring(outer)) if adjoint is None else adjoint)
    return made
