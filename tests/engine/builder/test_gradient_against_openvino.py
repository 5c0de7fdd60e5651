"""Gradients of loops and branches are plain IR: stepped, by generated code and in OpenVINO they
are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import openvino
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import Tensor
from loopscope.ir.element_type import REAL_FLOATS
from tests.engine.builder.both import run_both
from tests.engine.builder.walked_back import CASES, GROWING, Case, arguments
from tests.engine.drawn.models import drawn_model, same_bits


def _model(case: Case) -> tuple[loopscope.Model, list[np.ndarray]]:
    graph = builder.Graph(case.name)
    parameters = [
        graph.parameter(f"x{number}", "f64", shape) for number, shape in enumerate(case.shapes)
    ]
    outputs = [
        leaf.value
        for leaf in leaves(case.function(*parameters))
        if leaf.value.element_type in REAL_FLOATS
    ]
    return graph.model([*outputs, *builder.gradients(outputs, parameters)]), arguments(case)


def _stepped(model: loopscope.Model, feeds: list[np.ndarray]) -> tuple[object, ...]:
    debugger = loopscope.Debugger(model, feeds, seed=1)
    while debugger.state == "paused":
        debugger.step()
    assert debugger.state == "finished", debugger.failure
    return tuple(debugger.result.outputs)


# OpenVINO 2026.4 keeps what an inner loop joined the last time when it runs no times the next, in
# forward loops too; and its loops join parts of equal lengths only.
_AS_OPENVINO = [
    case for case in CASES if case.name not in {"a_loop_in_a_loop_that_may_not_run", *GROWING}
]


@pytest.mark.parametrize("case", _AS_OPENVINO, ids=lambda case: case.name)
def test_openvino_computes_the_same_gradient(case: Case) -> None:
    model, feeds = _model(case)
    # OpenVINO's CPU computes f64 in f32; its tanh and exp are approximations there, which a few
    # iterations carry on.
    outputs = run_both(model, feeds, tolerance=2e-4).outputs
    assert all(
        same_bits(mine, other) for mine, other in zip(outputs, _stepped(model, feeds), strict=True)
    )


@pytest.mark.parametrize("second", [False, True], ids=["first", "second"])
def test_openvino_walks_back_what_hands_its_adjoint_on_as_it_is(second: bool) -> None:
    """It makes a loop anew that carries what it was given, and refused the slices of this one,
    which go backwards.
    """
    graph = builder.Graph("sum")
    xs, start = graph.parameter("xs", "f32", [4, 3]), graph.parameter("start", "f32", [3])
    last = builder.foldl(lambda total, x: total + x * x, xs, start)
    found = builder.gradients([last * last * last], [xs, start])
    if second:
        found = builder.gradients([one * one for one in found], [xs, start])
    feeds = [
        np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3),
        np.array([0.1, 0.2, 0.3], np.float32),
    ]
    outputs = run_both(graph.model(found), feeds, tolerance=1e-4).outputs
    total = feeds[1] + (feeds[0] ** 2).sum(0)
    if not second:
        np.testing.assert_allclose(outputs[0], 6 * total**2 * feeds[0], rtol=1e-5)
    assert loopscope.check_gradient(
        graph.model({"loss": ops.reduce_sum(last * last, [0])}), feeds
    ).ok


@pytest.mark.parametrize("seed", [8, 13, 40, 67, 72, 86, 105, 112])
def test_gradients_of_drawn_models_are_the_same_by_stepping_and_by_generated_code(
    seed: int,
) -> None:
    model, (feeds, _) = drawn_model(seed)
    targets = [one.name for one in model.outputs if one.element_type in REAL_FLOATS]
    sources = [one.name for one in model.inputs if one.element_type in REAL_FLOATS]
    made = loopscope.gradients(model, targets, sources)
    outputs = loopscope.run(made, feeds, seed=1).outputs
    assert all(
        same_bits(mine, other) for mine, other in zip(outputs, _stepped(made, feeds), strict=True)
    )


def test_openvino_survives_the_gradient_of_an_average_pool() -> None:
    """An AvgPool-16 that leaves its dilations out ends OpenVINO's process: what is built here
    says them.
    """
    graph = builder.Graph("pool")
    x = graph.parameter("x", "f32", [2, 3, 5, 4])
    made = ops.avg_pool(
        x, kernel=[3, 2], strides=[2, 1], pads_begin=[1, 0], pads_end=[1, 0], exclude_pad=True
    )
    model = graph.model([made, *builder.gradients([made * made], [x])])
    run_both(
        model,
        [np.random.default_rng(0).uniform(0.2, 0.9, (2, 3, 5, 4)).astype(np.float32)],
        tolerance=1e-5,
    )


def test_openvino_reads_the_gradient_of_a_reduction_over_no_axis(tmp_path: Path) -> None:
    """It refuses an Unsqueeze of no axis. Its CPU has no such reduction at all, so that is as
    far as it comes.
    """
    graph = builder.Graph("reduction")
    x = graph.parameter("x", "f32", [2, 3])
    model = graph.model(builder.gradients([ops.reduce_sum(x * x, np.zeros(0, np.int64))], [x]))
    loopscope.write_model(model, tmp_path / "m.xml")
    assert openvino.Core().read_model(tmp_path / "m.xml").outputs[0].partial_shape.to_shape() == [
        2,
        3,
    ]
    np.testing.assert_array_equal(
        loopscope.run(model, [np.full((2, 3), 3, np.float32)]).outputs[0], np.full((2, 3), 6)
    )


def _square(x: Tensor, *shape: int) -> Tensor:
    drawn = np.random.default_rng(3).standard_normal(shape or (4, 4)).astype(np.float32) / 2
    return x.graph.constant(drawn)


def _outside(x: Tensor) -> Tensor:
    w = _square(x)
    return builder.for_loop(3, lambda _, h: ops.tanh(h @ w), [x])[0]


SQUARE: Mapping[str, Callable[[Tensor], Tensor]] = {
    "a product": lambda x: ops.matmul(x, _square(x), transpose_a=False, transpose_b=False),
    "a product with what is turned": lambda x: ops.matmul(
        x, _square(x), transpose_a=False, transpose_b=True
    ),
    "a loop": lambda x: builder.for_loop(3, lambda _, h: ops.tanh(h @ _square(x)), [x])[0],
    "a loop of weights from outside": _outside,
    "a stack": lambda x: ops.unsqueeze(x, np.array([0])) @ _square(x),
    "a cell": lambda x: ops.rnn_cell(x, x, _square(x), _square(x), _square(x, 4), hidden_size=4),
}
"""Products with square weights that are constant."""


@pytest.mark.parametrize("second", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("name", SQUARE)
def test_openvino_multiplies_by_square_weights_both_ways(name: str, second: bool) -> None:
    """Its CPU plugin packs a square constant once, for products with it and with what it is
    turned: one of the two is wrong.
    """
    graph = builder.Graph("square")
    x = graph.parameter("x", "f32", [2, 4])
    found = builder.gradients(ops.tanh(SQUARE[name](x)), [x])
    if second:
        found = builder.gradients([one * one for one in found], [x])
    run_both(
        graph.model(found), [np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)], tolerance=1e-4
    )
