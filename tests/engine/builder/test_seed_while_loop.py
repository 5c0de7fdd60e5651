"""Statements of the seed page tf.while_loop, each under its own words; what TensorFlow 2.21 does
was measured once and stands here.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import BuildError
from loopscope.ir.address import nodes
from loopscope.ir.shape import DYNAMIC, PartialShape
from tests.engine.builder.both import run_both


def lengths(*shape: int | None) -> PartialShape:
    return PartialShape.of(shape)


def count_to_ten(**arguments: Any) -> loopscope.Model:
    graph = builder.Graph("count")
    start = graph.constant(0)
    return graph.model(
        builder.while_loop(lambda i: i < 10, lambda i: (i + 1,), [start], **arguments)
    )


# -- the signature
# ----------------------------------------------------------------------------------------------------


def test_the_arguments_are_those_of_the_page_in_its_order() -> None:
    parameters = inspect.signature(builder.while_loop).parameters.values()
    assert [(one.name, one.default) for one in parameters][3:] == [
        ("shape_invariants", None),
        ("parallel_iterations", 10),
        ("back_prop", True),
        ("swap_memory", False),
        ("maximum_iterations", None),
        ("name", None),
    ]
    assert [one.name for one in parameters][:3] == ["cond", "body", "loop_vars"]


def test_the_fifth_argument_is_parallel_iterations() -> None:
    graph = builder.Graph("fifth")
    model = graph.model(
        builder.while_loop(lambda i: i < 10, lambda i: i + 1, [graph.constant(0)], None, 3)
    )
    assert loopscope.run(model).outputs[0] == 10


def test_while_loop_calls_cond_and_body_exactly_once() -> None:
    graph, calls = builder.Graph("calls"), []

    def cond(i: Any) -> Any:
        calls.append("cond")
        return i < 10

    def body(i: Any) -> Any:
        calls.append("body")
        return i + 1

    model = graph.model(builder.while_loop(cond, body, [graph.parameter("start", "i64", [])]))
    assert calls == ["cond", "body"]
    for start, expected in ((0, 10), (9, 10), (12, 12)):
        assert run_both(model, [np.int64(start)]).outputs[0] == expected
    assert calls == ["cond", "body"]


def test_a_condition_with_a_branch_a_function_and_outer_tensors_is_put_into_both_places() -> None:
    graph = builder.Graph("condition")
    limit, gentle = graph.parameter("limit", "f32", []), graph.parameter("gentle", "boolean", [])

    @builder.function
    def bound(factor: Any) -> Any:
        return builder.cond(gentle, lambda: limit / factor, lambda: limit * factor)

    def body(value: Any, scale: Any) -> Any:
        return value * 2, builder.while_loop(
            lambda inner: inner < bound(2.0), lambda inner: inner + 1, [scale]
        )[0]

    model = graph.model(
        builder.while_loop(lambda value, scale: value < bound(scale), body, (1.0, 1.0))
    )
    for is_gentle in (True, False):
        value = scale = 1.0
        while value < (8 / scale if is_gentle else 8 * scale):
            value *= 2
            while scale < (8 / 2 if is_gentle else 8 * 2):
                scale += 1
        found = run_both(model, [np.float32(8), np.bool_(is_gentle)])
        assert [one.item() for one in found.outputs] == [value, scale]
    called = model.rt_info["loopscope"]
    assert isinstance(called, dict)
    assert "main/while%2Fbound%2F*" in called["functions"].values()


@pytest.mark.parametrize("parallel", [1, 10, np.int32(7)])
def test_parallel_iterations_are_kept_with_the_loop(parallel: Any, tmp_path: Path) -> None:
    model = count_to_ten(parallel_iterations=parallel)
    loopscope.write_model(model, tmp_path / "m.xml")
    for one in (model, loopscope.read_model(tmp_path / "m.xml")):
        (loop,) = [node for _, node in nodes(one) if node.type == "Loop"]
        assert loop.rt_info["parallel_iterations"] == {"version": "0", "value": str(int(parallel))}
    assert run_both(model).outputs[0] == 10


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "zero": (
        {"parallel_iterations": 0},
        "parallel_iterations is 0, expected a whole number of at least 1",
    ),
    "negative": ({"parallel_iterations": -1}, "parallel_iterations is -1"),
    "float": ({"parallel_iterations": 1.5}, "parallel_iterations is 1.5"),
    "truth": ({"parallel_iterations": True}, "parallel_iterations is True"),
    "nothing": ({"parallel_iterations": None}, "parallel_iterations is None"),
    "back_prop": ({"back_prop": "no"}, "back_prop is 'no', expected True or False"),
    "swap_memory": ({"swap_memory": 1}, "swap_memory is 1, expected True or False"),
    "back_prop, nothing": ({"back_prop": None}, "back_prop is None"),
}


@pytest.mark.parametrize("case", WRONG)
def test_parallel_iterations_must_be_a_positive_integer_and_flags_be_true_or_false(
    case: str,
) -> None:
    """TensorFlow: TypeError, "'parallel_iterations' must be a positive integer."."""
    arguments, words = WRONG[case]
    with pytest.raises(TypeError, match=words):
        count_to_ten(**arguments)


def slope(of: Any, wanted: builder.Tensor, at: float) -> float:
    (adjoint,) = builder.gradients([of], [wanted])
    return float(loopscope.run(wanted.graph.model(adjoint), [np.float32(at)]).outputs[0])


def test_without_back_prop_a_loop_is_a_constant_for_gradients(tmp_path: Path) -> None:
    """ "False disables support for back propagation. Prefer using tf.stop_gradient instead.";
    TensorFlow 2.21 gives 7 for this.
    """
    for back_prop, expected in ((False, 7), (True, 7 + 3 * 64)):
        graph = builder.Graph("back_prop")
        x = graph.parameter("x", "f32", [])
        last, _ = builder.while_loop(
            lambda v, w: v < 100.0, lambda v, w: (v * 2, w + v), [x, x], None, 10, back_prop
        )
        assert slope(last * 3 + x * 7, x, 2) == expected
        loopscope.write_model(graph.model({"y": last * 3 + x * 7}), tmp_path / "m.xml")
        again = loopscope.gradients(
            loopscope.read_model(tmp_path / "m.xml"), of="y", with_respect_to="x"
        )
        assert loopscope.run(again, [np.float32(2)]).outputs[-1] == expected


def test_stop_gradient_is_a_constant_for_gradients() -> None:
    """TensorFlow 2.21: 9 for stop_gradient(x * x) * x at 3, and 2187 for the loop, in which
    every factor but one is stopped.
    """
    graph = builder.Graph("stopped")
    x = graph.parameter("x", "f32", [])
    assert slope(builder.stop_gradient(x * x) * x, x, 3) == 9
    assert (
        slope(
            builder.while_loop(lambda v: v < 100.0, lambda v: v * builder.stop_gradient(v), [x])[0],
            x,
            3,
        )
        == 2187
    )
    assert slope(builder.cond(x > 0, lambda: builder.stop_gradient(x) * x, lambda: x), x, 3) == 3
    model = graph.model(builder.stop_gradient(x, name="kept") + builder.stop_gradient(2.5))
    assert run_both(model, [np.float32(3)]).outputs[0] == 5.5
    assert "kept" in graph


@pytest.mark.parametrize(
    "arguments", [{"back_prop": False}, {"swap_memory": True}, {"maximum_iterations": 12}]
)
def test_what_steers_training_changes_no_result(arguments: dict[str, Any]) -> None:
    assert loopscope.run(count_to_ten(**arguments)).outputs[0] == 10


# -- shape invariants
# -------------------------------------------------------------------------------------------------


def sparse(shape: Any, *, given: bool) -> Any:
    """Adds an element to a SparseTensor of [2, 2] twice."""
    graph = builder.Graph("sparse")
    with graph:
        start = builder.SparseTensor([[0, 0]], [1.0], [2, 2])

    def body(i: Any, s: Any) -> Any:
        indices = builder.ops.concat(s.indices, [[1, 1]], axis=0)
        return i + 1, builder.SparseTensor(
            indices, builder.ops.concat(s.values, [2.0], axis=0), s.dense_shape
        )

    _, end = builder.while_loop(
        lambda i, s: i < 2, body, [graph.constant(0), start], [lengths(), shape] if given else None
    )
    return graph, end


@pytest.mark.parametrize(
    ("given", "shape", "expected"),
    [
        (False, None, ["[?,2]", "[?]", "[2]"]),
        (True, None, ["[?,2]", "[?]", "[2]"]),
        (True, lengths(2), ["[?,2]", "[?]", "[2]"]),
        (True, lengths(None), ["[?,?]", "[?]", "[?]"]),
        (True, DYNAMIC, ["[?,?]", "[?]", "[?]"]),
    ],
)
def test_the_invariant_of_a_sparse_tensor_is_that_of_its_dense_shape(
    given: bool, shape: Any, expected: list[str]
) -> None:
    """ "the shapes of the three tensors of the SparseTensor are ([None], [None, r], [r])";
    TensorFlow derives the same from each.
    """
    graph, end = sparse(shape, given=given)
    model = graph.model(end)
    (loop,) = [node for _, node in nodes(model) if node.type == "Loop"]
    declared = {one.name: f"[{one.attributes['shape']}]" for one in loop.bodies[0].graph.parameters}
    assert [declared[name] for name in ("s_indices", "s_values", "s_dense_shape")] == expected
    indices, values, dense = run_both(model).outputs
    assert (indices.tolist(), values.tolist(), dense.tolist()) == (
        [[0, 0], [1, 1], [1, 1]],
        [1, 2, 2],
        [2, 2],
    )
    assert str(end.get_shape()) == ("[?,?]" if expected[2] == "[2]" else "...")


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (lengths(3), "starts with shape .* excludes"),
        (lengths(2, 2), "is .2,2., expected the shape of a SparseTensor's dense_shape"),
        ("wide", "is 'wide', expected lengths"),
    ],
)
def test_the_invariant_of_a_sparse_tensor_must_be_the_shape_of_a_vector(
    shape: Any, words: str
) -> None:
    with pytest.raises(BuildError, match=words):
        sparse(shape, given=True)


def slices(shape: Any) -> tuple[builder.Graph, Any]:
    """Adds a part of length 4 to IndexedSlices of [5, 4] twice."""
    graph = builder.Graph("slices")
    with graph:
        start = builder.IndexedSlices(np.ones((1, 4), np.float32), [0], [5, 4])

    def body(i: Any, s: Any) -> Any:
        values = builder.ops.concat(s.values, np.ones((1, 4), np.float32), axis=0)
        return i + 1, builder.IndexedSlices(
            values, builder.ops.concat(s.indices, [1], axis=0), s.dense_shape
        )

    _, end = builder.while_loop(
        lambda i, s: i < 2, body, [graph.constant(0), start], [lengths(), shape]
    )
    return graph, end


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (lengths(None, 4), ["[?,4]", "[?]", "[2]"]),
        (lengths(None, None), ["[?,?]", "[?]", "[2]"]),
        (DYNAMIC, ["[...]", "[?]", "[?]"]),
    ],
)
def test_the_invariant_of_indexed_slices_is_that_of_their_values(
    shape: Any, expected: list[str]
) -> None:
    """ "the shapes of the three tensors of the IndexedSlices are (shape, [shape[0]],
    [shape.ndims])".
    """
    graph, end = slices(shape)
    model = graph.model(end)
    (loop,) = [node for _, node in nodes(model) if node.type == "Loop"]
    declared = {one.name: f"[{one.attributes['shape']}]" for one in loop.bodies[0].graph.parameters}
    assert [declared[name] for name in ("s_values", "s_indices", "s_dense_shape")] == expected
    values, indices, dense = run_both(model).outputs
    assert (values.shape, indices.tolist(), dense.tolist()) == ((3, 4), [0, 1, 1], [5, 4])


@pytest.mark.parametrize("shape", [None, lengths(1, 4), lengths(), lengths(None)])
def test_slices_that_grow_leave_another_invariant(shape: Any) -> None:
    with pytest.raises(BuildError, match="shape"):
        slices(shape)


@pytest.mark.parametrize("shape", [None, lengths(), DYNAMIC])
def test_the_invariant_of_a_tensor_array_is_that_of_its_elements(shape: Any) -> None:
    """TensorFlow takes None, () and the unknown shape, and refuses (3,)."""
    graph = builder.Graph("array")
    start = builder.TensorArray("f32", 3)
    _, end = builder.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, 1.0)), [0, start], [lengths(), shape]
    )
    assert run_both(graph.model(end.stack())).outputs[0].tolist() == [1, 1, 1]


def test_an_invariant_that_the_elements_of_an_array_have_not_is_refused() -> None:
    with builder.Graph("array"):
        start = builder.TensorArray("f32", 3)
    with pytest.raises(
        BuildError, match=r"is \[3\], which excludes the shape \[\] of the elements"
    ):
        builder.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, a.write(i, 1.0)),
            [0, start],
            [lengths(), lengths(3)],
        )


def test_none_stands_for_the_invariants_of_any_part_of_the_structure() -> None:
    graph = builder.Graph("none")
    x = graph.parameter("x", "i64", [None])

    def body(i: Any, pair: Any, x: Any) -> Any:
        return i + 1, (pair[0] + 1, pair[1] * 2), builder.ops.concat(x, x, axis=0)

    end = builder.while_loop(lambda i, pair, x: i < 3, body, (0, (1, 2), x), (None, None, [None]))
    outputs = run_both(graph.model(end), [np.array([5])]).outputs
    assert [one.tolist() for one in outputs[:3]] == [3, 4, 16]
    assert outputs[3].shape == (8,)


def test_a_shape_more_general_than_the_invariant_is_an_error() -> None:
    """ "a shape of [11, None] is more general than a shape of [11, 17], and [11, 21] is not
    compatible with [11, 17]".
    """
    graph = builder.Graph("general")
    n = graph.parameter("n", "i64", [])
    start = graph.constant(np.zeros((11, 17), np.float32))
    for after, shape in (
        (lambda x: x[:, :n], "11,..17"),
        (lambda x: builder.ops.concat(x, x[:, :4], axis=1), "11,21"),
    ):
        with pytest.raises(
            BuildError, match=rf"invariant \[11,17\], but the shape \[{shape}\] after one iteration"
        ):
            builder.while_loop(lambda x: True, after, [start])


def test_set_shape_says_what_shape_the_output_has() -> None:
    graph = builder.Graph("set_shape")
    n = graph.parameter("n", "i64", [])

    def body(x: Any) -> Any:
        part = builder.ops.concat(x, x, axis=0)[:n]
        assert str(part.get_shape()) == "[..4]"
        part.set_shape([2])
        return part

    (end,) = builder.while_loop(
        lambda x: True, body, [np.ones(2, np.float32)], maximum_iterations=3
    )
    assert str(end.shape) == "[2]"
    assert run_both(graph.model(end), [np.int64(2)]).outputs[0].tolist() == [1, 1]
    with pytest.raises(BuildError, match=r"shape is \[3\], expected lengths that its shape allows"):
        end.set_shape([3])
