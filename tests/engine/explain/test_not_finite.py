"""The first NaN or infinity of a run: where stepping through it meets the first, however it was
recorded, and wherever it was made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope.explain.history import history
from loopscope.explain.not_finite import NotFinite, first_infinity, first_nan, first_not_finite
from tests.draws import draws
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, loop
from tests.engine.drawn.two_numbers import Drawn, bodies, whole
from tests.engine.explain.runs import begun, finished
from tests.engine.read.onnx_models import read

RECORDS = [
    loopscope.Record(),
    loopscope.Record(everything=True),
    loopscope.Record(budget_bytes=600),
]


SEARCHES = [
    (first_not_finite, lambda value: ~np.isfinite(value)),
    (first_nan, np.isnan),
    (first_infinity, np.isinf),
]
"""Each search with what it looks for."""
Search = tuple[Callable[..., NotFinite], Callable[[np.ndarray], np.ndarray]]


def stepped(
    debugger: loopscope.Debugger, odd: Callable[[np.ndarray], np.ndarray]
) -> tuple[int | None, str]:
    """By looking at the value of each operation as soon as it has run."""
    while debugger.state == "paused":
        cursor = debugger.cursor
        debugger.step()
        if (
            cursor.kind == "operation"
            and odd(debugger.value(cursor.address).astype(np.float64)).any()
        ):
            return debugger.cursor.step, cursor.address
    return None, ""


@settings(
    max_examples=draws(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    draft=bodies(),
    inputs=st.tuples(*[st.sampled_from([0.5, -1.0, 3e38, -3e38, 1e20, np.inf, np.nan])] * 2),
    record=st.sampled_from(RECORDS),
    stop=st.integers(1, 400),
    search=st.sampled_from(SEARCHES),
)
def test_it_is_what_stepping_meets_first(
    draft: Drawn, inputs: Sequence[float], record: loopscope.Record, stop: int, search: Search
) -> None:
    model = whole(draft)
    feeds = [np.float32(value) for value in inputs]
    look, odd = search
    expected = stepped(loopscope.Debugger(model, feeds), odd)
    debugger = loopscope.Debugger(model, feeds, record=record)
    debugger.run()
    found = look(debugger, 60)
    assert found.is_certain
    assert (found.step, found.address) == expected
    part = loopscope.Debugger(model, feeds, record=record)
    part.seek(stop)
    found = look(part, 60)
    assert (found.step, found.address) == (
        expected if expected[0] is not None and expected[0] <= stop else (None, "")
    )


def looping(
    build: Callable[[Draft, Ref], Ref],
    trips: int,
    *,
    start: object = 0.0,
    record: loopscope.Record | None = None,
) -> loopscope.Debugger:
    """A loop over one state; ``build`` makes the next from it."""
    main, body = Draft(), Draft()
    feed = np.asarray(start, np.float32)
    shape = feed.shape
    x, state = main.parameter("x", F32, shape), body.parameter("state", F32, shape)
    out, again = body.result(build(body, state)), body.result(body.const(True, BOOL))
    carried = [(x, state, out)]
    main.result(
        loop(
            main,
            body,
            main.const(trips, I64),
            main.const(True, BOOL),
            again=again,
            carried=carried,
            last=[out],
            name="loop",
        )
    )
    debugger = loopscope.Debugger(main.model(), [feed], record=record)
    debugger.run()
    return debugger


def inverse_of_distance(to: float) -> Callable[[Draft, Ref], Ref]:
    """Counts up; 1 / (state - to) stays inside."""

    def build(body: Draft, state: Ref) -> Ref:
        distance = body.op("Subtract", state, body.const(to))
        body.op("Divide", body.const(1.0), distance, name="inverse")
        return body.op("Add", state, body.const(1.0), name="next")

    return build


@pytest.mark.parametrize("record", RECORDS, ids=["the state", "everything", "a little"])
def test_what_never_leaves_an_iteration_is_found(record: loopscope.Record) -> None:
    found = first_not_finite(looping(inverse_of_distance(700), 1000, record=record), 60)
    assert (found.address, found.left) == ("main/loop[700]/body/inverse", ())
    assert (
        found.sentence == "The first NaN or infinity is computed by loop · iteration 700 › inverse."
    )
    assert (
        first_not_finite(looping(inverse_of_distance(-1), 1000, record=record), 60).sentence
        == "No operation computed a NaN or infinity."
    )


@pytest.mark.measured
def test_a_million_iterations_are_looked_at_within_a_second() -> None:
    debugger = looping(inverse_of_distance(900_000), 1_000_000)
    begin = time.process_time()
    found = first_not_finite(debugger)
    assert time.process_time() - begin < 1
    assert (found.address, found.is_certain) == ("main/loop[900000]/body/inverse", True)
    assert history(debugger, "main/loop/body/inverse").first_not_finite == 900_000


def test_what_was_not_looked_at_in_time_is_told() -> None:
    def build(body: Draft, state: Ref) -> Ref:
        body.op("MatMul", state, state, name="square", transpose_a="false", transpose_b="false")
        return body.op("Add", state, body.const([[1.0]]), name="next")

    debugger = looping(build, 3000, start=[[0.0, 1.0], [1.0, 0.0]])
    found = first_not_finite(debugger, 0)
    assert found.step is None
    assert found.sentence == (
        "No NaN or infinity was found in the values that were searched in time: of loop 0 of 3,000 executions were looked at."
    )
    assert first_not_finite(debugger, 60).is_certain


def test_a_later_one_that_is_seen_at_once_is_not_called_the_first() -> None:
    def build(body: Draft, state: Ref) -> Ref:
        total = body.op("ReduceSum", state, body.const([0], I64), keep_dims="true")
        body.op(
            "Divide",
            body.const([1.0]),
            body.op("Subtract", total, body.const([20.0])),
            name="inner",
        )
        return body.op("Multiply", state, body.const([2.0]), name="next")

    debugger = looping(build, 200, start=[1.0, 1.5])
    late, found = first_not_finite(debugger, 0), first_not_finite(debugger, 60)
    assert late.sentence.startswith(
        "A NaN or infinity, perhaps not the first, was computed by loop · iteration 127 › ReduceSum_2: of loop 0 of "
    )
    assert found.address == "main/loop[3]/body/inner"


def test_slices_and_iteration_numbers_and_outer_values() -> None:
    main, body = Draft(), Draft()
    x, factor = main.parameter("x", F32, (6, 2)), main.parameter("factor", F32, ())
    part, scale, number = (
        body.parameter("part", F32, (1, 2)),
        body.parameter("scale", F32, ()),
        body.parameter("number", I64, ()),
    )
    log = body.op("Log", body.op("Multiply", part, scale), name="log")
    scaled = body.op("Multiply", log, body.op("Convert", number, destination_type="f32"))
    out, again = (
        body.result(body.op("Clamp", scaled, min="-1", max="1")),
        body.result(body.const(True, BOOL)),
    )
    roles: dict[str, Any] = {
        "sliced": [(x, part, {"axis": 0, "stride": -1})],
        "invariants": [(factor, scale)],
        "iteration": number,
    }
    main.result(
        loop(
            main,
            body,
            main.const(6, I64),
            main.const(True, BOOL),
            again=again,
            joined=[(out, {})],
            name="loop",
            **roles,
        )
    )
    values = np.ones((6, 2), np.float32)
    values[1, 1] = 0
    debugger = loopscope.Debugger(main.model(), [values, np.float32(2)])
    debugger.run()
    found = first_not_finite(debugger)
    assert (found.address, found.is_certain) == ("main/loop[4]/body/log", True)


def test_onnx() -> None:
    text = """
    main (float[5] xs, float s) => (float last, float[5] all) {
      last, all = Scan <num_scan_inputs = 1, body = step (float v, float x) => (float w, float out) {
          w = Add (v, x)
          d = Div (v, x)
          t = Tanh (d)
          out = Identity (t)
        }
      > (s, xs)
    }
    """
    debugger = loopscope.Debugger(
        read(text), {"xs": np.array([1, 2, 0, 4, 5], np.float32), "s": np.float32(1)}
    )
    debugger.run()
    assert first_not_finite(debugger).address == f"{debugger.control_flow[0].address}[2]/body/Div_1"


def test_an_input_that_holds_one_is_named_where_no_operation_made_any() -> None:
    """What is rounded to an index is finite again, and fails for a number that nobody wrote."""
    text = "main (float[2] x) => (int64[2] y) { y = Cast <to = 7> (x) }"
    found = {}
    for value in (np.nan, 3.0):
        debugger = loopscope.Debugger(read(text), {"x": np.array([1, value], np.float32)})
        debugger.run()
        found[value] = first_not_finite(debugger)
    assert found[3.0].sentence == "No operation computed a NaN or infinity."
    odd = found[np.nan]
    assert (odd.step, odd.address, odd.source) == (None, "", "main/x")
    assert odd.sentence == "No operation computed a NaN or infinity, but the input x contains one."


def test_samples() -> None:
    assert (
        first_not_finite(finished("for_loop")).sentence
        == "No operation computed a NaN or infinity."
    )
    debugger = loopscope.Debugger(
        begun("diverging_training").model,
        {"weight": np.float32(1), "learning_rate": np.float32(1e30), "most_steps": 9},
    )
    debugger.run()
    found = first_not_finite(debugger)
    assert found.step is not None
    assert not np.isfinite(debugger.value(found.address)).all()
    debugger.seek(found.step)
    assert (
        debugger.cursor.previous == found.address
    )  # where it was made, not where the next iteration begins with it


def test_nan_and_infinity_are_two_searches() -> None:
    debugger = finished("diverging_training", "too_fast")
    assert (
        first_nan(debugger).sentence
        == "The first NaN is computed by while_training · iteration 5 › next_weight."
    )
    assert (
        first_infinity(debugger).sentence
        == "The first infinity is computed by while_training · iteration 4 › loss."
    )
    assert first_nan(finished("for_loop")).sentence == "No operation computed a NaN."
    assert first_infinity(finished("for_loop")).sentence == "No operation computed an infinity."


MADE = "computed by loop · iteration 0 ›"


@pytest.mark.parametrize(
    ("start", "nan", "infinity"),
    [
        (
            np.inf,
            f"The first NaN is {MADE} less.",
            f"The first infinity is {MADE} half from x, which contains one.",
        ),
        (
            np.nan,
            f"The first NaN is {MADE} half from x, which contains one.",
            "No operation computed an infinity.",
        ),
    ],
)
def test_inputs_that_are_not_finite(start: float, nan: str, infinity: str) -> None:
    def build(body: Draft, state: Ref) -> Ref:
        half = body.op("Multiply", state, body.const(0.5), name="half")
        return body.op("Subtract", half, state, name="less")

    debugger = looping(build, 3, start=start)
    assert (first_nan(debugger).sentence, first_infinity(debugger).sentence) == (nan, infinity)


def test_what_was_there_before_any_operation_is_told() -> None:
    def build(body: Draft, state: Ref) -> Ref:
        masked = body.op("Add", state, body.const([np.inf, 0.0], name="mask"), name="masked")
        return body.op(
            "Gather", masked, body.const([1, 1], I64), body.const(0, I64), opset=8, name="next"
        )

    made = "The first NaN or infinity is computed by"
    debugger = looping(build, 3, start=[0.0, 1.0])
    assert (
        first_not_finite(debugger).sentence
        == f"{made} loop · iteration 0 › masked from loop · iteration 0 › mask, which contains one."
    )
    counting = inverse_of_distance(-1)
    debugger = looping(counting, 3, start=np.nan)
    assert (
        first_not_finite(debugger).sentence
        == f"{made} loop · iteration 0 › Subtract_2 from x, which contains one."
    )
    plain = looping(counting, 3)
    changed = [
        (
            "main/loop[1]/body/next",
            "The first NaN or infinity is in loop · iteration 1 › next, where it was set by hand.",
        ),
        (
            "main/loop[1]/body/state",
            f"{made} loop · iteration 1 › Subtract_2 from loop · iteration 1 › state, which contains one.",
        ),
    ]
    for address, sentence in changed:
        debugger = loopscope.Debugger(plain.model, [np.float32(0)], changes={address: np.nan})
        debugger.run()
        assert first_not_finite(debugger).sentence == sentence


def test_nothing_has_run_yet() -> None:
    assert (
        first_not_finite(begun("for_loop")).sentence == "No operation computed a NaN or infinity."
    )
