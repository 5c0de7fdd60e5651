"""Costs of a node in words, with the shapes of the run where the file leaves them open."""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope_app.describe.costs import cost_rows, model_costs
from loopscope_app.describe.node_index import places


def product(length: int | None) -> loopscope.Model:
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [length, 3])
    return graph.model(ops.matmul(x, np.ones((3, 4), np.float32), name="product"))


def rows(model: loopscope.Model, *, run: bool) -> dict[str, str]:
    debugger = loopscope.Debugger(model, [np.ones((5, 3), np.float32)])
    if run:
        debugger.run()
    place = places(model)["main/product"]
    return dict(cost_rows(place, debugger, "main/product" if run else ""))


def test_a_node_with_fixed_shapes_has_its_costs_before_it_runs() -> None:
    assert rows(product(5), run=False) == {
        "parameters": "12 (48 bytes)",
        "MACs": "60",
        "output": "80 bytes",
    }


def test_open_shapes_are_those_of_the_run() -> None:
    assert rows(product(None), run=False) == {"parameters": "12 (48 bytes)"}
    assert rows(product(None), run=True) == {"parameters": "12 (48 bytes)", "MACs": "60"}


def test_costs_are_computed_once_per_model() -> None:
    model = product(5)
    assert model_costs(model) is model_costs(model)
