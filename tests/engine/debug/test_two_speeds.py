"""Two speeds, one semantics: stepping, running, running with everything recorded, and seeking
agree on random nested models.
"""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from tests.draws import draws
from tests.engine.drawn.agreement import Agreement
from tests.engine.drawn.two_numbers import Drawn, bodies, whole

NUMBERS = st.tuples(st.floats(-2, 2, width=32), st.floats(-2, 2, width=32))


@settings(
    max_examples=draws(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(draft=bodies(), inputs=NUMBERS, seed=st.integers(0, 2**16))
def test_all_ways_through_a_run_agree(draft: Drawn, inputs: tuple[float, float], seed: int) -> None:
    agreement = Agreement(whole(draft), [[np.asarray(value, np.float32) for value in inputs]], seed)
    if agreement.is_short:
        agreement.check(6)


@settings(
    max_examples=draws(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    draft=bodies(),
    inputs=NUMBERS,
    allowance=st.integers(1, 9),
    record=st.sampled_from([loopscope.Record(), loopscope.Record(everything=True)]),
)
def test_a_run_that_limits_interrupt_ends_like_one_that_they_do_not(
    draft: Drawn, inputs: tuple[float, float], allowance: int, record: loopscope.Record
) -> None:
    model = whole(draft)
    feeds = [np.float32(value) for value in inputs]
    plain = loopscope.Debugger(model, feeds, record=record)
    plain.run()
    debugger = loopscope.Debugger(
        model, feeds, record=record, limits=loopscope.Limits(iterations=allowance)
    )
    for pauses in range(1, 2000):
        debugger.run()
        if debugger.state == "finished":
            break
        rows = debugger.timeline.executions.rows
        bodies_begun = sum(
            rows[program.index]
            for program in debugger.plan.programs
            if program.address.endswith("/body")
        )
        assert bodies_begun == pauses * allowance + 1
        debugger.machine.recording.pack()
    assert debugger.state == "finished"
    assert list(debugger.control_flow) == list(plain.control_flow)
    for mine, theirs in zip(debugger.result.outputs, plain.result.outputs, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for step in range(0, plain.steps, max(plain.steps // 7, 1)):
        assert debugger.seek(step) == plain.seek(step)
