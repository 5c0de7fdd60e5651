"""A run that only has to give its outputs lets go of every other value in time, and gives what a run that keeps them gives."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.debug.result import RunStopped
from engine.debug.starting import start
from engine.run import drive
from engine.run.machine.limits import Limits
from engine.run.plan.overrides import Overrides
from engine.run.plan.planner import plan_of
from engine.run.record.recording import NOTHING
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop

SIDE = 4


@st.composite
def graphs(draw: st.DrawFn) -> Draft:
    """Square matrices through operations that give new arrays, views and parts of their inputs, loops and branches; some feed many."""
    draft = Draft()
    values = [draft.parameter("p", F32, (SIDE, SIDE)), draft.parameter("q", F32, (SIDE, SIDE)), draft.const(np.eye(SIDE))]
    pick = st.sampled_from(values)
    for _ in range(draw(st.integers(1, 12))):
        kind, one, other = draw(st.sampled_from(sorted(STEPS))), draw(pick), draw(pick)
        values.append(STEPS[kind](draft, one, other))
    for value in draw(st.lists(pick, min_size=1, max_size=3)):
        draft.result(value)
    draft.result(values[-1])
    return draft


def bounded(draft: Draft, value: Ref) -> Ref:
    return draft.op("Clamp", value, min="-4", max="4")


def view(draft: Draft, one: Ref, other: Ref) -> Ref:
    wide = draft.op("Reshape", one, draft.const([2, -1], I64), special_zero="false")
    return draft.op("Transpose", draft.op("Reshape", wide, draft.const([SIDE, SIDE], I64), special_zero="false"), draft.const([1, 0], I64))


def part(draft: Draft, one: Ref, other: Ref) -> Ref:
    """One of two halves is read by nothing."""
    half = draft.op("Split", one, draft.const(0, I64), outputs=2, num_splits="2")
    return draft.op("Concat", half, half, axis="0")


def repeated(draft: Draft, one: Ref, other: Ref) -> Ref:
    body = Draft()
    state, again = body.parameter("state", F32, (SIDE, SIDE)), body.const(True, BOOL)
    add = body.parameter("add", F32, (SIDE, SIDE))
    out = body.result(body.op("Multiply", body.op("Add", state, add), body.const(0.5)))
    trips = draft.const(5, I64)
    return loop(
        draft,
        body,
        trips,
        draft.const(True, BOOL),
        again=body.result(again),
        carried=[(one, state, out)],
        invariants=[(other, add)],
        last=[out],
    )


def chosen(draft: Draft, one: Ref, other: Ref) -> Ref:
    condition = draft.op("ReduceLogicalOr", draft.op("Greater", one, other), draft.const([0, 1], I64), keep_dims="false")
    bodies = []
    for number, name in enumerate(("then", "else")):
        body = Draft()
        body.parameter("x", F32, (SIDE, SIDE))
        bodies.append(branch(name, body, [(number + 1, Ref(0))], [body.result(Ref(0))]))
    return draft.region("If", [condition, one, other], bodies, 1, opset=8)


STEPS = {
    "sum": lambda draft, one, other: bounded(draft, draft.op("Add", one, other)),
    "product": lambda draft, one, other: bounded(draft, draft.op("MatMul", one, other, transpose_a="false", transpose_b="true")),
    "same": lambda draft, one, other: draft.op("Identity", one, opset=16),
    "view": view,
    "part": part,
    "repeated": repeated,
    "chosen": chosen,
}


@settings(max_examples=150, deadline=None)
@given(draft=graphs(), seed=st.integers(0, 2**32 - 1))
def test_outputs_are_those_of_a_run_that_keeps_everything(draft: Draft, seed: int) -> None:
    model = draft.model()
    feeds = np.random.default_rng(seed).uniform(-2, 2, (2, SIDE, SIDE)).astype(np.float32)
    debugger = engine.Debugger(model, list(feeds))
    debugger.run()
    session = engine.Session(model)
    for _ in range(2):
        for kept, found in zip(debugger.result.outputs, session.run(list(feeds)).outputs, strict=True):
            np.testing.assert_array_equal(kept, found)


@settings(max_examples=50, deadline=None)
@given(draft=graphs())
def test_only_inputs_constants_and_outputs_are_left(draft: Draft) -> None:
    plan = plan_of(draft.model())
    machine = start(
        Overrides(plan), dict.fromkeys(plan.main.parameters.values(), np.ones((SIDE, SIDE), np.float32)), Limits(), NOTHING, 0, keeps=False
    )
    drive.run(machine)
    left = {slot for slot in plan.main.producer if machine.values[slot] is not None}
    assert left == plan.main.producer.keys() & set(plan.main.results.values())


def test_what_goes_does_not_count_against_the_limit() -> None:
    """Twenty values of 8 MB one after the other: all of them kept are too many, two at a time are not."""
    draft = Draft()
    value = draft.parameter("x", F32, (2_000_000,))
    for _ in range(20):
        value = draft.op("Add", value, draft.const(1.0))
    draft.result(value)
    model, feeds, limits = draft.model(), [np.zeros(2_000_000, np.float32)], Limits(memory_bytes=40_000_000)
    assert engine.run(model, feeds, limits=limits).outputs[0][0] == 20
    debugger = engine.Debugger(model, feeds, limits=limits)
    debugger.run()
    assert debugger.state == "failed"
    assert "all values of the run together" in (debugger.failure or "")


def sums(count: int, length: int) -> engine.Model:
    """So many additions one after the other."""
    draft = Draft()
    value = draft.parameter("x", F32, (length,))
    for _ in range(count):
        value = draft.op("Add", value, draft.const(1.0))
    draft.result(value)
    return draft.model()


def test_an_operation_costs_few_calls_of_our_own() -> None:
    def calls(count: int) -> int:
        session, feeds = engine.Session(sums(count, 4)), [np.zeros(4, np.float32)]
        for _ in range(3):
            session.run(feeds)
        seen = Counter[str]()
        before = sys.getprofile()
        sys.setprofile(lambda frame, event, argument: seen.update([event]))
        try:
            session.run(feeds)
        finally:
            sys.setprofile(before)
        return seen["call"]

    assert calls(200) - calls(100) <= 5 * 100


def test_a_failed_operation_still_tells_its_inputs() -> None:
    draft = Draft()
    x = draft.parameter("x", F32, (3,))
    shape = draft.op("Convert", draft.op("Add", x, x), destination_type="i64")
    draft.result(draft.op("Reshape", x, shape, special_zero="false"))
    with pytest.raises(RunStopped, match=r"inputs: f32\[3\] = \[1.0, 2.0, 2.0\]; i64\[3\] = \[2, 4, 4\]"):
        engine.run(draft.model(), [np.array([1, 2, 2], np.float32)])
