"""Tensors do with operators and indices what numpy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.errors import BuildError
from tests.engine.builder.both import run_both

ONE = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.5]], np.float32)
OTHER = np.array([[2.0, 2.0, -1.0], [0.5, 3.0, 4.0]], np.float32)
WHOLE = np.array([7, -7, 5, 12], np.int64)
TRUTH = np.array([True, False, True, False])

OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "**": lambda x, y: abs(x) ** y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "unary -": lambda x, y: -x + y,
    "numbers on the left": lambda x, y: (1 + x) * (2 - y) / (3.0 / x) - (2 ** abs(y)) % 5 // 2,
    "array on the left": lambda x, y: np.float32(2) * x + np.array([[1], [2]], np.float32) * y,
    "scalar array on the left": lambda x, y: np.array(2, np.float32) - x + y,
    "numbers compared": lambda x, y: (0.5 <= x) & (y > 0.0) | (x != 3.0) ^ (y == 2.0),  # noqa: SIM300 - numbers stand on the left on purpose
    "not": lambda x, y: ~(x < y),
    "@": lambda x, y: x @ np.ones((3, 2), np.float32) + np.ones((2, 2), np.float32) @ y[:, :2],
}


@pytest.mark.parametrize("case", OPERATORS)
def test_operators_of_fractions(case: str) -> None:
    graph = builder.Graph(case)
    x, y = graph.parameter("x", "f32", [2, 3]), graph.parameter("y", "f32", [2, None])
    result = run_both(graph.model(OPERATORS[case](x, y)), [ONE, OTHER])
    np.testing.assert_allclose(result.outputs[0], OPERATORS[case](ONE, OTHER), rtol=1e-6)


def test_whole_numbers_are_divided_as_python_does() -> None:
    """By the spec; OpenVINO's CPU cuts off instead, so that it is not asked."""
    graph = builder.Graph("//")
    x = graph.parameter("x", "i64", [4])
    mine = loopscope.run(graph.model([x // 3, x // -3, 100 // x]), [WHOLE]).outputs
    for made, theirs in zip(mine, (WHOLE // 3, WHOLE // -3, 100 // WHOLE), strict=True):
        np.testing.assert_array_equal(made, theirs)


@pytest.mark.parametrize("case", ["+", "-", "*", "%", "<", "=="])
@pytest.mark.parametrize("other", [3, -3])
def test_operators_of_whole_numbers(case: str, other: int) -> None:
    graph = builder.Graph(case)
    result = run_both(
        graph.model(OPERATORS[case](graph.parameter("x", "i64", [4]), other)), [WHOLE]
    )
    np.testing.assert_array_equal(result.outputs[0], OPERATORS[case](WHOLE, other))


def test_bits_and_truth() -> None:
    graph = builder.Graph("bits")
    x, t = graph.parameter("x", "i64", [4]), graph.parameter("t", "boolean", [4])
    made = [x & 6, x | 1, x ^ 3, ~x, t & True, t | t, t ^ True, ~t, True & t, 6 & x]
    result = run_both(graph.model(made), [WHOLE, TRUTH])
    numpys = [
        WHOLE & 6,
        WHOLE | 1,
        WHOLE ^ 3,
        ~WHOLE,
        TRUTH,
        TRUTH,
        TRUTH ^ True,
        ~TRUTH,
        TRUTH,
        6 & WHOLE,
    ]
    for mine, theirs in zip(result.outputs, numpys, strict=True):
        np.testing.assert_array_equal(mine, theirs)


CUBE = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
INDICES: dict[str, Any] = {
    "number": np.s_[1],
    "last": np.s_[-1],
    "several numbers": np.s_[1, -2, 3],
    "slice": np.s_[1:],
    "slices": np.s_[:2, 1:3, ::2],
    "backwards": np.s_[::-1, :, 3:0:-2],
    "from the end": np.s_[-2:, :-1],
    "beyond": np.s_[1:99, -99:2],
    "ellipsis": np.s_[..., 1],
    "ellipsis between": np.s_[0, ..., 2:4],
    "new axes": np.s_[None, 1, :, None],
    "mixed": np.s_[..., None, -1, 1:4],
    "list": np.s_[[2, 0]],
    "list along an inner axis": np.s_[:, [3, 1, 1]],
    "list after a slice": np.s_[1:, :, [0, 4]],
    "everything": np.s_[:],
}


@pytest.mark.parametrize("case", INDICES)
def test_indices(case: str) -> None:
    graph = builder.Graph(case)
    x = graph.parameter("x", "f32", [3, 4, 5])
    taken = x[INDICES[case]]
    expected = CUBE[INDICES[case]]
    assert taken.shape.lengths == expected.shape
    result = run_both(graph.model(taken), [CUBE])
    np.testing.assert_array_equal(result.outputs[0], expected)


def test_indices_that_are_tensors() -> None:
    graph = builder.Graph("computed")
    x, i = graph.parameter("x", "f32", [3, 4, 5]), graph.parameter("i", "i32", [])
    made = [x[i], x[:, i], x[i:], x[:i, i:, -2:], x[0, i, ::2], x[i::-1], x[ops.unsqueeze(i, 0)]]
    result = run_both(graph.model(made), [CUBE, np.int32(1)])
    numpys = [
        CUBE[1],
        CUBE[:, 1],
        CUBE[1:],
        CUBE[:1, 1:, -2:],
        CUBE[0, 1, ::2],
        CUBE[1::-1],
        CUBE[[1]],
    ]
    for mine, theirs in zip(result.outputs, numpys, strict=True):
        np.testing.assert_array_equal(mine, theirs)


WRONG = {
    "too many": (lambda x: x[0, 0, 0, 0], "has 3 axes, but is indexed along 4"),
    "out of range": (lambda x: x[:, 4], "index 4 is out of range for axis 1"),
    "float": (lambda x: x[0.5], "is indexed by 0.5, expected whole numbers"),
    "truth": (lambda x: x[True], "is indexed by True"),
    "two ellipses": (lambda x: x[..., ...], "more than one"),
    "step 0": (lambda x: x[::0], "has step 0"),
    "bound": (lambda x: x["a":], "has the bound 'a'"),
    "several lists": (lambda x: x[[0], [1]], "indexed by several tensors at once"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_indices(case: str) -> None:
    x = builder.Graph("wrong").parameter("x", "f32", [3, 4, 5])
    with pytest.raises(BuildError, match=WRONG[case][1]):
        WRONG[case][0](x)


def test_known_parts_can_be_gone_through_and_unknown_ones_not() -> None:
    graph = builder.Graph("parts")
    first, second = graph.parameter("x", "f32", [2, 3])
    assert first.shape.lengths == second.shape.lengths == (3,)
    with pytest.raises(BuildError, match="does not have a known length to iterate over"):
        list(graph.parameter("y", "f32", [None, 3]))


def test_what_a_tensor_says_of_itself() -> None:
    graph = builder.Graph("words")
    x = graph.parameter("x", "bf16", [2, None])
    assert repr(x) == "<Tensor 'x' bf16[2,?]>"
    assert (x.name, str(x.element_type), x.rank, x.graph) == ("x", "bf16", 2, graph)
    assert len({x, x + 1, x}) == 2
