"""A gradient that whole numbers, steps or conditions cut everywhere says where; one that comes
through says nothing.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import loopscope
from loopscope import builder
from loopscope.builder import Tensor, ops


def _while_floor(x: Tensor) -> Any:
    return builder.for_loop(3, lambda i, h: ops.tanh(ops.floor(h)), [x])[0]


def _counted(x: Tensor) -> Any:
    return builder.while_loop(
        lambda a: a < ops.reduce_sum(x, [0]), lambda a: a + 1, [x.graph.constant(0.0)]
    )[0]


def _branch(x: Tensor) -> Any:
    one, two = x.graph.constant(1.0), x.graph.constant(2.0)
    return builder.cond(ops.reduce_sum(x, [0]) > 0, lambda: one, lambda: two)


def _whole(x: Tensor) -> Any:
    return ops.convert(ops.convert(x * 2.0, destination_type="i32"), destination_type="f32")


CUT: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "a cast": (_whole, "by Convert-1 'main/Convert', which gives whole numbers (i32)."),
    "a step": (ops.round, "by Round-5 'main/Round', which changes only in steps."),
    "two ways": (
        lambda x: ops.floor(x) + _whole(x),
        "by Convert-1 'main/Convert', which gives whole numbers (i32); and by Floor-1 'main/Floor', which changes only in steps.",
    ),
    "in a loop": (_while_floor, "by Floor-1 'main/for/body/Floor', which changes only in steps."),
    "a comparison": (
        lambda x: ops.select(x > 0.0, x.graph.constant(1.0), x.graph.constant(2.0)),
        "by Greater-1 'main/Greater', which gives a condition (boolean).",
    ),
    "the number of iterations": (
        _counted,
        "by Less-1 'main/while%2FLess', which gives a condition (boolean); and by Less-1 ",
    ),
    "a branch": (_branch, "by Greater-1 'main/Greater', which gives a condition (boolean)."),
    "nothing of it": (lambda x: x.graph.constant(1.0) * 2.0, ": 'y' does not depend on 'x'."),
}
FLOWS: dict[str, Callable[[Tensor], Any]] = {
    "beside a step": lambda x: x - ops.floor(x),
    "by a mask": lambda x: ops.select(x > 0.0, x, x * 0.1),
    "a loop that x ends": lambda x: builder.while_loop(
        lambda a: ops.reduce_sum(a, [0]) < 9, lambda a: a * 2, [x]
    )[0],
    "sorted": lambda x: ops.topk(x, 2, axis=0, mode="max", sort="value")[0],
    "the largest": lambda x: ops.gather(x, ops.topk(x, 1, axis=0, mode="max", sort="value")[1], 0),
}


def _model(made: Callable[[Tensor], Any]) -> loopscope.Model:
    x = builder.Graph("one").parameter("x", "f32", [3])
    return x.graph.model({"y": made(x)})


@pytest.mark.parametrize("name", CUT)
def test_what_cuts_all_ways_is_named(name: str) -> None:
    made, said = CUT[name]
    (note,) = loopscope.gradients(_model(made), of="y", with_respect_to="x").notes
    assert note.startswith("The gradient of 'y' with respect to 'x' is zero everywhere")
    assert said in note


@pytest.mark.parametrize("name", FLOWS)
def test_a_gradient_that_comes_through_says_nothing(name: str) -> None:
    assert loopscope.gradients(_model(FLOWS[name]), of="y", with_respect_to="x").notes == ()


def test_of_several_only_those_that_are_cut() -> None:
    x = builder.Graph("two").parameter("x", "f32", [3])
    w = x.graph.parameter("w", "f32", [3])
    made = loopscope.gradients(
        x.graph.model({"y": w * ops.sign(x)}), of="y", with_respect_to=["w", "x"]
    )
    assert [note[:40] for note in made.notes] == ["The gradient of 'y' with respect to 'x' "]


def test_python_warns_of_a_graph_under_construction() -> None:
    x = builder.Graph("built").parameter("x", "f32", [3])
    with pytest.warns(
        UserWarning,
        match=r"The gradient of 'Round' with respect to 'x' is zero everywhere: .*by Round-5 'main/Round'",
    ):
        builder.gradients(ops.round(x), x)


def test_python_does_not_warn_of_what_was_asked_for() -> None:
    x = builder.Graph("built").parameter("x", "f32", [3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.gradients([builder.stop_gradient(x) * 2.0, x.graph.constant(1.0)], x)


def test_an_onnx_model_says_it_too() -> None:
    from onnx import parser

    text = """<ir_version: 8, opset_import: ["" : 18]> agraph (float[3] x) => (float[3] y) {
        i = Cast<to = 6>(x)
        y = Cast<to = 1>(i)
    }"""
    made = loopscope.gradients(
        loopscope.read_model(parser.parse_model(text).SerializeToString()),
        of="y",
        with_respect_to="x",
    )
    assert re.search(r"by Cast-\d+ 'main/[^']+', which gives whole numbers \(i32\)", made.notes[0])
