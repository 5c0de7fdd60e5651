"""Removing what no output needs changes no output."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.ir.address import graphs
from loopscope.ir.model import Model
from loopscope.ir.replace import replace
from loopscope.transform.graph_edits import without_layers, without_unused_parts
from tests.draws import draws
from tests.engine.drawn.models import drawn_model


def ports(model: Model) -> int:
    return sum(
        len(node.inputs) + len(node.outputs)
        for place in graphs(model)
        for node in place.graph.nodes
    )


def with_one_output(model: Model, number: int) -> Model:
    dropped = {node.id for node in model.graph.results} - {model.graph.results[number].id}
    return replace(model, graph=without_layers(model.graph, dropped))


@given(st.integers(0, 10_000), st.integers(0, 3))
@settings(max_examples=draws(40), deadline=None)
def test_outputs_of_drawn_models_do_not_change(seed: int, number: int) -> None:
    model, feeds = drawn_model(seed)
    one = with_one_output(model, number % len(model.graph.results))
    smaller = without_unused_parts(one)
    runs = [
        loopscope.Debugger(each, feeds[0], seed=1, limits=loopscope.Limits(iterations=2000))
        for each in (one, smaller)
    ]
    for run in runs:
        run.run()
    if runs[0].state == "finished":
        values = [np.asarray(run.result.outputs[0]).tobytes() for run in runs]
        assert values[0] == values[1]
    assert ports(smaller) <= ports(one)


def test_a_carried_value_that_nothing_needs_is_removed() -> None:
    graph = builder.Graph("two states")
    x, y = graph.parameter("x", "f32", []), graph.parameter("y", "f32", [])
    outputs = builder.for_loop(3, lambda i, a, b: [a + 1.0, b * 2.0], [x, y])
    model = with_one_output(graph.model({"a": outputs[0], "b": outputs[1]}), 0)
    (loop,) = [node for node in without_unused_parts(model).graph.nodes if node.type == "Loop"]
    assert len(loop.outputs) == 1
    assert "Multiply" not in {node.type for node in loop.bodies[0].graph.nodes}
    assert len(loop.bodies[0].back_edges) < len(
        next(node for node in model.graph.nodes if node.type == "Loop").bodies[0].back_edges
    )
