"""What people get wrong when they build their first graph: each is told in a sentence, on the
line where it was made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from loopscope import builder
from loopscope.builder import TensorArray, ops
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from tests.engine.builder.both import run_both


def forgetful(i: Tensor, s: Tensor) -> None:
    """A body without a return."""
    i + s


VALUES = {
    "if": (lambda x, n: 1 if n > 3 else 2, "branch with builder.cond"),
    "and": (lambda x, n: n > 0 and n < 3, r"combine conditions with &, \| and ~"),
    "not": (lambda x, n: not n > 0, r"combine conditions with &, \| and ~"),
    "chained comparison": (lambda x, n: 0 < n < 3, r"combine conditions with &, \| and ~"),
    "max": (lambda x, n: max(n, 3), "branch with builder.cond"),
    "range": (lambda x, n: list(range(n)), "count with builder.for_loop"),
    "an index of a list": (
        lambda x, n: [1, 2, 3][n],
        "convert the array with graph.constant",
    ),
    "an index of an array": (
        lambda x, n: np.arange(3)[n],
        "nor an element or index of one|convert the array with",
    ),
    "int": (lambda x, n: int(n), "convert it with ops.convert"),
    "float": (lambda x, n: float(n), "functions of builder.ops instead of Python's"),
    "math": (lambda x, n: math.sqrt(x[0]), "functions of builder.ops instead of Python's"),
    "numpy on each element": (lambda x, n: np.sqrt(x), r"instead of numpy's sqrt\(\)"),
    "numpy on all": (lambda x, n: np.sum(x), r"instead of numpy's sum\(\)"),
    "numpy on several": (
        lambda x, n: np.concatenate([x, x]),
        r"instead of numpy's concatenate\(\)",
    ),
    "in an array's place": (
        lambda x, n: np.add(np.zeros(3, np.float32), x, out=np.zeros(3, np.float32)),
        r"instead of numpy's add\(\)",
    ),
    "np.asarray": (lambda x, n: np.asarray(x), "it cannot be a numpy array"),
    "tensors in a list": (
        lambda x, n: ops.add([x[0], x[1], 1.0], x),
        "is not an array: .* it cannot be a numpy array",
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_tensors_have_no_value_yet(case: str) -> None:
    graph = builder.Graph(case)
    x, n = graph.parameter("x", "f32", [3]), graph.parameter("n", "i64", [])
    with pytest.raises(BuildError, match=VALUES[case][1]) as told:
        VALUES[case][0](x, n)
    assert "has no value while the graph is built: " in str(told.value)


ATTRIBUTES = {
    "sum": "use ops.reduce_sum",
    "T": "use ops.transpose",
    "dtype": "use element_type",
    "numpy": "because it has no value while the graph is built",
    "softmax": "use a function of builder.ops",
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_what_other_libraries_tensors_have(name: str) -> None:
    x = builder.Graph(name).parameter("x", "f32", [3])
    with pytest.raises(
        AttributeError, match=rf"<Tensor 'x' f32\[3\]> has no '{name}'.*{ATTRIBUTES[name]}"
    ):
        getattr(x, name)
    assert not hasattr(x, "_fields")


FUNCTIONS = {
    "cond of a loop": (
        lambda x, n: builder.while_loop(lambda i: i < n, lambda i, s: (i, s), [0, 0]),
        r"cond has the signature \(i\), .* 2 values: one for each",
    ),
    "body of a loop": (
        lambda x, n: builder.do_while(lambda i: i < n, lambda: 0, [0]),
        r"do_while\(\): body has the signature \(\), but is called with 1 value",
    ),
    "without the number": (
        lambda x, n: builder.for_loop(3, lambda s: s, [0]),
        r"body has the signature \(s\), .* 2 values: the iteration number",
    ),
    "two elements": (
        lambda x, n: builder.map_fn(lambda a, b: a * b, (x, x)),
        r"fn has the signature \(a, b\), .* an element, in the structure of elems",
    ),
    "half a fold": (
        lambda x, n: builder.foldl(lambda a: a, x),
        r"foldl\(\): fn has the signature \(a\), .* the accumulated value, and an element",
    ),
    "branch": (
        lambda x, n: builder.cond(n > 0, lambda v: v, lambda v: v),
        r"true_fn has the signature \(v\), but is called with none: a branch uses outer",
    ),
    "case": (
        lambda x, n: builder.case([(n > 0, lambda v: v)], lambda: x),
        r"the function of pred_fn_pairs\[0\] has the signature \(v\)",
    ),
    "tensors for branches": (
        lambda x, n: builder.switch_case(n, [x, x]),
        r"branch 0 is <Tensor 'x' f32\[3\]>, expected a function",
    ),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions_take_what_they_are_called_with(case: str) -> None:
    graph = builder.Graph(case)
    x, n = graph.parameter("x", "f32", [3]), graph.parameter("n", "i64", [])
    with pytest.raises(TypeError, match=FUNCTIONS[case][1]):
        FUNCTIONS[case][0](x, n)
    assert len(graph.frame.nodes) <= 4, "what was refused left nodes behind"


WRONG = {
    "types": (
        lambda x, n: x + n,
        "element types must be equal; the inputs are .*: convert one with ops.convert",
    ),
    "no return": (
        lambda x, n: builder.while_loop(lambda i, s: i < n, forgetful, (0, 0)),
        "the result of body is None, .*; is a return missing",
    ),
    "None": (lambda x, n: n == None, "expected a tensor, a number or an array, got None"),  # noqa: E711 - the operator is what is tested
    "no pairs": (
        lambda x, n: builder.case([n > 0, lambda: x], lambda: x),
        r"pred_fn_pairs\[0\] is <Tensor .*, expected a pair",
    ),
    "assignment": (
        lambda x, n: x.__setitem__(0, 1.0),
        "cannot be changed: ops.scatter_update returns a changed tensor",
    ),
    "length": (
        lambda x, n: len(ops.range(0, n, 1, output_type="i64")),
        r"does not have a known length: ops.shape_of",
    ),
    "length of a number": (
        lambda x, n: len(n),
        r"<Tensor 'n' i64\[\]> does not have a known length",
    ),
    "a negative length": (
        lambda x, n: x.graph.parameter("y", "f32", [2, -5]),
        r"the shape of parameter 'y' is \[2, -5\], expected lengths",
    ),
    "booleans of a tensor": (
        lambda x, n: x[x > 0],
        "is indexed by booleans, .*: ops.select preserves its shape",
    ),
    "floats as indices": (
        lambda x, n: x[[0.0, 1.0]],
        r"axis 0 of .* is indexed by \[0.0, 1.0\], expected whole numbers",
    ),
    "too few booleans": (
        lambda x, n: x[[True, False]],
        r"is indexed by \[True, False\], expected whole numbers, or a boolean for each",
    ),
    "a list out of range": (lambda x, n: x[[0, 3]], "index 3 is out of range for axis 0"),
    "write outside": (
        lambda x, n: TensorArray("f32", 2).write(2, 1.0),
        r"write\(\): index is 2, expected a whole number .* below the size, 2",
    ),
    "read outside": (
        lambda x, n: TensorArray("f32", 2).read(-1),
        r"read\(\): index is -1, expected",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes(case: str) -> None:
    graph = builder.Graph(case)
    x, n = graph.parameter("x", "f32", [3]), graph.parameter("n", "i64", [])
    with pytest.raises(BuildError, match=WRONG[case][1]):
        WRONG[case][0](x, n)


def write_and_return_the_old(i: Tensor, array: TensorArray) -> TensorArray:
    array.write(i, 1.0)
    return array


def write_and_hold(i: Tensor, array: TensorArray) -> TensorArray:
    _held = array.write(i, 1.0)
    return array


def write_in_a_branch(i: Tensor, array: TensorArray) -> None:
    def branch() -> TensorArray:
        array.write(i, 1.0)
        return array

    return builder.cond(i > 1, branch, lambda: array)


@pytest.mark.parametrize(
    ("body", "lines"), [(write_and_return_the_old, 1), (write_and_hold, 1), (write_in_a_branch, 2)]
)
def test_what_a_body_writes_and_loses_is_told_with_its_line(
    body: Callable[..., Any], lines: int
) -> None:
    graph = builder.Graph("lost")
    array = TensorArray("f32", 3)
    line = body.__code__.co_firstlineno + lines
    with pytest.raises(
        BuildError,
        match=rf"write\(\) in test_mistakes.py, line {line} is lost, .*: write array = array.write",
    ):
        builder.for_loop(3, body, [array])
    (kept,) = builder.for_loop(3, lambda i, array: array.write(i, 1.0), [array])
    assert run_both(graph.model(kept.stack()), []).outputs[0].tolist() == [1, 1, 1]


def test_a_write_that_is_dropped_outside_of_loops_is_told_when_the_graph_is_finished() -> None:
    graph = builder.Graph("lost")
    array = TensorArray("f32", 2).write(0, 1.0)
    later = array.write(1, 2.0)
    model = graph.model(array.stack())  # what is held may go into another model
    assert run_both(model, []).outputs[0].tolist() == [1, 0]
    assert run_both(graph.model(later.stack()), []).outputs[0].tolist() == [1, 2]
    later.write(0, 3.0)
    with pytest.raises(BuildError, match=r"write\(\) in test_mistakes.py, line \d+ is lost"):
        graph.model(later.stack())


def test_operations_that_are_nearly_spelled() -> None:
    with pytest.raises(
        AttributeError, match="operation 'reduce_summ' does not exist; did you mean reduce_sum or"
    ):
        _ = ops.reduce_summ


def test_numpys_own_spelling_of_operators() -> None:
    x = builder.Graph("numpy").parameter("x", "f32", [3])
    array = np.array([3, 2, 1], np.float32)
    made = [
        np.subtract(array, x),
        np.subtract(x, array),
        array < x,
        x[np.array([True, False, True])],
        x[[2, -3]],
    ]
    feed = np.array([1, 2, 4], np.float32)
    expected = [array - feed, feed - array, array < feed, feed[[0, 2]], feed[[2, 0]]]
    for mine, theirs in zip(run_both(x.graph.model(made), [feed]).outputs, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert len(x) == 3


def test_a_name_of_a_graph_is_text() -> None:
    with pytest.raises(BuildError, match=r"^the name of a graph is 3, expected text$"):
        builder.Graph(3)


def test_a_whole_number_has_64_bits() -> None:
    graph = builder.Graph("g")
    with pytest.raises(
        BuildError,
        match=r"^the constant is 1180591620717411303424: an integer needs more than 64 bits$",
    ):
        graph.constant(2**70)
    with pytest.raises(
        BuildError, match=r"^for_loop\(\): count is .*: an integer needs more than 64 bits$"
    ):
        builder.for_loop(2**70, lambda i, v: v, [graph.parameter("x", "f32", [])])


def test_a_structure_in_the_place_of_one_value_is_called_that() -> None:
    n = builder.Graph("structure").parameter("n", "i64", [])
    with pytest.raises(
        BuildError,
        match=r"the next value of loop_vars\[1\] is a list of 1 \(\[0\]\), expected one tensor",
    ):
        builder.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, [s]), [0, 0])
