"""Gradients through loops and branches against central differences, and again those of the
gradients.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import Tensor
from loopscope.ir.element_type import ElementType
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Operation
from loopscope.ops.derivative import Reverse
from loopscope.ops.infer import same
from tests.draws import share
from tests.engine.builder.walked_back import CASES, Case, arguments


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_gradient_is_that_of_central_differences(case: Case) -> None:
    found = loopscope.check_gradient(case.function, arguments(case))
    assert found.ok, found


def _first(case: Case, *given: Tensor) -> Any:
    outputs = [leaf.value for leaf in leaves(case.function(*given))]
    return builder.gradients(
        [one * one for one in outputs if one.element_type is ElementType.F64], list(given)
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", share(CASES), ids=lambda case: case.name)
def test_a_gradient_has_a_gradient(case: Case) -> None:
    found = loopscope.check_gradient(partial(_first, case), arguments(case))
    assert found.ok, found


def test_parts_of_different_lengths_that_are_joined_backwards() -> None:
    """ONNX and the builder join forwards only; IR has a stride of -1."""
    case = next(one for one in CASES if one.name == "a_growing_state_that_is_joined")
    graph = builder.Graph("joined")
    inputs = [
        graph.parameter(name, "f64", shape) for name, shape in zip("xw", case.shapes, strict=True)
    ]
    model = graph.model({"y": case.function(*inputs)})
    loop = next(node for node in model.graph.nodes if node.bodies)
    (body,) = loop.bodies
    outputs = tuple(
        one if one.axis is None else replace(one, start=-1, end=0, stride=-1)
        for one in body.outputs
    )
    assert outputs != body.outputs
    changed = replace(loop, bodies=(replace(body, outputs=outputs),))
    nodes = tuple(changed if node is loop else node for node in model.graph.nodes)
    backwards = replace(model, graph=replace(model.graph, nodes=nodes))
    x, w = arguments(case)
    forwards, turned = (loopscope.run(one, [x, w]).outputs[0] for one in (model, backwards))
    assert not np.array_equal(forwards, turned)
    found = loopscope.check_gradient(backwards, [x, w], "y", ["x", "w"])
    assert found.ok, found


def test_a_gradient_is_built_inside_a_loop_too() -> None:
    """Newton's method: the derivative is computed in each iteration, of what is computed in it."""

    def newton(guess: Tensor) -> Any:
        def body(i: Tensor, x: Tensor) -> Any:
            value = x * x * x - 2.0
            (slope,) = builder.gradients(value, x)
            return x - value / slope

        return builder.for_loop(8, body, [guess])

    graph = builder.Graph("newton")
    (root,) = newton(graph.parameter("guess", "f64", []))
    assert loopscope.run(graph.model(root), [np.float64(1.0)]).outputs[0] == pytest.approx(
        2 ** (1 / 3), abs=1e-14
    )


def test_what_nothing_depends_on_has_zeros() -> None:
    graph = builder.Graph("zeros")
    x, y = graph.parameter("x", "f32", [2, None]), graph.parameter("y", "f32", [3])
    (none,) = builder.gradients(ops.reduce_sum(y * y, [0]), x)
    found = loopscope.run(graph.model(none), [np.ones((2, 4), np.float32), np.ones(3, np.float32)])
    np.testing.assert_array_equal(found.outputs[0], np.zeros((2, 4), np.float32))


def test_weights_of_elements_are_given_as_in_tensorflow() -> None:
    graph = builder.Graph("weights")
    x = graph.parameter("x", "f32", [3])
    found = builder.gradients([x * x, x], [x], [np.array([1.0, 10.0, 100.0], np.float32), None])
    outputs = loopscope.run(graph.model(found), [np.array([1, 2, 3], np.float32)]).outputs
    np.testing.assert_array_equal(outputs[0], np.array([3, 41, 601], np.float32))


@pytest.mark.parametrize("shape", [(), (1,), (1, 3), (3,)], ids=str)
def test_the_weights_of_one_tensor_may_stand_in_a_list(shape: tuple[int, ...]) -> None:
    """As for tf.gradients; what has the shape of the tensor is its weights."""
    graph = builder.Graph("one")
    x = graph.parameter("x", "f32", shape)
    weights = np.full(shape, 3, np.float32)
    given: list[Any] = [
        [weights],
        [graph.constant(weights)],
        weights.tolist(),
        [weights.tolist()],
        [None],
    ]
    found = [builder.gradients(x * x, [x], one)[0] for one in given]
    outputs = loopscope.run(
        graph.model({f"{number}": one for number, one in enumerate(found)}),
        {"x": np.ones(shape, np.float32)},
    ).outputs
    for output, weight in zip(outputs, [6, 6, 6, 6, 2], strict=True):
        np.testing.assert_array_equal(output, np.full(shape, weight, np.float32))


