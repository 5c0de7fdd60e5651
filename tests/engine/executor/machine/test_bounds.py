"""Models that ask for more memory than a run allows are stopped with a sentence before they get
it, at both speeds.
"""

from __future__ import annotations

import resource
from collections.abc import Callable

import numpy as np
import pytest

import loopscope
from loopscope.debug.result import RunStopped
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, loop

LIMITS = loopscope.Limits(memory_bytes=2**27, seconds=20)


Step = Callable[[Draft, Ref], Ref]
"""Makes nodes of a body from a value in it."""


def growing(grow: Step, use: Step, trips: int) -> loopscope.Model:
    """A loop whose carried column grows; what ``use`` makes of it is looked at by the last
    output.
    """
    outer = Draft()
    x = outer.parameter("x", F32, (-1, 1))
    body = Draft()
    state = body.parameter("state", F32, (-1, 1))
    more, used = grow(body, state), use(body, state)
    seen = body.op("ReduceMax", used, body.const([0, 1], I64), keep_dims="true")
    again, out, last = (
        body.result(body.const(True, BOOL)),
        body.result(more, "more"),
        body.result(seen, "seen"),
    )
    made = loop(
        outer,
        body,
        outer.const(trips, I64),
        outer.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[last],
        joined=[],
    )
    outer.result(made)
    return outer.model()


def twice(body: Draft, x: Ref) -> Ref:
    return body.op("Concat", x, x, axis="0")


def same(body: Draft, x: Ref) -> Ref:
    return x


def turned(body: Draft, x: Ref) -> Ref:
    return body.op("Transpose", x, body.const([1, 0], I64))


def operation(kind: str) -> Step:
    return lambda body, x: body.op(kind, x, turned(body, x))


LOOPS = {
    "joined": (twice, same, "the joined tensor would have"),
    "sum": (twice, operation("Add"), "the result would have"),
    "power": (twice, operation("Power"), "the result would have"),
    "comparison": (
        twice,
        lambda body, x: body.op("Convert", operation("Less")(body, x), destination_type="f32"),
        "the result would have",
    ),
    "product": (
        twice,
        lambda body, x: body.op("MatMul", x, x, transpose_a=False, transpose_b=True),
        "the product would have",
    ),
}


@pytest.mark.parametrize("stepped", [False, True])
@pytest.mark.parametrize(("grow", "use", "message"), LOOPS.values(), ids=LOOPS.keys())
@pytest.mark.measured
def test_a_loop_that_grows_is_stopped(grow: Step, use: Step, message: str, stepped: bool) -> None:
    model = growing(grow, use, 60)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if stepped:
        debugger = loopscope.Debugger(model, [np.ones((1, 1), np.float32)], limits=LIMITS)
        while debugger.state == "paused":
            debugger.step()
        found = debugger.failure or ""
    else:
        with pytest.raises(RunStopped) as caught:
            loopscope.run(model, [np.ones((1, 1), np.float32)], limits=LIMITS)
        found = str(caught.value)
    assert message in found or "all values of the run together would take" in found
    assert len(found) < 600
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20


def test_many_values_that_are_allowed_one_by_one_are_not_allowed_together() -> None:
    outer = Draft()
    x = outer.parameter("x", F32, (1,))
    for number in range(8):
        outer.result(
            outer.op("Broadcast", x, outer.const([10_000_000 + number], I64), mode="numpy")
        )
    with pytest.raises(
        RunStopped,
        match="all values of the run together would take 160,000,028 bytes, more than the limit of 134,217,728",
    ):
        loopscope.run(outer.model(), [np.ones(1, np.float32)], limits=LIMITS)


@pytest.mark.timeout(10)
def test_an_empty_input_of_endless_length_is_told_by_its_shape() -> None:
    outer = Draft()
    x, y = outer.parameter("x", F32, (-1, -1)), outer.parameter("y", F32, (-1, -1))
    outer.result(outer.op("MatMul", x, y, transpose_a="false", transpose_b="false"))
    with pytest.raises(RunStopped, match=r"inputs: f32\[1000000000000,0\]; f32\[3,3\]"):
        loopscope.run(
            outer.model(), [np.empty((10**12, 0), np.float32), np.ones((3, 3), np.float32)]
        )
