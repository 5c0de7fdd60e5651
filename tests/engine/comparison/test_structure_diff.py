"""Structures of two models on one graph: added, removed and changed operations, also in bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.comparison import INSIDE, StructureDiff, structure_diff
from loopscope.ir import labels
from loopscope.ir.address import nodes
from loopscope.view import default_folding, graph_view
from loopscope_samples import sample

X = np.ones((2, 3), np.float32)


def run_of(output: Any, graph: builder.Graph) -> loopscope.Debugger:
    debugger = loopscope.Debugger(graph.model({"out": output}), [X])
    debugger.run()
    return debugger


def flat(*operations: str, keep_dims: bool = False, shift: float = 1.0) -> loopscope.Debugger:
    """Named operations after each other, then a shift and a sum."""
    graph = builder.Graph()
    value = graph.parameter("x", "f32", [2, 3])
    for name in operations:
        value = getattr(ops, name)(value, name=name)
    value = ops.add(value, np.float32(shift), name="shift")
    return run_of(ops.reduce_sum(value, [0], keep_dims=keep_dims, name="sum"), graph)


def looped(*, clipped: bool) -> loopscope.Debugger:
    graph = builder.Graph()

    def body(_: Any, y: Any) -> list[Any]:
        y = ops.add(y, np.float32(1), name="step")
        return [ops.relu(y, name="clip")] if clipped else [y]

    x = graph.parameter("x", "f32", [2, 3])
    return run_of(builder.for_loop(3, body, [x], name="loop")[0], graph)


def found(diff: StructureDiff) -> dict[str, tuple[str, str]]:
    return {
        change.address.removeprefix("main/"): (change.status, change.words)
        for change in diff.changes
    }


@pytest.mark.parametrize(
    ("left", "right", "changes", "sentence"),
    [
        (flat("exp"), flat("exp"), {}, "The structure is equal: 3 operations."),
        (
            flat("exp"),
            flat("exp", "tanh"),
            {"tanh": ("added", "")},
            "Operations: 1 added; 3 unchanged.",
        ),
        (
            flat(),
            flat(keep_dims=True, shift=2.0),
            {
                "shift": ("changed", "input 1: other stored values"),
                "sum": ("changed", "f32 [3] → f32 [1,3]; keep_dims: false → true"),
            },
            "Operations: 2 changed; 0 unchanged.",
        ),
        (
            looped(clipped=False),
            looped(clipped=True),
            {"loop": ("changed", INSIDE), "loop/body/clip": ("added", "")},
            "Operations: 1 added, 1 changed; 1 unchanged.",
        ),
    ],
)
def test_changes_of_two_models(
    left: loopscope.Debugger,
    right: loopscope.Debugger,
    changes: dict[str, tuple[str, str]],
    sentence: str,
) -> None:
    diff = structure_diff(left, right)
    assert found(diff) == changes
    assert diff.sentence == sentence


def test_the_reverse_of_an_addition_is_a_removal() -> None:
    diff = structure_diff(looped(clipped=True), looped(clipped=False))
    assert found(diff)["loop/body/clip"] == ("removed", "")


def test_another_operation_of_one_name_is_a_change() -> None:
    models = []
    for operation in (ops.relu, ops.sigmoid):
        graph = builder.Graph()
        value = operation(graph.parameter("x", "f32", [2, 3]), name="gate")
        models.append(run_of(value, graph))
    assert found(structure_diff(*models)) == {"gate": ("changed", "ReLU → Sigmoid")}


def test_the_joined_model_connects_what_was_added() -> None:
    diff = structure_diff(flat("exp"), flat("exp", "tanh"))
    label = labels(diff.model.graph)
    edges = {(label[edge.from_layer], label[edge.to_layer]) for edge in diff.model.graph.edges}
    assert {("exp", "shift"), ("exp", "tanh"), ("tanh", "shift")} <= edges
    view = graph_view(diff.model, default_folding(diff.model))
    assert "main/tanh" in {node.address for node in view.nodes}


@pytest.mark.parametrize("name", ["collatz", "lstm_melody", "map_with_cond"])
def test_a_sample_is_equal_to_itself(name: str) -> None:
    found_sample = sample(name)
    assert found_sample is not None
    model = loopscope.read_model(found_sample.model)
    runs = [loopscope.Debugger(model, found_sample.sets[0].arrays()) for _ in range(2)]
    for run in runs:
        run.run()
    diff = structure_diff(*runs)
    assert not diff.changes
    assert [address for address, _ in nodes(diff.model)] == [address for address, _ in nodes(model)]
    assert diff.model.graph.edges == model.graph.edges
