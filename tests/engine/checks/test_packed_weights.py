"""Square weights that are multiplied by both ways: the rule names them, and OpenVINO computes
such products wrongly.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.checks.samples import SAMPLES

SQUARE = np.arange(9, dtype=np.float32).reshape(3, 3)
WIDE = np.arange(12, dtype=np.float32).reshape(3, 4)


def both_ways(weights: np.ndarray, others: np.ndarray, second: bool) -> loopscope.Model:
    graph = builder.Graph("both")
    x = graph.parameter("x", "f32", [2, weights.shape[0]])
    there = ops.matmul(x, graph.constant(weights), transpose_a=False, transpose_b=False)
    return graph.model(
        ops.matmul(there, graph.constant(others), transpose_a=False, transpose_b=second)
    )


def in_a_loop() -> loopscope.Model:
    graph = builder.Graph("loop")
    x, w = graph.parameter("x", "f32", [2, 3]), graph.constant(SQUARE)
    (last,) = builder.for_loop(
        2, lambda _, h: ops.matmul(h @ w, w, transpose_a=False, transpose_b=True), [x]
    )
    return graph.model(last)


def codes(model: loopscope.Model) -> list[str]:
    return [one.code for one in check(model, CATALOGUE).diagnostics if one.code == "LS919"]


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (both_ways(SQUARE, SQUARE, True), True),
        (both_ways(SQUARE, SQUARE.copy(), True), True),
        (both_ways(SQUARE, SQUARE, False), False),
        (both_ways(SQUARE, SQUARE + 1, True), False),
        (both_ways(WIDE, WIDE, True), False),
        (in_a_loop(), True),
    ],
    ids=["the same", "equal ones", "one way", "others", "not square", "from outside of a loop"],
)
def test_only_square_weights_that_are_turned_are_named(model: loopscope.Model, found: bool) -> None:
    assert codes(model) == ["LS919"] * found


def test_openvino_is_wrong_where_the_rule_warns(tmp_path: Path) -> None:
    """Once this fails, the rule and what gradients do about it can go."""
    model = SAMPLES["LS919"].model()
    loopscope.write_model(model, tmp_path / "model.xml")
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    (theirs,) = (
        openvino.Core()
        .compile_model(tmp_path / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([x])
        .values()
    )
    (ours,) = loopscope.run(model, [x]).outputs
    np.testing.assert_array_equal(ours, x @ SQUARE @ SQUARE.T)
    assert not np.allclose(theirs, ours)
