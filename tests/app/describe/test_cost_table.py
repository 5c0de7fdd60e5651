"""Costs of a run as a table: products in a loop, open shapes, branches that did not run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope_app.describe.costs import by_measure, cost_table

WEIGHTS = np.ones((3, 3), np.float32)


def looped(length: int | None) -> loopscope.Model:
    """A product with nine weights in each of four iterations."""
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [length, 3])
    last = builder.for_loop(
        4, lambda _, y: [ops.matmul(y, WEIGHTS, name="product")], [x], name="loop"
    )[0]
    return graph.model(last)


def run_of(model: loopscope.Model, inputs: dict[str, np.ndarray]) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, inputs)
    debugger.run()
    return debugger


def test_an_operation_in_a_loop_has_the_cost_of_an_iteration_and_of_all() -> None:
    inputs = {"x": np.ones((5, 3), np.float32)}
    for length in (5, None):
        debugger = run_of(looped(length), inputs)
        table = cost_table(debugger, inputs)
        assert table is not None
        first = table.rows[0]
        assert first.address == "main/loop/body/product"
        assert first.cells == ("product", "MatMul", "180", "4", "45", "9", "60 bytes")
        assert table.sentence == (
            "9 parameters (36 bytes). 180 MACs so far, 100 % of them in `loop › product`."
        )
        assert by_measure(debugger, inputs)["MACs"] == {
            "main/loop": 45,
            "main/loop/body/product": 45,
        }


def test_before_a_run_the_costs_are_those_of_the_shapes() -> None:
    inputs = {"x": np.ones((5, 3), np.float32)}
    table = cost_table(loopscope.Debugger(looped(None), inputs), inputs)
    assert table is not None
    assert table.sentence == "9 parameters (36 bytes). 180 MACs per run."
    assert table.rows[0].cells[2:5] == ("", "", "45")


def test_a_branch_that_did_not_run_is_not_counted() -> None:
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [None, 3])
    taken = graph.parameter("taken", "boolean", [])
    result = builder.cond(
        taken,
        lambda: [ops.matmul(x, WEIGHTS, name="once")],
        lambda: [ops.matmul(ops.matmul(x, WEIGHTS), WEIGHTS)],
        name="if",
    )[0]
    inputs = {"x": np.ones((2, 3), np.float32), "taken": np.array(True)}
    table = cost_table(run_of(graph.model(result), inputs), inputs)
    assert table is not None
    assert "18 MACs so far" in table.sentence
    assert sum(row.macs_in_run or 0 for row in table.rows) == 18


def test_unknown_macs_have_their_own_reason() -> None:
    debugger = loopscope.Debugger(looped(None), {"x": np.ones((5, 3), np.float32)})
    table = cost_table(debugger, {})
    assert table is not None
    (row,) = (row for row in table.rows if row.name == "product")
    reasons = {0: "they did not run", 4: "their shapes depend on the run"}
    for runs, reason in reasons.items():
        known, unknown = (replace(row.cost, macs=macs) for macs in (45, None))
        rows = (replace(row, cost=known, runs=1), replace(row, cost=unknown, runs=runs))
        assert replace(table, rows=rows).sentence.endswith(
            f"MACs of 1 operation are unknown, because {reason}."
        )


def test_a_model_without_products_says_so() -> None:
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [0])
    debugger = loopscope.Debugger(graph.model(ops.relu(x)), [np.ones(0, np.float32)])
    table = cost_table(debugger, {})
    assert table is not None
    assert table.sentence == "No parameters and no MACs (multiplications that are added up)."
    assert by_measure(debugger, {}) == {}
