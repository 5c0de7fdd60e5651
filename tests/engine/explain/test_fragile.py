"""Decisions that narrower floats would turn, and the margin of each iteration."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.explain import fragile, margin_at
from loopscope_app.describe.iteration_table import loop_columns, rows
from loopscope_app.describe.node_index import places


def searching() -> loopscope.Debugger:
    """A loop that goes on while a number is below 0.5, by steps that come to 0.4998 and end at
    0.6; its If asks for whole numbers.
    """
    graph = builder.Graph("search")
    steps = graph.constant(np.array([0.1, 0.4998, 0.6, 0.7], np.float32))
    number = builder.while_loop(
        lambda i, x: x < 0.5,
        lambda i, x: [
            i + 1,
            builder.cond(
                i > 1,
                lambda: builder.ops.gather(steps, i, 0),
                lambda: builder.ops.gather(steps, i, 0),
            ),
        ],
        [np.int32(0), np.float32(0)],
        name="search",
    )
    debugger = loopscope.Debugger(graph.model({"x": number[1]}), {})
    debugger.run()
    assert debugger.state == "finished", debugger.failure
    return debugger


def test_a_decision_that_bf16_would_turn() -> None:
    debugger = searching()
    record = debugger.record("main/search")
    assert record is not None
    assert record.iterations == 3
    (found,) = fragile(debugger)
    assert found.address == "main/search[1]"
    assert found.is_loop
    assert found.margin.otherwise == ("bf16",)
    assert found.margin.distance == pytest.approx(2e-4, rel=1e-2)
    assert (
        found.sentence
        == "Whether search · iteration 1 is followed by another was decided by 0.0002: bf16 would decide otherwise."
    )
    debugger.seek(found.step)
    assert debugger.cursor.previous.startswith("main/search[1]/body")
    assert fragile(debugger, limit=1) == ()


def test_the_margin_of_each_iteration() -> None:
    debugger = searching()
    columns = loop_columns(places(debugger.model)["main/search"])
    assert [row.margin for row in rows(debugger, "main/search", columns, range(3))] == [
        "0.4",
        "0.0002, otherwise in bf16",
        "0.1",
    ]
    (branch,) = columns.branches
    assert margin_at(debugger, f"main/search[1]/body/{branch.label}") is None, (
        "it compares whole numbers"
    )