def test_a_refused_gradient_leaves_no_trace() -> None:
    """Nor outputs of a loop that was to be walked back after what cannot be."""
    graph = builder.Graph("refused")
    x = graph.parameter("x", "f32", [3, 2])
    (looped,) = builder.for_loop(
        3, lambda i, h: ops.tanh(h), [ops.fake_convert(x, np.float32(1), destination_type="f8e4m3")]
    )
    before = list(graph.frame.nodes)
    with pytest.raises(
        loopscope.BuildError, match="FakeConvert-13 'FakeConvert' cannot be differentiated"
    ):
        builder.gradients(looped, x)
    assert graph.frame.nodes == before


@pytest.mark.parametrize("looped", [False, True], ids=["outermost", "in a loop"])
def test_a_second_derivative_that_is_refused_names_the_node_that_it_is_of(looped: bool) -> None:
    """The names of the first gradient are made up; a person knows only those that the graph was
    built with.
    """

    def kernel(data: np.ndarray, /) -> np.ndarray:
        return data

    def gradient(at: Reverse, /) -> Any:
        return (
            at.ops.fake_convert(
                at.adjoint * at.inputs[0], np.float32(1), destination_type="f8e4m3"
            ),
        )

    own = Operation(
        name="Own", version=1, opsets=(1, 17), page="", kernel=kernel, infer=same, gradient=gradient
    )
    graph = builder.Graph("second", catalogue=CATALOGUE.with_operations([own]))
    x = graph.parameter("x", "f32", [3, 2])

    def mine(value: Tensor) -> Tensor:
        return graph.apply("Own", (value,), {}, name="mine")[0]

    last = (
        builder.for_loop(3, lambda i, h: (mine(h),), [x], name="thrice")[0] if looped else mine(x)
    )
    (first,) = builder.gradients([last * last], [x])
    with pytest.raises(
        loopscope.BuildError,
        match="FakeConvert-13 'backward/mine/FakeConvert', which computes the gradient of 'mine', cannot be differentiated",
    ):
        builder.gradients([first * first], [x])


def test_the_backward_loop_names_its_forward_loop() -> None:
    graph = builder.Graph("tied")
    x = graph.parameter("x", "f32", [3])
    (last,) = builder.for_loop(4, lambda i, h: ops.tanh(h), [x], name="forth")
    model = graph.model(builder.gradients(last, x))
    backward = [
        node.rt_info["loopscope"]
        for node in model.graph.nodes
        if node.type == "Loop" and "loopscope" in node.rt_info
    ]
    assert backward == [{"backward_of": "forth", "gradients_of": "2"}]


def test_random_numbers_in_a_loop_are_not_drawn_again() -> None:
    graph = builder.Graph("dropout")
    x = graph.parameter("x", "f32", [3])
    (last,) = builder.for_loop(
        2, lambda i, h: h * ops.random_uniform([3], 0.0, 1.0, output_type="f32"), [x]
    )
    with pytest.raises(
        loopscope.BuildError,
        match="RandomUniform-8 'RandomUniform' in it draws random numbers, which cannot be repeated",
    ):
        builder.gradients(last, x)


@pytest.mark.parametrize(("batch", "summed"), [(1, 0), (2, 0), (6, 1)])
def test_a_product_in_every_iteration_is_one_product_after_the_loop(
    batch: int, summed: int
) -> None:
    """Where its factors are smaller than what they give: 8 x 8 numbers for each weight, or 2 x 8
    x batch for its factors.
    """
    graph = builder.Graph("recurrent")
    xs, w = graph.parameter("xs", "f64", [5, batch, 8]), graph.parameter("w", "f64", [8, 8])
    h = builder.foldl(lambda h, x: ops.tanh(x + h @ w), xs, np.zeros((batch, 8)))
    model = graph.model({"loss": ops.reduce_sum(h, [0, 1])})
    backward = loopscope.gradients(model, "loss", ["w"])
    (loop,) = [
        node for node in backward.graph.nodes if node.type == "Loop" and "loopscope" in node.rt_info
    ]
    body = loop.bodies[0]
    carried = [str(body.graph.by_id[edge.to_layer].outputs[0].shape) for edge in body.back_edges]
    assert carried.count("[8,8]") == summed
    random = np.random.default_rng(batch)
    assert loopscope.check_gradient(
        model, [random.normal(size=(5, batch, 8)), random.normal(size=(8, 8)) / 4]
    ).ok
