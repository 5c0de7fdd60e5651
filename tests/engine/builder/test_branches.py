"""cond, case and switch_case: only the branch that is taken runs, and both give the same."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.errors import BuildError
from loopscope.ir.address import nodes
from tests.engine.builder.both import run_both


def test_cond_is_an_if_8_with_captured_inputs() -> None:
    graph = builder.Graph("cond")
    x, y = graph.parameter("x", "f32", [2]), graph.parameter("y", "f32", [2])
    made = builder.cond(
        x[0] > y[0],
        lambda: {"a": x + y, "b": (x, 1)},
        lambda: {"b": [y * 2, 2], "a": y - 1},
        name="choose",
    )
    model = graph.model([made["a"], *made["b"]])
    (node,) = [node for _, node in nodes(model) if node.type == "If"]
    assert (node.name, node.opset, len(node.inputs)) == ("choose", "opset8", 3)
    assert [[entry.external for entry in body.inputs] for body in node.bodies] == [[1, 2], [2]]
    for feeds, expected in [
        (([3, 1], [1, 2]), ([4, 3], [3, 1], 1)),
        (([0, 1], [1, 2]), ([0, 1], [2, 4], 2)),
    ]:
        result = run_both(model, [np.array(feed, np.float32) for feed in feeds])
        assert [output.tolist() for output in result.outputs] == [
            list(one) if isinstance(one, list) else one for one in expected
        ]


def test_the_other_branch_does_not_run() -> None:
    graph = builder.Graph("lazy")
    x, i = graph.parameter("x", "f32", [2]), graph.parameter("i", "i64", [])
    made = builder.cond(i < 2, lambda: ops.gather(x, i, 0), lambda: ops.reduce_sum(x, 0))
    assert run_both(graph.model(made), [np.array([1, 2], np.float32), 7]).outputs[0] == 3


def test_numbers_become_what_the_other_branch_has() -> None:
    graph = builder.Graph("numbers")
    x = graph.parameter("x", "f16", [])
    made = builder.cond(x > 0, lambda: 1, lambda: x)
    assert str(made.element_type) == "f16"
    assert loopscope.run(graph.model(made), [np.float16(3)]).outputs[0] == 1


def test_shapes_of_branches_are_joined() -> None:
    graph = builder.Graph("shapes")
    x = graph.parameter("x", "f32", [2])
    made = builder.cond(x[0] > 0, lambda: x, lambda: ops.concat([x, x], axis=0))
    assert str(made.shape) == "[2..4]"
    for first in (1, -1):
        run_both(graph.model(made), [np.array([first, 2], np.float32)])


@pytest.mark.parametrize(("number", "expected"), [(5, 50), (0, 0), (-3, 3), (100, 1000)])
def test_case_takes_the_first_true_one(number: int, expected: int) -> None:
    graph = builder.Graph("case")
    x = graph.parameter("x", "i64", [])
    made = builder.case(
        [(x < 0, lambda: -x), (x < 1, lambda: x), (x < 101, lambda: x * 10)],
        default=lambda: x * 100,
    )
    assert run_both(graph.model(made), [number]).outputs[0] == expected


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 7])
def test_switch_case(number: int) -> None:
    graph = builder.Graph("switch")
    i, x = graph.parameter("i", "i32", []), graph.parameter("x", "f32", [2])
    branches = [lambda: x, lambda: x + 1, lambda: x * 2]
    last = builder.switch_case(i, branches)
    given = builder.switch_case(
        i, dict(zip((0, 1, 7), branches, strict=True)), default=lambda: x - 1
    )
    result = run_both(graph.model([last, given]), [np.int32(number), np.array([1, 2], np.float32)])
    value = np.array([1, 2])
    assert result.outputs[0].tolist() == {0: value, 1: value + 1}.get(number, value * 2).tolist()
    assert (
        result.outputs[1].tolist()
        == {0: value, 1: value + 1, 7: value * 2}.get(number, value - 1).tolist()
    )


WRONG = {
    "no truth": (
        lambda x: builder.cond(x, lambda: x, lambda: x),
        r"pred is <Tensor 'x' f32\[2\]>, expected a boolean",
    ),
    "several booleans": (
        lambda x: builder.cond(x > 0, lambda: x, lambda: x),
        "expected one element",
    ),
    "types": (
        lambda x: builder.cond(x[0] > 0, lambda: x, lambda: ops.convert(x, destination_type="i32")),
        "is f32 when true and i32 when",
    ),
    "structures": (
        lambda x: builder.cond(x[0] > 0, lambda: x, lambda: (x, x)),
        "the result of the false_fn",
    ),
    "keys": (
        lambda x: builder.cond(x[0] > 0, lambda: {"a": x}, lambda: {"b": x}),
        r"the result of false_fn is a dict of 1 \(\['b'\]\), expected",
    ),
    "nothing": (
        lambda x: builder.cond(x[0] > 0, lambda: (), lambda: ()),
        "the branches return no tensors",
    ),
    "no pairs": (lambda x: builder.case([], lambda: x), "expected at least one pair"),
    "float": (
        lambda x: builder.switch_case(x[0], [lambda: x, lambda: x]),
        "expected a whole number",
    ),
    "number of a branch": (
        lambda x: builder.switch_case(x[0], {0.5: lambda: x}),
        "the number of a branch is 0.5",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_branches(case: str) -> None:
    make, words = WRONG[case]
    graph = builder.Graph(case)
    x = graph.parameter("x", "f32", [2])
    with pytest.raises(BuildError, match=words):
        make(x)


def test_branches_must_be_callable() -> None:
    x = builder.Graph("callable").parameter("x", "f32", [])
    for make in (
        lambda: builder.cond(x > 0, x, lambda: x),
        lambda: builder.case([(x > 0, 3)], lambda: x),
        lambda: builder.case([(x > 0, lambda: x)], None),
        lambda: builder.switch_case(1, [x, x]),
    ):
        with pytest.raises(TypeError, match="expected a function"):
            make()
