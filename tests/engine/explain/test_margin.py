"""How narrowly a comparison was decided: distances as they are, and types in which it really
comes out otherwise.
"""

from __future__ import annotations

import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.explain.facts import margin


@pytest.mark.parametrize(
    ("one", "other", "sign", "distance", "otherwise"),
    [
        (0.5004, 0.5, ">", 4e-4, ("bf16",)),
        (0.5, 0.50001, "<", 1e-5, ("f16", "bf16")),
        (0.5, 0.75, "<", 0.25, ()),
        (70000.0, 70001.0, "<", 1, ("f16", "bf16")),  # both are infinite in f16
        (1.0, 1.0, "==", 0, ()),
        (1.0, 1.0001, "!=", 1e-4, ("f16", "bf16")),
    ],
)
def test_margins(
    one: float, other: float, sign: str, distance: float, otherwise: tuple[str, ...]
) -> None:
    found = margin(np.float32(one), np.float32(other), sign)
    assert found is not None
    assert found.distance == pytest.approx(distance, rel=0.01)
    assert found.otherwise == otherwise


@pytest.mark.parametrize(
    "pair",
    [
        (np.int32(3), np.int32(4)),
        (np.complex64(1), np.complex64(1j)),
        (np.float32(np.nan), np.float32(0)),
        (np.float32(np.inf), np.float32(0)),
    ],
)
def test_of_other_values_there_is_none(pair: tuple[Any, Any]) -> None:
    assert margin(*pair, "<") is None


@given(st.floats(-1e3, 1e3, width=32), st.floats(-1e3, 1e3, width=32))
def test_a_type_is_named_when_it_decides_otherwise(one: float, other: float) -> None:
    found = margin(np.float32(one), np.float32(other), "<")
    assert found is not None
    for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        turned = operator.lt(dtype(np.float32(one)), dtype(np.float32(other))) != (one < other)
        assert (name in found.otherwise) == bool(turned)


def fragile(bound: float) -> loopscope.Debugger:
    graph = builder.Graph("fragile")
    x = graph.parameter("x", "f32", [])
    model = graph.model(
        builder.while_loop(lambda v: v > bound, lambda v: v - 0.25, [x], name="falls")
    )
    debugger = loopscope.Debugger(model, [np.float32(1.0004)])
    debugger.run()
    return debugger


def test_the_verdict_of_a_loop_says_so() -> None:
    debugger = fragile(0.5005)
    found = loopscope.verdict(debugger, debugger.control_flow[0].address)
    assert found.margin is not None
    assert found.margin.otherwise == ()  # both are 0.5 in bf16, which is not more than it either
    other = loopscope.verdict(fragile(0.5003), debugger.control_flow[0].address)
    assert "would decide otherwise" not in other.sentence  # it ended at 0.2504


def test_the_verdict_of_a_branch_says_so() -> None:
    graph = builder.Graph("branch")
    x = graph.parameter("x", "f32", [])
    model = graph.model(builder.cond(x > 0.5, lambda: x * 2.0, lambda: x))
    debugger = loopscope.Debugger(model, [np.float32(0.5004)])
    debugger.run()
    found = loopscope.verdict(debugger, debugger.control_flow[0].address)
    assert found.sentence.endswith("That was decided by 0.0004: bf16 would decide otherwise.")
    rounded = loopscope.Debugger(model, [np.float32(0.5004)], rounding={"*": "bf16"})
    rounded.run()
    assert (debugger.control_flow[0].branch, rounded.control_flow[0].branch) == ("then", "else")
