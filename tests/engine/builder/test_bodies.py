"""What a body can do beside its variables: number its iterations, collect, and be asked only
afterwards (do_while).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import Collected, ops
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.address import nodes
from tests.engine.builder.both import run_both


def body_of(model: loopscope.Model, name: str) -> loopscope.ir.model.Body:
    return next(node for _, node in nodes(model) if node.name == name).body("body")


# -- do_while
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "times"), [(100.0, 7), (1.5, 1), (1.0, 1), (-8.0, 1)])
def test_do_while_asks_after_the_iteration(start: float, times: int) -> None:
    graph = builder.Graph("halve")
    x = graph.parameter("x", "f32", [])
    last, count = builder.do_while(lambda v, n: v > 1, lambda v, n: (v / 2, n + 1), (x, 0))
    model = graph.model([last, count])
    result = run_both(model, [np.float32(start)])
    assert [output.item() for output in result.outputs] == [start / 2**times, times]
    assert [node.name for node in model.graph.nodes if node.type == "Loop"] == ["do_while"]


@pytest.mark.parametrize(("most", "times"), [(0, 0), (2, 2), (9, 7)])
def test_do_while_stops_at_the_most_iterations(most: int, times: int) -> None:
    graph = builder.Graph("halve")
    limit = graph.parameter("most", "i64", [])
    (last,) = builder.do_while(lambda v: v > 1, lambda v: v / 2, [100.0], maximum_iterations=limit)
    assert run_both(graph.model(last), [np.int64(most)]).outputs[0] == 100 / 2**times


def test_do_while_tells_its_own_name() -> None:
    x = builder.Graph("wrong").parameter("x", "f32", [])
    for wrong, error, words in [
        ((3, lambda v: v, [x]), TypeError, r"do_while\(\): cond is 3, expected a function"),
        ((lambda: True, lambda: (), []), ValueError, r"do_while\(\): loop_vars is empty"),
        (
            (lambda v: v, lambda v: v, [x]),
            BuildError,
            r"do_while\(\): cond returns <Tensor .*, expected a boolean",
        ),
        (
            (lambda v: True, lambda v: v > 0, [x]),
            BuildError,
            r"do_while\(\): loop_vars\[0\] starts as f32, but is boolean",
        ),
    ]:
        with pytest.raises(error, match=words):
            builder.do_while(*wrong)


# -- names
# ------------------------------------------------------------------------------------------------------------


def test_numbers_that_variables_begin_with_are_named_after_them() -> None:
    graph = builder.Graph("names")
    i, pair = builder.while_loop(
        lambda i, pair: i < 3,
        lambda i, pair: (i + 1, pair),
        (0, {"left": 1.0, "right": graph.constant(2.0)}),
    )
    names = [node.name for node in graph.model([i, pair]).graph.nodes if node.type == "Const"]
    assert [name for name in names if name.endswith("_initial")] == [
        "while/i_initial",
        "while/pair_left_initial",
    ]


def test_nodes_of_a_condition_are_named_as_those_beside_them() -> None:
    graph = builder.Graph("names")
    x = graph.parameter("x", "f32", [])
    (last,) = builder.while_loop(
        lambda v: ops.greater(v, 1, name="is_large"),
        lambda v: ops.divide(v, 2, name="half"),
        [x],
        name="halve",
    )
    model = graph.model(last)
    assert [node.name for node in model.graph.nodes if node.type == "Greater"] == ["halve/is_large"]
    assert [
        node.name
        for node in body_of(model, "halve").graph.nodes
        if node.type in ("Greater", "Divide")
    ] == ["half", "is_large"]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda rows: builder.foldl(lambda total, row: total + row, rows), ["total", "row"]),
        (
            lambda rows: builder.scan(
                lambda s, row: {"sum": s["sum"] + row}, rows, {"sum": np.zeros(2, np.float32)}
            ),
            ["s_sum", "row"],
        ),
        (
            lambda rows: builder.map_fn(lambda pair: pair[0] + pair[1], (rows, rows)),
            ["pair_0", "pair_1"],
        ),
        (lambda rows: builder.foldl(operator.add, rows), ["a", "b"]),
        (lambda rows: builder.for_loop(3, lambda i, total: total + i, [0]), ["total", "iteration"]),
        (lambda rows: builder.for_loop(3, lambda i, total: total + 1, [0]), ["total"]),
    ],
    ids=[
        "foldl",
        "scan",
        "map_fn",
        "a function of Python",
        "for_loop",
        "for_loop without its number",
    ],
)
def test_inputs_of_a_body_are_called_as_the_arguments(
    make: Callable[..., Any], expected: list[str]
) -> None:
    rows = builder.Graph("names").parameter("rows", "f32", [4, 2])
    model = rows.graph.model(make(rows))
    (loop,) = [node for _, node in nodes(model) if node.type == "Loop"]
    assert sorted(one.name for one in loop.body("body").graph.parameters) == sorted(expected)
    run_both(model, [np.arange(8, dtype=np.float32).reshape(4, 2)])


# -- current_iteration
# ------------------------------------------------------------------------------------------------


def test_the_number_of_the_iteration_is_that_of_the_innermost_loop() -> None:
    graph = builder.Graph("numbers")
    n = graph.parameter("n", "i64", [])

    def inner(total: Tensor) -> Tensor:
        return builder.cond(total < 100, lambda: total + builder.current_iteration(), lambda: total)

    def outer(total: Tensor) -> Tensor:
        before = builder.current_iteration("round") * 10
        (total,) = builder.while_loop(lambda t: True, inner, [total], maximum_iterations=3)
        return total + before + builder.current_iteration()

    (total,) = builder.while_loop(lambda t: t < 50, outer, [n])
    model = graph.model(total)
    expected, number = 5, 0
    while expected < 50:
        expected, number = expected + sum(range(3)) + number * 11, number + 1
    assert run_both(model, [np.int64(5)]).outputs[0] == expected
    assert [one.name for one in body_of(model, "while").graph.parameters] == ["total", "round"]


# -- Collected
# --------------------------------------------------------------------------------------------------------


LOOPS = {
    "while_loop": lambda body, n: builder.while_loop(lambda v: v < n, body, [0]),
    "do_while": lambda body, n: builder.do_while(lambda v: v < n, body, [0]),
    "for_loop": lambda body, n: builder.for_loop(n, lambda i, v: body(v), [0]),
    "foldl": lambda body, n: [builder.foldl(lambda v, _: body(v), np.zeros(4), np.int64(0))],
    "scan": lambda body, n: [builder.scan(lambda v, _: body(v), np.zeros(4), np.int64(0))[-1]],
    "map_fn": lambda body, n: [builder.map_fn(body, np.arange(4))[-1]],
}


@pytest.mark.parametrize("loop", LOOPS)
def test_collected_in_every_kind_of_loop(loop: str) -> None:
    graph = builder.Graph("collected")
    n = graph.parameter("n", "i64", [])
    squares, pairs = Collected("squares"), Collected("pairs")

    def body(v: Tensor) -> Tensor:
        squares.append(v * v)
        pairs.extend(ops.concat([v[None, None], v[None, None] + 1], axis=1))
        return v + 1

    (last,) = LOOPS[loop](body, n)
    model = graph.model({"last": last, "squares": squares.tensor, "pairs": pairs.tensor})
    result = run_both(model, [np.int64(4)])
    assert [result.named[name].tolist() for name in ("last", "squares", "pairs")] == [
        4,
        [0, 1, 4, 9],
        [[0, 1], [1, 2], [2, 3], [3, 4]],
    ]
    (node,) = [node for _, node in nodes(model) if node.type == "Loop"]
    assert [one.name for one in node.body("body").graph.results][-2:] == ["squares", "pairs"]


def test_nothing_is_collected_where_no_iteration_runs() -> None:
    graph = builder.Graph("none")
    n = graph.parameter("n", "i64", [])
    rows = Collected()
    builder.for_loop(n, lambda i, v: [rows.append(v), v][1], [np.ones(3, np.float32)])
    assert run_both(graph.model(rows.tensor), [np.int64(0)]).outputs[0].shape == (0, 3)


def test_collected_in_a_loop_inside_a_loop() -> None:
    graph = builder.Graph("table")
    n = graph.parameter("n", "i64", [])
    table = Collected("table")

    def row(i: Tensor, total: Tensor) -> Tensor:
        products = Collected("products")
        builder.for_loop(3, lambda j, v: [products.append(i * j), v][1], [0])
        table.append(products.tensor)
        return total + ops.reduce_sum(products.tensor, 0)

    (total,) = builder.for_loop(n, row, [0])
    result = run_both(graph.model({"table": table.tensor, "total": total}), [np.int64(4)])
    np.testing.assert_array_equal(result.named["table"], np.outer(range(4), range(3)))
    assert result.named["total"] == 18


def collect(do: Callable[..., Any]) -> list[Tensor] | None:
    """A loop whose body does something."""

    def body(v: Tensor) -> Tensor | None:
        do(v)
        return v

    return builder.while_loop(lambda v: v < 3, body, [0])


def collect_twice(seen: Collected) -> None:
    collect(seen.append)
    collect(seen.append)


REFUSED = {
    "outside": (
        lambda seen: seen.append(3),
        r"<Collected 'seen'>.append\(\) is called outside of a loop",
    ),
    "in a condition": (
        lambda seen: builder.while_loop(lambda v: [seen.append(v), v < 3][1], lambda v: v, [0]),
        r"in the cond of while_loop\(\) 'while', which is also evaluated before the first iteration",
    ),
    "in the condition of an inner loop": (
        lambda seen: collect(
            lambda v: builder.while_loop(
                lambda w: builder.current_iteration() < 3, lambda w: w, [v], name="inner"
            )
        ),
        r"current_iteration\(\) is called in the cond of while_loop\(\) 'inner'",
    ),
    "in a branch": (
        lambda seen: collect(
            lambda v: builder.cond(v < 2, lambda: [seen.append(v), v][1], lambda: v)
        ),
        r"in the true_fn of cond\(\) 'cond', which does not run in every iteration",
    ),
    "twice in one iteration": (
        lambda seen: collect(lambda v: [seen.append(v), seen.append(v)]),
        "is called a second time",
    ),
    "in two loops": (collect_twice, "is called a second time"),
    "a scalar as a part": (
        lambda seen: collect(seen.extend),
        r"extend\(\): expected length 1 along the first axis, got <Tensor .*;",
    ),
    "a longer part": (
        lambda seen: collect(lambda v: seen.extend([1, 2])),
        "expected length 1 along the first axis, got .*; append",
    ),
    "nothing": (
        lambda seen: collect(lambda v: seen.append(None)),
        r"append\(\): the value is None",
    ),
    "read too early": (
        lambda seen: collect(lambda v: [seen.append(v), seen.tensor]),
        "is empty",
    ),
    "never filled": (
        lambda seen: seen.tensor,
        r"<Collected 'seen'> is empty: call append\(\) or extend\(\)",
    ),
    "number outside": (
        lambda seen: builder.current_iteration(),
        r"current_iteration\(\) is called outside of a loop",
    ),
    "number in a branch outside": (
        lambda seen: builder.cond(True, builder.current_iteration, lambda: 0),
        r"current_iteration\(\) is called outside of a loop",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_only_a_body_can_do(case: str) -> None:
    do, words = REFUSED[case]
    graph = builder.Graph(case)
    with pytest.raises(BuildError, match=words):
        do(Collected("seen"))
    assert case == "in two loops" or not [node for node in graph.frame.nodes if node.type == "Loop"]


def test_a_body_that_was_refused_leaves_a_collected_as_it_was() -> None:
    graph = builder.Graph("again")
    seen = Collected()
    with pytest.raises(BuildError):
        collect(lambda v: [seen.append(v), graph.parameter("late", "f32", [])])
    collect(lambda v: seen.append(v + 1))
    assert (seen.tensor.rank, seen.name) == (1, "collected")
