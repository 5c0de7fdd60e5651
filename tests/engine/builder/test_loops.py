"""while_loop and its relations: structures, captures, invariants, and the same results in
Python, here and in OpenVINO.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import operator
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops, structure
from loopscope.builder.tensor import Tensor
from loopscope.builder.tensor_array import TensorArray
from loopscope.errors import BuildError
from loopscope.ir.address import graphs, nodes
from loopscope.ir.shape import PartialShape
from tests.engine.builder.both import run_both

Pair = collections.namedtuple("Pair", "j, k")


@dataclasses.dataclass(frozen=True)
class State:
    position: Any
    velocity: Any


def loops(model: loopscope.Model) -> dict[str, loopscope.ir.model.Node]:
    return {address: node for address, node in nodes(model) if node.type == "Loop"}


# -- while_loop
# -------------------------------------------------------------------------------------------------------


def test_the_condition_is_tested_before_every_iteration() -> None:
    graph = builder.Graph("halve")
    x = graph.parameter("x", "f32", [])
    last, count = builder.while_loop(lambda v, n: v > 1, lambda v, n: (v / 2, n + 1), (x, 0))
    model = graph.model([last, count])
    for start, expected in [(100.0, 7), (1.0, 0), (-3.0, 0), (1.5, 1)]:
        result = run_both(model, [np.float32(start)])
        assert result.outputs[1] == expected
        assert result.outputs[0] == start / 2**expected
        assert result.control_flow[0].iterations == expected


def test_it_is_a_loop_5_whose_ports_are_called_as_the_arguments() -> None:
    graph = builder.Graph("ports")
    n = graph.parameter("n", "i64", [])
    builder.while_loop(
        lambda i, pair: i < n,
        lambda i, pair: (i + 1, Pair(pair.k, pair.j + pair.k)),
        (0, Pair(0, 1)),
        name="fibonacci",
    )
    model = graph.model(n)
    (node,) = loops(model).values()
    body = node.body("body")
    assert (node.name, node.opset) == ("fibonacci", "opset5")
    assert [one.name for one in body.graph.parameters] == ["i", "pair_j", "pair_k", "n"]
    assert [one.name for one in body.graph.results] == [
        "condition",
        "i_next",
        "pair_j_next",
        "pair_k_next",
    ]
    assert [entry.external for entry in body.inputs] == [2, 3, 4, 5]
    assert len(body.back_edges) == 3
    assert not any(entry.is_iteration_number for entry in body.inputs)


STRUCTURES = {
    "list": ([0, 1.5], lambda i, v: [i + 1, v * 2], lambda i, v: i < 3, [3, 12.0]),
    "tuple": ((0, 1.5), lambda i, v: [i + 1, v * 2], lambda i, v: i < 3, (3, 12.0)),
    "named tuple inside": (
        (0, Pair(1, 2)),
        lambda i, p: (i + 1, Pair(p.j + p.k, p.j - p.k)),
        lambda i, p: i < 3,
        (3, Pair(6, -2)),
    ),
    "named tuple": (Pair(0, 1), lambda j, k: Pair(j + 1, k * 3), lambda j, k: j < 2, Pair(2, 9)),
    "dict": (
        {"i": 0, "v": 2.0},
        lambda s: {"v": s["v"] * s["v"], "i": s["i"] + 1},
        lambda s: s["i"] < 2,
        {"i": 2, "v": 16.0},
    ),
    "dataclass": (
        State(0.0, 1.0),
        lambda s: State(s.position + s.velocity, s.velocity / 2),
        lambda s: s.position < 1.8,
        State(1.875, 0.0625),
    ),
    "one in a list": ([3], lambda i: i - 1, lambda i: i > 0, [0]),
    "one alone": (3, lambda i: i - 1, lambda i: i > 0, 0),
    "nested": (
        ({"a": [0, (1,)]},),
        lambda d: {"a": [d["a"][0] + 1, (d["a"][1][0] * 2,)]},
        lambda d: d["a"][0] < 4,
        ({"a": [4, (16,)]},),
    ),
}


@pytest.mark.parametrize("case", STRUCTURES)
def test_the_result_has_the_structure_of_the_variables(case: str) -> None:
    start, body, cond, expected = STRUCTURES[case]
    graph = builder.Graph(case)
    end = builder.while_loop(cond, body, start)
    assert type(end) is type(expected) or isinstance(end, builder.Tensor)
    outputs = [leaf.value for leaf in structure.leaves(end)]
    result = run_both(graph.model(outputs))
    assert [output.item() for output in result.outputs] == [
        leaf.value for leaf in structure.leaves(expected)
    ]
    assert structure.matches(expected, structure.rebuild(end, [0] * len(outputs)))


def test_outer_tensors_are_captured_through_any_number_of_levels() -> None:
    graph = builder.Graph("captures")
    x, step = graph.parameter("x", "f32", [2]), graph.parameter("step", "f32", [])
    scale = step * 2

    def inner(v: Tensor) -> Tensor:
        return builder.cond(v[0] > 3, lambda: v + scale * step, lambda: v + scale + x)

    def outer(i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, builder.while_loop(
            lambda w: ops.reduce_sum(w, 0) < 30, inner, [v / 2], maximum_iterations=3
        )[0]

    _, end = builder.while_loop(lambda i, v: i < 4, outer, (0, x))
    model = graph.model(end)
    feeds = [np.array([1, 2], np.float32), np.float32(1.5)]
    value: Any = feeds[0]
    for _ in range(4):
        value = value / 2
        for _ in range(3):
            if not value.sum() < 30:
                break
            value = value + np.float32(4.5) if value[0] > 3 else value + 3 + feeds[0]
    np.testing.assert_allclose(run_both(model, feeds).outputs[0], value, rtol=1e-6)
    # An input that several places use comes in once.
    for place in graphs(model):
        names = [node.name for node in place.graph.parameters]
        assert len(names) == len(set(names))


def test_swapped_and_untouched_variables() -> None:
    graph = builder.Graph("swap")
    x = graph.parameter("x", "f32", [])
    made = builder.while_loop(
        lambda i, a, b, kept: i < 5, lambda i, a, b, kept: (i + 1, b, a + 1, kept), (0, x, x * 2, x)
    )
    result = run_both(graph.model(list(made)), [np.float32(3)])
    a, b = 3.0, 6.0
    for _ in range(5):
        a, b = b, a + 1
    assert [output.item() for output in result.outputs] == [5, a, b, 3]


def test_maximum_iterations() -> None:
    graph = builder.Graph("at most")
    most = graph.parameter("most", "i32", [])
    forever = builder.while_loop(lambda i: True, lambda i: i + 1, [0], maximum_iterations=most)[0]
    few = builder.while_loop(lambda i: i < 2, lambda i: i + 1, [0], maximum_iterations=5)[0]
    result = run_both(graph.model([forever, few]), [np.int32(6)])
    assert [output.item() for output in result.outputs] == [6, 2]
    # OpenVINO refuses a constant count of 0.
    none = builder.while_loop(lambda i: i < 2, lambda i: i + 1, [0], maximum_iterations=0)[0]
    assert loopscope.run(graph.model(none), [np.int32(6)]).outputs[0] == 0
    for wrong, words in [
        (-1, "is -1, expected at least 0"),
        (2.5, "expected a whole number"),
        (True, "expected a whole"),
        ([1, 2], "one number"),
    ]:
        with pytest.raises(BuildError, match=f"maximum_iterations.*{words}"):
            builder.while_loop(lambda i: i < 2, lambda i: i + 1, [0], maximum_iterations=wrong)


# -- shape invariants
# -------------------------------------------------------------------------------------------------


def doubled(i: Tensor, m: Tensor) -> list[Tensor]:
    return [i + 1, ops.concat([m, m], axis=0)]


def test_a_shape_that_grows_needs_an_invariant_that_lets_it() -> None:
    graph = builder.Graph("grow")
    i, m = graph.constant(0), graph.constant(np.ones((2, 2), np.float32))
    with pytest.raises(
        ValueError,
        match=r"loop_vars\[1\] has the shape invariant \[2,2\], but the shape \[4,2\] after one iteration",
    ):
        builder.while_loop(lambda i, m: i < 10, doubled, [i, m])
    assert "grow" in graph.name
    _, grown = builder.while_loop(
        lambda i, m: i < 3, doubled, [i, m], shape_invariants=[i.shape, [None, 2]]
    )
    assert str(grown.shape) == "[?,2]"
    assert run_both(graph.model(grown)).outputs[0].shape == (16, 2)


INVARIANTS = {
    "more general": (lambda v, d: v[d:], None, r"the shape \[..3\] after"),
    "more general than an explicit one": (
        lambda v, d: ops.concat([v, v], axis=0),
        [[3]],
        r"invariant \[3\], but the shape \[6\]",
    ),
    "another rank": (
        lambda v, d: ops.unsqueeze(v, 0),
        [[None]],
        r"invariant \[\?\], but the shape \[1,\?\]",
    ),
    "first shape outside": (
        lambda v, d: v,
        [[4]],
        r"starts with shape \[3\], which its shape invariant \[4\] excludes",
    ),
    "no shape": (
        lambda v, d: v,
        ["many"],
        r"the shape invariant of loop_vars\[0\] is 'many', expected lengths",
    ),
    "too few": (lambda v, d: v, [], r"shape_invariants is a list of 0 \(\), expected a list of 1"),
}


@pytest.mark.parametrize("case", INVARIANTS)
def test_broken_invariants_are_told(case: str) -> None:
    body, invariants, words = INVARIANTS[case]
    graph = builder.Graph(case)
    v, d = graph.parameter("v", "f32", [3]), graph.parameter("d", "i64", [])
    with pytest.raises(BuildError, match=words):
        builder.while_loop(
            lambda v: v[0] > 0, lambda v: [body(v, d)], [v], shape_invariants=invariants
        )
    assert len(graph.model(v).graph.nodes) == 3, "what was refused left nodes behind"


def test_invariants_that_hold() -> None:
    graph = builder.Graph("hold")
    v, d = graph.parameter("v", "f32", [3]), graph.parameter("d", "i64", [])
    by_name = builder.while_loop(
        lambda s: ops.reduce_sum(s["v"], 0) > 1,
        lambda s: {"v": s["v"][d:], "n": s["n"] + 1},
        {"n": 0, "v": v},
        {"v": [None], "n": None},
    )
    bounded = builder.while_loop(lambda w: ops.reduce_sum(w, 0) > 1, lambda w: w[d:], [v], ["..3"])
    unknown = builder.while_loop(
        lambda w: ops.reduce_sum(w, [0]) > 1, lambda w: w[d:], [v], [PartialShape()]
    )
    model = graph.model([by_name["v"], by_name["n"], bounded[0], unknown[0]])
    result = loopscope.run(model, [np.array([3, 2, 1], np.float32), 1])
    assert [output.tolist() for output in result.outputs] == [[1], 2, [1], [1]]


# -- what is refused
# --------------------------------------------------------------------------------------------------


def test_what_is_not_callable_is_a_type_error_and_no_variables_a_value_error() -> None:
    graph = builder.Graph("refused")
    x = graph.parameter("x", "f32", [])
    for wrong in [(True, lambda v: v), (lambda v: v > 0, x)]:
        with pytest.raises(
            TypeError, match=r"while_loop\(\): (cond|body) is .*, expected a function"
        ):
            builder.while_loop(*wrong, [x])
    nothing: list[Any] = [[], (), {}, [[], {}]]
    for empty in nothing:
        with pytest.raises(ValueError, match="loop_vars is empty"):
            builder.while_loop(lambda: True, lambda: (), empty)
    with pytest.raises(TypeError, match="fn is 3"):
        builder.scan(3, x)


REFUSED = {
    "type": (
        lambda v: [ops.convert(v, destination_type="i32")],
        r"loop_vars\[0\] starts as f32, but is i32 after one iteration",
    ),
    "number of values": (
        lambda v: (v, v),
        r"the result of body is a tuple of 2 .*expected a list of 1",
    ),
    "structure": (lambda v: {"v": v}, r"the result of body\[0\] is|the result of body is a dict"),
    "nothing": (lambda v: None, r"the next value of loop_vars\[0\] is None"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bodies_that_give_something_else(case: str) -> None:
    graph = builder.Graph(case)
    v = graph.parameter("v", "f32", [3])
    body, words = REFUSED[case]
    with pytest.raises(BuildError, match=words):
        builder.while_loop(lambda v: v[0] > 0, body, [v])


def test_conditions_must_be_one_truth() -> None:
    v = builder.Graph("conditions").parameter("v", "f32", [3])
    with pytest.raises(BuildError, match=r"cond returns <Tensor .* f32\[\]>, expected a boolean"):
        builder.while_loop(lambda v: v[0], lambda v: v, [v])
    with pytest.raises(
        BuildError, match=r"cond returns <Tensor .* boolean\[3\]>, expected one element"
    ):
        builder.while_loop(lambda v: v > 0, lambda v: v, [v])
    with pytest.raises(BuildError, match="the result of cond is None"):
        builder.while_loop(lambda v: None, lambda v: v, [v])


def test_what_lives_in_a_body_stays_there() -> None:
    graph = builder.Graph("leak")
    x = graph.parameter("x", "f32", [])
    leaked = []
    builder.while_loop(lambda v: v > 0, lambda v: leaked.append(v - 1) or v - 1, [x], name="inner")
    with pytest.raises(
        BuildError,
        match=r"belongs to the body of while_loop\(\) 'inner' and cannot be used in graph 'leak'",
    ):
        leaked[0] + x
    with pytest.raises(BuildError, match="belongs to the body"):
        graph.model(leaked)
    with pytest.raises(BuildError, match="cannot have parameters: create parameter 'late' outside"):
        builder.while_loop(lambda v: v > 0, lambda v: v - graph.parameter("late", "f32", []), [x])
    with pytest.raises(BuildError, match="is not finished"):
        builder.while_loop(lambda v: v > 0, lambda v: [graph.model(v)], [x])


# -- loops that count and go through
# ----------------------------------------------------------------------------------

ROWS = np.array([[1, -2], [3, 0.5], [-1, 4], [2, 2]], np.float32)


@pytest.fixture(params=[[4, 2], [None, 2]], ids=["static", "dynamic"])
def rows(request: pytest.FixtureRequest) -> Tensor:
    return builder.Graph("rows").parameter("rows", "f32", request.param)


@pytest.mark.parametrize("count", [5, 0, "computed"])
def test_for_loop(count: int | str) -> None:
    graph = builder.Graph("for")
    n = graph.parameter("n", "i64", [])
    total, product = builder.for_loop(
        n if isinstance(count, str) else count, lambda i, s, p: (s + i, p * 2), (0, 1)
    )
    # OpenVINO refuses a constant count of 0.
    result = (run_both if count else loopscope.run)(graph.model([total, product]), [4])
    times = 4 if isinstance(count, str) else count
    assert [output.item() for output in result.outputs] == [sum(range(times)), 2**times]


def test_map_fn(rows: Tensor) -> None:
    squares, (sums, first) = builder.map_fn(
        lambda row: (row * row, [ops.reduce_sum(row, 0), row[0]]), rows
    )
    result = run_both(rows.graph.model([squares, sums, first]), [ROWS])
    for mine, theirs in zip(result.outputs, [ROWS * ROWS, ROWS.sum(1), ROWS[:, 0]], strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_map_fn_over_a_structure(rows: Tensor) -> None:
    both = builder.map_fn(
        lambda e: e["row"] * e["weight"], {"row": rows, "weight": ops.reduce_sum(rows, [1])}
    )
    np.testing.assert_allclose(
        run_both(rows.graph.model(both), [ROWS]).outputs[0], ROWS * ROWS.sum(1, keepdims=True)
    )


def fold(a: Any, e: Any) -> Any:
    return a * np.float32(0.5) + e


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "begins", [True, False], ids=["from the first element", "from an initializer"]
)
def test_scan(rows: Tensor, reverse: bool, begins: bool) -> None:
    made = builder.scan(fold, rows, None if begins else np.ones(2, np.float32), reverse=reverse)
    going = ROWS[::-1] if reverse else ROWS
    expected = np.array(
        list(itertools.accumulate(going, fold, initial=None if begins else np.ones(2, np.float32)))
    )
    expected = expected if begins else expected[1:]
    np.testing.assert_allclose(
        run_both(rows.graph.model(made), [ROWS]).outputs[0],
        expected[::-1] if reverse else expected,
        rtol=1e-6,
    )


@pytest.mark.parametrize("initializer", [None, 10])
def test_foldl(rows: Tensor, initializer: int | None) -> None:
    made = builder.foldl(operator.add, rows[:, 1], initializer)
    expected = functools.reduce(operator.add, ROWS[:, 1].tolist(), initializer or 0)
    assert run_both(rows.graph.model(made), [ROWS]).outputs[0] == expected


def test_scan_with_structures(rows: Tensor) -> None:
    def step(state: dict[str, Tensor], row: Tensor) -> dict[str, Tensor]:
        return {"sum": state["sum"] + row, "count": state["count"] + 1}

    made = builder.scan(step, rows, {"sum": np.zeros(2, np.float32), "count": np.int64(0)})
    result = run_both(rows.graph.model(made), [ROWS])
    np.testing.assert_allclose(result.named["sum"], np.cumsum(ROWS, 0))
    assert result.named["count"].tolist() == [1, 2, 3, 4]


GOING = {
    "scalar": (
        lambda g: builder.map_fn(abs, g.parameter("s", "f32", [])),
        "expected at least one axis",
    ),
    "lengths": (
        lambda g: builder.map_fn(
            lambda e: e[0], (g.parameter("a", "f32", [3]), g.parameter("b", "f32", [4]))
        ),
        r"elems\[1\] has 4 elements, but the previous tensors have 3",
    ),
    "empty": (lambda g: builder.map_fn(abs, []), "elems is empty"),
    "gives nothing": (
        lambda g: builder.map_fn(lambda e: [], g.parameter("a", "f32", [3])),
        "fn returns no tensors",
    ),
    "shape of a fold": (
        lambda g: builder.foldl(lambda a, e: e[0], g.parameter("a", "f32", [3, 2]), None),
        r"initializer has the shape invariant \[2\]",
    ),
    "structure of a fold": (
        lambda g: builder.foldl(lambda a, e: (a, e), g.parameter("a", "f32", [3])),
        "the result of fn",
    ),
}


@pytest.mark.parametrize("case", GOING)
def test_wrong_elements(case: str) -> None:
    make, words = GOING[case]
    with pytest.raises(BuildError, match=words):
        make(builder.Graph(case))


# -- TensorArray
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, "computed"])
def test_a_tensor_array_is_a_loop_variable(rows: Tensor, size: int | str) -> None:
    length = ops.gather(ops.shape_of(rows), 0, 0) if size == "computed" else size
    source = builder.TensorArray.unstack(rows)
    target = builder.TensorArray("f32", length, [2])
    weight = source.size()

    def body(i: Tensor, written: TensorArray) -> tuple[Tensor, TensorArray]:
        return i + 1, written.write(
            i, source.read(3 - i) * ops.convert(i * weight, destination_type="f32")
        )

    _, written = builder.while_loop(lambda i, _: i < 3, body, (0, target))
    assert isinstance(written, builder.TensorArray)
    result = run_both(rows.graph.model([written.stack(), written.read(1)]), [ROWS])
    expected = np.array([ROWS[3 - i] * i * 4 if i < 3 else ROWS[0] * 0 for i in range(4)])
    np.testing.assert_allclose(result.outputs[0], expected)
    np.testing.assert_allclose(result.outputs[1], expected[1])


def test_tensor_arrays_that_are_wrong() -> None:
    graph = builder.Graph("arrays")
    array = builder.TensorArray("f32", 3, [2])
    for make, words in [
        (lambda: builder.TensorArray("f32", -1), "size is -1"),
        (
            lambda: builder.TensorArray("f32", 3, PartialShape.parse("...")),
            "the rank of element_shape is not known",
        ),
        (lambda: array.write(0, [1.0, 2.0, 3.0]), "have another shape"),
        (lambda: array.write(0, graph.parameter("i", "i32", [2])), "must be equal"),
        (lambda: builder.TensorArray.unstack(3.0), "expected at least one axis"),
    ]:
        with pytest.raises(BuildError, match=words):
            make()
