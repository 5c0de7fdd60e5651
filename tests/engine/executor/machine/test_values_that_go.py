"""A run that only has to give its outputs lets go of every other value in time, and gives what a
run that keeps them gives.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopscope
from loopscope.debug.progress import start
from loopscope.debug.result import RunStopped
from loopscope.executor import drive
from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.planner import plan_of
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import NOTHING
from tests.draws import draws
from tests.engine.drafts import F32, Draft
from tests.engine.drawn.agreement import WITHOUT_SHRINKING, Agreement
from tests.engine.drawn.models import drawn_model


@settings(max_examples=draws(50), deadline=None, phases=WITHOUT_SHRINKING)
@given(seed=st.integers(0, 2**40))
def test_outputs_are_those_of_a_run_that_keeps_everything(seed: int) -> None:
    agreement = Agreement.of(seed)
    for feeds, expected in agreement.stepped if agreement.is_short else ():
        agreement.session(feeds, expected)


@settings(max_examples=draws(100), deadline=None, phases=WITHOUT_SHRINKING)
@given(seed=st.integers(0, 2**40))
def test_only_inputs_constants_and_outputs_are_left(seed: int) -> None:
    model, (feeds, _) = drawn_model(seed)
    plan = plan_of(model)
    machine = start(
        Overrides(plan),
        dict(zip(plan.main.parameters.values(), feeds, strict=True)),
        Limits(),
        NOTHING,
        0,
        keeps=False,
    )
    drive.run(machine)
    left = {slot for slot in plan.main.producer if machine.values[slot] is not None}
    assert left == plan.main.producer.keys() & set(plan.main.results.values())


def test_what_goes_does_not_count_against_the_limit() -> None:
    """Twenty values of 8 MB one after the other: all of them kept are too many, two at a time
    are not.
    """
    draft = Draft()
    value = draft.parameter("x", F32, (2_000_000,))
    for _ in range(20):
        value = draft.op("Add", value, draft.const(1.0))
    draft.result(value)
    model, feeds, limits = (
        draft.model(),
        [np.zeros(2_000_000, np.float32)],
        Limits(memory_bytes=40_000_000),
    )
    assert loopscope.run(model, feeds, limits=limits).outputs[0][0] == 20
    debugger = loopscope.Debugger(model, feeds, limits=limits)
    debugger.run()
    assert debugger.state == "failed"
    assert "all values of the run together" in (debugger.failure or "")


def sums(count: int, length: int) -> loopscope.Model:
    """So many additions one after the other."""
    draft = Draft()
    value = draft.parameter("x", F32, (length,))
    for _ in range(count):
        value = draft.op("Add", value, draft.const(1.0))
    draft.result(value)
    return draft.model()


def test_an_operation_costs_few_calls_of_our_own() -> None:
    def calls(count: int) -> int:
        session, feeds = loopscope.Session(sums(count, 4)), [np.zeros(4, np.float32)]
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
    with pytest.raises(
        RunStopped, match=r"inputs: f32\[3\] = \[1.0, 2.0, 2.0\]; i64\[3\] = \[2, 4, 4\]"
    ):
        loopscope.run(draft.model(), [np.array([1, 2, 2], np.float32)])
