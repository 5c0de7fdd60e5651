"""Gradients of drawn loops and branches: central differences, stepping, generated code and
OpenVINO give the same.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from tests.engine.drawn.walks import drawn_walk, must_agree


@pytest.mark.chance
@pytest.mark.parametrize("seed", [2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610])
def test_drawn_walks_agree(seed: int) -> None:
    must_agree(drawn_walk(seed), with_openvino=False)


@pytest.mark.chance
@pytest.mark.parametrize("seed", [1, 7, 11, 17])
def test_drawn_walks_agree_with_openvino(seed: int) -> None:
    must_agree(drawn_walk(seed), with_openvino=True)


def test_the_gradient_of_a_weight_in_a_growing_loop_that_an_outer_loop_never_enters() -> None:
    """What is joined over no iterations has the lengths that are known: the weight's gradient
    was [0,3].
    """
    graph = builder.Graph("never")
    x, weight = graph.parameter("x", "f64", [2, 3]), graph.parameter("weight", "f64", [3, 3])
    bound = graph.parameter("bound", "f64", [])

    def grown(number: builder.Tensor, rows: builder.Tensor) -> tuple[builder.Tensor]:
        return (
            ops.concat(
                [rows, ops.tanh(ops.tanh(ops.reduce_mean(rows, [0], keep_dims=True)) @ weight)],
                axis=0,
            ),
        )

    def entered(number: builder.Tensor, h: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        (rows,) = builder.for_loop(1, grown, (h,), shape_invariants=([None, 3],))
        return number + 1, h + ops.reduce_sum(rows, [0], keep_dims=True)

    _, last = builder.while_loop(
        lambda _, h: ops.less(ops.reduce_sum(h, [0, 1]), bound),
        entered,
        (0, x),
        maximum_iterations=3,
    )
    made = loopscope.gradients(
        graph.model({"loss": ops.reduce_sum(last * last, [0, 1])}), "loss", ["x", "weight"]
    )
    for limit in (-100.0, 100.0):
        outputs = loopscope.run(
            made, {"x": np.ones((2, 3)), "weight": np.eye(3), "bound": limit}
        ).outputs
        assert [np.shape(one) for one in outputs] == [(), (2, 3), (3, 3)]


@pytest.mark.parametrize("shape", [[None, None, 3], [None, None, None], [None, 2, 3]])
def test_the_gradient_of_a_sequence_of_no_elements_has_its_shape(shape: list[int | None]) -> None:
    graph = builder.Graph("silence")
    x, xs = graph.parameter("x", "f64", [3]), graph.parameter("xs", "f64", shape)
    last = builder.foldl(lambda h, part: ops.tanh(h + ops.reduce_sum(part, [0])), xs, x)
    made = loopscope.gradients(graph.model({"loss": ops.reduce_sum(last, [0])}), "loss", ["xs"])
    for count in (0, 4):
        outputs = loopscope.run(made, {"x": np.ones(3), "xs": np.ones((count, 2, 3))}).outputs
        assert np.shape(outputs[1]) == (count, 2, 3)
