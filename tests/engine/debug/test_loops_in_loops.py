"""Loops inside loops: whatever is recorded, every value of every iteration is that of a run that
records everything.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope.explain.history import history
from tests.draws import draws
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop
from tests.engine.drawn.agreement import WITHOUT_SHRINKING, Agreement
from tests.engine.drawn.models import same_bits

Step = Callable[[Draft, Ref, Ref, Ref], Ref]
"""Makes the next value in the inner loop's body, of the value, the iteration number and a number
that the outer loop carries.
"""


def grown(body: Draft, value: Ref, number: Ref, pace: Ref) -> Ref:
    return body.op(
        "Add", body.op("Multiply", value, body.const(np.float32(0.75))), pace, name="new"
    )


def chosen(body: Draft, value: Ref, number: Ref, pace: Ref) -> Ref:
    early = body.op("Less", number, body.const(4, I64))
    then, otherwise = Draft(), Draft()
    p, q = then.parameter("p", F32, ()), otherwise.parameter("q", F32, ())
    less, turned = (
        then.op("Subtract", p, then.const(np.float32(1.5))),
        otherwise.op("Multiply", q, otherwise.const(np.float32(-1))),
    )
    bodies = [
        branch("then", then, [(1, p)], [then.result(less)]),
        branch("else", otherwise, [(1, q)], [otherwise.result(turned)]),
    ]
    return grown(
        body, body.region("If", [early, value], bodies, 1, name="if", opset=8), number, pace
    )


def nest(
    step: Step,
    trips: int = 9,
    outer_trips: int = 40,
    *,
    until: float | None = None,
    given: bool = True,
) -> loopscope.Model:
    """``outer`` times: a value and a pace; ``inner`` times: a step, until the value is above a
    bound. Last values.
    """
    inner = Draft()
    value, pace, number = (
        inner.parameter("value", F32, ()),
        inner.parameter("pace", F32, ()),
        inner.parameter("number", I64, ()),
    )
    new = step(inner, value, number, pace)
    again = (
        inner.const(True, BOOL)
        if until is None
        else inner.op("Less", new, inner.const(np.float32(until)))
    )
    made = inner.result(new)
    body = Draft()
    first, speed = body.parameter("first", F32, ()), body.parameter("speed", F32, ())
    many = (
        body.const(trips, I64)
        if given
        else body.op(
            "Add", body.op("ShapeOf", body.const(np.zeros(trips)), opset=3), body.const(0, I64)
        )
    )
    start = body.op("Multiply", first, body.const(np.float32(0.5)))
    end = loop(
        body,
        inner,
        many,
        body.const(True, BOOL),
        again=inner.result(again),
        carried=[(start, value, made)],
        invariants=[(speed, pace)],
        iteration=number,
        last=[made],
        name="inner",
    )
    out, faster = body.result(end), body.result(body.op("Add", speed, body.const(np.float32(0.25))))
    main = Draft()
    x = main.parameter("x", F32, ())
    last = loop(
        main,
        body,
        main.const(outer_trips, I64),
        main.const(True, BOOL),
        again=body.result(body.const(True, BOOL)),
        carried=[(x, first, out), (x, speed, faster)],
        last=[out],
        name="outer",
    )
    main.result(last)
    return main.model()


def run(model: loopscope.Model, **options: Any) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, {"x": np.float32(1)}, **options)
    debugger.run()
    return debugger


@pytest.mark.parametrize("until", [None, 6.0])
@pytest.mark.parametrize("step", [grown, chosen])
def test_every_value_is_that_of_a_run_that_records_everything(
    step: Callable[..., Any], until: float | None
) -> None:
    model = nest(step, until=until)
    mine, whole = run(model), run(model, record=loopscope.Record(everything=True))
    counts = [
        record.iterations or 0 for record in whole.control_flow if record.address.endswith("inner")
    ]
    assert (min(counts) < max(counts)) == (until is not None)
    for outer, name in product(range(40), ("value", "new")):
        for number in range(counts[outer]):
            place = f"main/outer[{outer}]/body/inner[{number}]/body/{name}"
            assert same_bits(mine.value(place), whole.value(place)), place
        one, other = (
            history(debugger, f"main/outer[{outer}]/body/inner[*]/body/{name}")
            for debugger in (mine, whole)
        )
        assert same_bits(one.column, other.column)


def test_a_pause_in_the_midst_of_an_execution_shows_its_values_and_goes_on() -> None:
    model = nest(chosen, 100, 40)
    debugger, whole = (
        loopscope.Debugger(model, {"x": np.float32(1)}, limits=loopscope.Limits(iterations=1777)),
        run(model),
    )
    for _ in range(2):
        debugger.run()
        assert debugger.state == "limit"
        (outer, inner) = (
            graph.iteration for graph in debugger.frames() if graph.iteration is not None
        )
        assert inner > 10
        for number in (0, 1, inner // 2, inner - 1):
            place = f"main/outer[{outer}]/body/inner[{number}]/body/new"
            assert same_bits(debugger.value(place), whole.value(place)), place
        before = debugger.cursor
        debugger.step_back()
        assert debugger.step() == before
    debugger.machine.control.limits = loopscope.Limits()
    debugger.run()
    assert debugger.state == "finished"
    assert same_bits(debugger.result.outputs[0], whole.result.outputs[0])


def test_a_small_budget_keeps_some_iterations() -> None:
    model = nest(grown, 50, 400)
    debugger, whole = run(model, record=loopscope.Record(budget_bytes=600)), run(model)
    debugger.machine.recording.pack()
    assert debugger.machine.recording.bytes <= 600
    for outer in (0, 1, 7, 200, 399):
        place = f"main/outer[{outer}]/body/inner[31]/body/new"
        assert same_bits(debugger.value(place), whole.value(place)), place


def test_what_is_dropped_after_somebody_has_looked_is_computed_again() -> None:
    model = nest(grown, 50, 400)
    debugger, whole = run(model), run(model)
    places = [
        f"main/outer[{outer}]/body/inner[{inner}]/body/value"
        for outer in (0, 1, 5, 17, 20, 33, 129, 399)
        for inner in (0, 9, 49)
    ]
    recording = debugger.machine.recording
    for most in (recording.bytes, recording.bytes // 2, recording.bytes // 8):
        recording.record = loopscope.Record(budget_bytes=most)
        recording.pack()
        assert recording.bytes <= most
        for place in places:
            assert same_bits(debugger.value(place), whole.value(place)), place


@settings(
    max_examples=draws(40),
    deadline=None,
    phases=WITHOUT_SHRINKING,
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**40))
def test_all_ways_through_nests_of_numbers_agree(seed: int) -> None:
    agreement = Agreement.of(seed, numbers=True)
    if agreement.is_short:
        agreement.check(6)
