"""TensorArray beyond write, read and stack: several places at once, sizes that grow, elements of
differing shape; TensorFlow's answers.

Seed page tf.while_loop: "besides regular Tensors or IndexedSlices, the body may accept and return
TensorArray objects".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import BuildError
from loopscope.ir.shape import DYNAMIC
from tests.engine.builder.both import run_both

Make = Callable[[], Any]


def array(size: int = 2, shape: Any = (), **options: Any) -> Any:
    return builder.TensorArray("i32", size, shape, **options)


def ragged(size: int = 2, shape: Any = (None,), **options: Any) -> Any:
    return array(size, shape, infer_shape=False, **options)


def two(made: Any) -> Any:
    return made.write(0, [1]).write(1, [2, 3])


# What TensorFlow 2.21 gives for the same calls.
MEASURED: dict[str, tuple[Make, Any]] = {
    "gather": (lambda: array().unstack(np.arange(1, 5, dtype="i4")).gather([2, 0]), [3, 1]),
    "scatter": (lambda: array(4).scatter([2, 0, 1, 3], [5, 6, 7, 8]).stack(), [6, 7, 5, 8]),
    "concat": (
        lambda: array().unstack(np.arange(1, 5, dtype="i4").reshape(2, 2)).concat(),
        [1, 2, 3, 4],
    ),
    "split evenly": (lambda: array(2, [2]).split([1, 2, 3, 4], [2, 2]).stack(), [[1, 2], [3, 4]]),
    "dynamic": (
        lambda: array(0, dynamic_size=True).write(3, 7).write(0, 1).write(1, 1).write(2, 1).stack(),
        [1, 1, 1, 7],
    ),
    "dynamic, not all written": (
        lambda: array(0, dynamic_size=True).write(3, 7).stack(),
        [0, 0, 0, 7],
    ),
    "dynamic, its size": (lambda: array(0, dynamic_size=True).write(3, 7).size(), 4),
    "dynamic, scattered": (
        lambda: array(0, dynamic_size=True).scatter([1, 0], [5, 6]).stack(),
        [6, 5],
    ),
    "not written": (lambda: array(2, [2]).write(1, [2, 3]).stack(), [[0, 0], [2, 3]]),
}
# The same, but for the last one: TensorFlow stacks no array without elements.
DIFFERING: dict[str, tuple[Make, Any]] = {
    "concat of differing lengths": (lambda: two(ragged()).concat(), [1, 2, 3]),
    "split": (lambda: ragged().split([1, 2, 3], [1, 2]).read(1), [2, 3]),
    "differing shapes": (lambda: two(ragged()).read(1), [2, 3]),
    "the first of differing shapes": (lambda: two(ragged()).read(0), [1]),
    "written over": (lambda: two(ragged()).write(0, [7, 8, 9]).concat(), [7, 8, 9, 2, 3]),
    "differing shapes, dynamic": (lambda: two(ragged(0, dynamic_size=True)).concat(), [1, 2, 3]),
    "differing rows": (
        lambda: ragged(2, [None, 2]).write(1, [[1, 2], [3, 4]]).write(0, [[5, 6]]).concat(),
        [[5, 6], [1, 2], [3, 4]],
    ),
    "one shape after all": (
        lambda: ragged().write(0, [1, 2]).write(1, [3, 4]).stack(),
        [[1, 2], [3, 4]],
    ),
    "gathered": (lambda: ragged().scatter([1, 0], [[1, 2], [3, 4]]).gather([1]), [[1, 2]]),
    "scalars": (lambda: ragged(2, []).write(1, 5).write(0, 4).stack(), [4, 5]),
    "none": (lambda: ragged(0).stack(), np.zeros((0, 0))),
}


@pytest.mark.parametrize("case", [*MEASURED, *DIFFERING])
def test_arrays_give_what_tensorflow_gives(case: str) -> None:
    made, expected = (MEASURED | DIFFERING)[case]
    graph = builder.Graph(case)
    with graph:
        model = graph.model({"out": made()})
    # OpenVINO's CPU takes no part of a constant that has no elements, which is what an array of
    # differing elements begins with.
    output = (loopscope.run if case in DIFFERING else run_both)(model).outputs[0]
    np.testing.assert_array_equal(output, expected)
    assert output.shape == np.shape(expected)


REFUSED: dict[str, tuple[Make, str]] = {
    "inferred from the first": (
        lambda: two(array(2, [None])),
        r"value is .*, but the elements have shape \[1\]",
    ),
    "beyond the size": (
        lambda: array().write(2, 1),
        "index is 2, expected a whole number from 0 on, below the size, 2",
    ),
    "no rank": (lambda: array(2, DYNAMIC), "the rank of element_shape is not known"),
    "parts of other lengths": (
        lambda: array(2, [1]).split([1, 2, 3], [1, 2]),
        "infer_shape=False for slices of other lengths",
    ),
    "too many parts": (
        lambda: ragged(2).split([1, 2, 3], [1, 1, 1]),
        "expected 2 lengths, got 3",
    ),
    "scalars joined": (lambda: array().concat(), "are scalars without an axis: use stack"),
    "indices": (lambda: array().gather([0.5]), "indices is .*, expected whole numbers in one axis"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_array_can_hold_is_refused(case: str) -> None:
    made, words = REFUSED[case]
    with builder.Graph(case), pytest.raises(BuildError, match=words):
        made()


@pytest.mark.parametrize("take", [lambda one: one.stack(), lambda one: one.gather([0])])
def test_elements_of_differing_shape_cannot_be_stacked(take: Callable[[Any], Any]) -> None:
    graph = builder.Graph("differ")
    first = graph.parameter("first", "i32", [None])
    model = graph.model(take(ragged().write(0, first).write(1, [2, 3])))
    assert loopscope.run(model, [np.array([7, 8], "i4")]).outputs[0][0].tolist() == [7, 8]
    with pytest.raises(loopscope.RunStopped, match="Reshape"):
        loopscope.run(model, [np.array([7], "i4")])


def test_a_loop_appends_to_an_array_of_any_size() -> None:
    graph = builder.Graph("collatz")
    n = graph.parameter("n", "i64", [])

    def step(i: Any, value: Any, path: Any) -> Any:
        return (
            i + 1,
            builder.ops.select(value % 2 == 0, value // 2, 3 * value + 1),
            path.write(i, value),
        )

    path = builder.TensorArray("i64", 0, dynamic_size=True)
    _, _, path = builder.while_loop(lambda i, value, path: value > 1, step, (0, n, path))
    model = graph.model(path.stack())
    np.testing.assert_array_equal(
        run_both(model, [np.int64(6)]).outputs[0], [6, 3, 10, 5, 16, 8, 4, 2]
    )
    assert run_both(model, [np.int64(1)]).outputs[0].shape == (0,)


def test_a_loop_writes_elements_of_differing_shape() -> None:
    graph = builder.Graph("triangle")
    rows = graph.parameter("rows", "i64", [])
    triangle = builder.TensorArray("i64", rows, [None], infer_shape=False)

    def row(i: Any, written: Any) -> Any:
        return i + 1, written.write(i, builder.ops.range(0, i, 1, output_type="i64"))

    _, triangle = builder.while_loop(lambda i, written: i < rows, row, (0, triangle))
    model = graph.model([triangle.concat(), triangle.read(2)])
    joined, third = run_both(model, [np.int64(4)]).outputs
    np.testing.assert_array_equal(joined, [0, 0, 1, 0, 1, 2])
    np.testing.assert_array_equal(third, [0, 1])


def _counted(body: Callable[[Any, Any], Any], array: Any, trips: int = 3) -> Any:
    return builder.while_loop(lambda i, a: i < trips, lambda i, a: (i + 1, body(i, a)), (0, array))[
        1
    ]


def _written_inside(i: Any, a: Any) -> Any:
    return builder.while_loop(lambda j, b: j < 3, lambda j, b: (j + 1, b.write(j, [7, 8])), (0, a))[
        1
    ]


# TensorFlow 2.21 gives the same.
UNSHAPED: dict[str, tuple[Make, Any]] = {
    "vectors": (
        lambda: builder.TensorArray("i32", 2).write(0, [1, 2]).write(1, [3, 4]).stack(),
        [[1, 2], [3, 4]],
    ),
    "scalars": (lambda: builder.TensorArray("i32", 2).write(0, 1).write(1, 2).stack(), [1, 2]),
    "scattered": (
        lambda: builder.TensorArray("i32", 2).scatter([1, 0], [[1], [2]]).stack(),
        [[2], [1]],
    ),
    "dynamic": (
        lambda: builder.TensorArray("i32", 0, dynamic_size=True).write(1, [5]).stack(),
        [[0], [5]],
    ),
    "written by a loop": (
        lambda: _counted(lambda i, a: a.write(i, [7, 8]), builder.TensorArray("i32", 3)).stack(),
        [[7, 8]] * 3,
    ),
    "by a loop, no iteration": (
        lambda: _counted(lambda i, a: a.write(i, [7, 8]), builder.TensorArray("i32", 2), 0).stack(),
        [[0, 0]] * 2,
    ),
    "by a loop in a loop": (
        lambda: _counted(_written_inside, builder.TensorArray("i32", 3), 2).stack(),
        [[7, 8]] * 3,
    ),
    "its size before": (
        lambda: _counted(lambda i, a: a.write(i, [7]), builder.TensorArray("i32", 3)).size(),
        3,
    ),
}


@pytest.mark.parametrize(("make", "expected"), UNSHAPED.values(), ids=UNSHAPED.keys())
def test_an_array_without_a_shape_takes_that_of_its_first_write(make: Make, expected: Any) -> None:
    with builder.Graph("unshaped") as graph:
        model = graph.model([make()])
    np.testing.assert_array_equal(loopscope.run(model, []).outputs[0], expected)
    assert not [one for one in loopscope.check(model).diagnostics if "unused" in one.message]


@pytest.mark.parametrize("second", [[1, 2], [[1]]])
def test_a_second_shape_is_refused(second: Any) -> None:
    with builder.Graph("two shapes"), pytest.raises(BuildError, match="have another shape"):
        builder.TensorArray("i32", 2).write(0, [1]).write(1, second)


def test_a_loop_that_does_not_carry_the_array_says_what_to_give() -> None:
    with builder.Graph("after a loop"):
        array = _counted(lambda i, a: a, builder.TensorArray("i32", 3))
        with pytest.raises(BuildError, match=r"give element_shape=\[2\]"):
            array.write(0, [1, 2])


def test_a_loop_is_named_as_if_it_had_been_built_once() -> None:
    with builder.Graph("names") as graph:
        array = _counted(lambda i, a: a.write(i, [7, 8]), builder.TensorArray("i32", 3))
        model = graph.model([array.stack()])
    assert [node.name for node in model.graph.nodes if node.type == "Loop"] == ["while"]
    assert not [node.name for node in model.graph.nodes if node.name.startswith("while_1/")]
