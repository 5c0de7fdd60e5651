"""Every role and corner of Loop-5 (spec: infrastructure/loop-5), each with what it gives and why
it ended.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopscope
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import BackEdge, Body, InputMap, LayerId, OutputMap
from tests.engine.drafts import BOOL, F32, I32, I64, Draft, Ref, Slice, loop


def counting(
    trip: object,
    start: object,
    *,
    stop_at: float = 1e9,
    trip_type: ElementType = I64,
    shape: tuple[int, ...] = (),
    trip_shape: tuple[int, ...] = (),
) -> loopscope.Model:
    """Adds 1 to x in each iteration; goes on while x is below ``stop_at``. Outputs: the last x,
    all x joined, x of before.
    """
    outer = Draft()
    x = outer.parameter("x", F32, (1,))
    trips = outer.const(np.full(trip_shape, trip), trip_type)
    go = outer.const(np.full(shape, start), BOOL)
    body = Draft()
    state = body.parameter("state", F32, (1,))
    more = body.op("Add", state, body.const([1.0]), name="more")
    below = body.op("Less", more, body.const([stop_at]), name="below")
    again, out, before = (
        body.result(below),
        body.result(more, "more_out"),
        body.result(state, "before"),
    )
    made = loop(
        outer,
        body,
        trips,
        go,
        again=again,
        carried=[(x, state, out)],
        last=[out, before],
        joined=[(out, {})],
        name="count",
    )
    for output in range(3):
        outer.result(Ref(made.layer, output), f"out{output}")
    return outer.model()


@pytest.mark.parametrize("trip_type", [I32, I64])
@pytest.mark.parametrize("trip_shape", [(), (1,)])
@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize(
    ("trip", "start", "stop_at", "iterations", "ended_by"),
    [
        (3, True, 1e9, 3, "trip_count"),
        (-1, True, 4.0, 4, "condition"),
        (10, True, 4.0, 4, "condition"),
        (4, True, 4.0, 4, "condition"),  # both at once: it would have stopped anyway
        (0, True, 1e9, 0, "zero_trip_count"),
        (0, False, 1e9, 0, "zero_trip_count"),
        (5, False, 1e9, 0, "initial_condition"),
        (-1, False, 1e9, 0, "initial_condition"),
        (5, True, 0.0, 1, "condition"),
    ],
)
def test_count_and_ending(
    trip_type: ElementType,
    trip_shape: tuple[int],
    shape: tuple[int],
    trip: int,
    start: bool,
    stop_at: float,
    iterations: int,
    ended_by: str,
) -> None:
    model = counting(
        trip, start, stop_at=stop_at, trip_type=trip_type, shape=shape, trip_shape=trip_shape
    )
    result = loopscope.run(model, {"x": np.array([0], np.float32)})
    (record,) = result.control_flow
    assert (record.address, record.kind, record.iterations, record.ended_by, record.branch) == (
        "main/count",
        "Loop",
        iterations,
        ended_by,
        None,
    )
    last, before, joined = result.outputs
    assert last.tolist() == [float(iterations)]
    assert joined.tolist() == [float(number) for number in range(1, iterations + 1)]
    # A last value that is carried equals its initial value when nothing ran; one that is not
    # carried was never computed: zeros.
    assert before.tolist() == [max(iterations - 1.0, 0.0)]


def test_a_trip_count_beyond_32_bits_is_not_cut() -> None:
    """OpenVINO's CPU truncates 2^32 + 2 to 2 iterations; the specification does not."""
    model = counting(2**32 + 2, True, stop_at=6.0)
    assert loopscope.run(model, [np.array([0], np.float32)]).control_flow[0].iterations == 6


def test_states_swap_at_once() -> None:
    """OpenVINO's CPU copies one back edge after the other, and so loses a state from iteration 2
    on.
    """
    outer, body = Draft(), Draft()
    a, b = outer.parameter("a", F32, (2,)), outer.parameter("b", F32, (2,))
    left, right = body.parameter("left", F32, (2,)), body.parameter("right", F32, (2,))
    again = body.result(body.const(True, BOOL))
    to_left, to_right = body.result(right), body.result(left)
    made = loop(
        outer,
        body,
        outer.const(5, I64),
        outer.const(True, BOOL),
        again=again,
        carried=[(a, left, to_left), (b, right, to_right)],
        last=[to_left, to_right],
    )
    outer.result(made)
    outer.result(Ref(made.layer, 1))
    one, other = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    got = loopscope.run(outer.model(), [one, other]).outputs
    np.testing.assert_array_equal(got, [other, one])


@pytest.mark.parametrize(
    ("attributes", "joined_attributes", "expected"),
    [
        ({"axis": 0}, {}, [[1, 2], [3, 4], [5, 6]]),
        ({"axis": 0, "stride": -1}, {}, [[5, 6], [3, 4], [1, 2]]),
        ({"axis": 0}, {"stride": -1}, [[5, 6], [3, 4], [1, 2]]),
        ({"axis": -2}, {"axis": -2}, [[1, 2], [3, 4], [5, 6]]),
        ({"axis": 1}, {"axis": 1}, [[1, 2], [3, 4], [5, 6]]),
        ({"axis": 1, "stride": -1}, {"axis": 1}, [[2, 1], [4, 3], [6, 5]]),
        ({"axis": 1}, {"axis": 0}, [[1], [3], [5], [2], [4], [6]]),
    ],
)
def test_slices_and_joins(
    attributes: Slice, joined_attributes: Slice, expected: list[list[int]]
) -> None:
    outer, body = Draft(), Draft()
    x = outer.parameter("x", F32, (3, 2))
    part = body.parameter("part", F32, (-1, -1))
    again, out = body.result(body.const(True, BOOL)), body.result(part)
    trips = 3 if attributes["axis"] in (0, -2) else 2
    made = loop(
        outer,
        body,
        outer.const(trips, I64),
        outer.const(True, BOOL),
        again=again,
        sliced=[(x, part, attributes)],
        joined=[(out, joined_attributes)],
    )
    outer.result(made)
    got = loopscope.run(outer.model(), [np.array([[1, 2], [3, 4], [5, 6]], np.float32)]).outputs[0]
    np.testing.assert_array_equal(got, expected)


def test_parts_of_two() -> None:
    outer, body = Draft(), Draft()
    x = outer.parameter("x", F32, (6,))
    part = body.parameter("part", F32, (2,))
    again, out = body.result(body.const(True, BOOL)), body.result(body.op("Negative", part))
    made = loop(
        outer,
        body,
        outer.const(3, I64),
        outer.const(True, BOOL),
        again=again,
        sliced=[(x, part, {"axis": 0, "stride": -2, "part_size": 2})],
        joined=[(out, {"stride": 2, "part_size": 2})],
    )
    outer.result(made)
    got = loopscope.run(outer.model(), [np.arange(6, dtype=np.float32)]).outputs[0]
    assert got.tolist() == [-4, -5, -2, -3, 0, -1]


@pytest.mark.parametrize(
    ("trips", "iterations", "ended_by"),
    [
        (2, 2, "trip_count"),
        (4, 4, "trip_count"),
        (7, 4, "slices_exhausted"),
        (-1, 4, "slices_exhausted"),
    ],
)
def test_slices_run_out(trips: int, iterations: int, ended_by: str) -> None:
    """Every runtime leaves this undefined; we end there and say so."""
    outer, body = Draft(), Draft()
    x = outer.parameter("x", F32, (4,))
    part = body.parameter("part", F32, (1,))
    again, out = body.result(body.const(True, BOOL)), body.result(part)
    made = loop(
        outer,
        body,
        outer.const(trips, I64),
        outer.const(True, BOOL),
        again=again,
        sliced=[(x, part, {"axis": 0})],
        joined=[(out, {})],
    )
    outer.result(made)
    result = loopscope.run(outer.model(), [np.arange(4, dtype=np.float32)])
    assert (result.control_flow[0].iterations, result.control_flow[0].ended_by) == (
        iterations,
        ended_by,
    )
    assert result.outputs[0].tolist() == list(range(iterations))


@pytest.mark.parametrize("element_type", [I32, I64])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_current_iteration(element_type: ElementType, shape: tuple[int, ...]) -> None:
    outer, body = Draft(), Draft()
    number = body.parameter("number", element_type, shape)
    again, out = (
        body.result(body.const(True, BOOL)),
        body.result(body.op("Add", number, body.const(10, element_type))),
    )
    made = loop(
        outer,
        body,
        outer.const(3, I64),
        outer.const(True, BOOL),
        again=again,
        iteration=number,
        joined=[(out, {})],
    )
    outer.result(made)
    got = loopscope.run(outer.model()).outputs[0]
    assert got.dtype == element_type.dtype
    assert got.tolist() == [10, 11, 12]


def test_an_unconnected_carried_parameter_starts_at_zero() -> None:
    """As OpenVINO does; the check says so."""
    outer, body = Draft(), Draft()
    state = body.parameter("state", F32, (2,))
    again, out = (
        body.result(body.const(True, BOOL)),
        body.result(body.op("Add", state, body.const([1.0, 2.0]))),
    )
    bodies = Body(
        "body",
        body.graph(),
        (InputMap(-1, LayerId(state.layer)),),
        (
            OutputMap(2, LayerId(out.layer)),
            OutputMap(-1, LayerId(again.layer), purpose="execution_condition"),
        ),
        (BackEdge(LayerId(out.layer), LayerId(state.layer)),),
    )
    made = outer.region("Loop", [outer.const(3, I64), outer.const(True, BOOL)], [bodies], 1)
    outer.result(made)
    assert loopscope.run(outer.model()).outputs[0].tolist() == [3.0, 6.0]


@pytest.mark.parametrize(("axis", "lengths"), [(0, (0, 3)), (1, (0, 0))])
def test_joining_nothing(axis: int, lengths: tuple[int, int]) -> None:
    """Zero iterations: empty along the axis, and 0 in every dimension that is dynamic."""
    outer, body = Draft(), Draft()
    x = outer.parameter("x", F32, (-1, 3))
    whole = body.parameter("whole", F32, (-1, 3))
    again, out = body.result(body.const(True, BOOL)), body.result(body.op("Negative", whole))
    made = loop(
        outer,
        body,
        outer.const(0, I64),
        outer.const(True, BOOL),
        again=again,
        invariants=[(x, whole)],
        joined=[(out, {"axis": axis})],
    )
    outer.result(made)
    got = loopscope.run(outer.model(), [np.ones((2, 3), np.float32)]).outputs[0]
    assert got.shape == lengths
    assert got.dtype == np.float32


def test_a_state_may_grow() -> None:
    outer, body = Draft(), Draft()
    x = outer.parameter("x", F32, (-1,))
    state = body.parameter("state", F32, (-1,))
    again = body.result(body.const(True, BOOL))
    out = body.result(body.op("Concat", state, body.const([7.0]), axis="0"))
    made = loop(
        outer,
        body,
        outer.const(4, I64),
        outer.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        joined=[(out, {})],
    )
    outer.result(made)
    outer.result(Ref(made.layer, 1))
    last, joined = loopscope.run(outer.model(), [np.array([1], np.float32)]).outputs
    assert last.tolist() == [1, 7, 7, 7, 7]
    assert len(joined) == 2 + 3 + 4 + 5
    debugger = loopscope.Debugger(outer.model(), [np.array([1], np.float32)])
    debugger.run()
    shapes = [
        debugger.value(f"main/Loop_3[{iteration}]/body/state").shape for iteration in range(4)
    ]
    assert shapes == [(1,), (2,), (3,), (4,)]


def test_a_loop_without_end_is_never_a_hang() -> None:
    """Its condition is constant true: the limit pauses it, with everything kept."""
    model = counting(-1, True, stop_at=np.inf)
    with pytest.raises(loopscope.RunStopped, match="limit of 1,000 iterations") as stopped:
        loopscope.run(model, [np.array([0], np.float32)], limits=loopscope.Limits(iterations=1000))
    assert stopped.value.cause == "limit"
    assert stopped.value.address.startswith("main/count[1000]/body")
    (record,) = stopped.value.result.control_flow
    assert (record.iterations, record.ended_by) == (1000, "limit")


def test_a_repeating_state_proves_that_a_loop_never_ends() -> None:
    """x -> 1 - x comes back every second iteration, and nothing else feeds the next."""
    outer, body = Draft(), Draft()
    x = outer.parameter("x", F32, ())
    state = body.parameter("state", F32, ())
    out_value = body.op("Subtract", body.const(1.0), state)
    again, out = body.result(body.op("Less", out_value, body.const(5.0))), body.result(out_value)
    made = loop(
        outer,
        body,
        outer.const(-1, I64),
        outer.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
    )
    outer.result(made)
    with pytest.raises(
        loopscope.RunStopped, match=r"can never end: the carried state of iterations .* is equal"
    ):
        loopscope.run(outer.model(), [np.float32(0.25)])
    debugger = loopscope.Debugger(outer.model(), [np.float32(0.25)])
    debugger.run()
    assert "the carried state of iterations 0 and 2 is equal" in (debugger.failure or "")


@pytest.mark.parametrize(
    ("reads", "told"),
    [
        (False, "can never end: the carried state of iterations 0 and 2 is equal"),
        (True, "limit of 200,000 iterations"),
    ],
)
def test_an_iteration_number_that_nothing_reads_feeds_no_iteration(reads: bool, told: str) -> None:
    """Every Loop of ONNX has one. x -> -x comes back; with the number added to what the
    condition asks, it proves nothing.
    """
    outer, body = Draft(), Draft()
    x, number, state = (
        outer.parameter("x", F32, ()),
        body.parameter("number", I64, ()),
        body.parameter("state", F32, ()),
    )
    out_value = body.op("Negative", state)
    asked = (
        body.op("Multiply", body.op("Convert", number, destination_type="f32"), body.const(-1.0))
        if reads
        else out_value
    )
    again, out = body.result(body.op("Less", asked, body.const(5.0))), body.result(out_value)
    carried = [(x, state, out)]
    made = loop(
        outer,
        body,
        outer.const(-1, I64),
        outer.const(True, BOOL),
        again=again,
        carried=carried,
        iteration=number,
        last=[out],
        name="loop",
    )
    outer.result(made)
    debugger = loopscope.Debugger(
        outer.model(), [np.float32(0.25)], limits=loopscope.Limits(iterations=200_000)
    )
    debugger.run()
    assert told in (debugger.failure or "")


@pytest.mark.parametrize(
    "record",
    [None, loopscope.Record(), loopscope.Record(everything=True)],
    ids=["nothing", "the state", "everything"],
)
def test_the_iterations_that_prove_it_are_those_that_are_equal(
    record: loopscope.Record | None,
) -> None:
    """x counts up to 70,000 and stays there."""
    outer, body = Draft(), Draft()
    x, state = outer.parameter("x", F32, ()), body.parameter("state", F32, ())
    more = body.op("Minimum", body.op("Add", state, body.const(1.0)), body.const(70_000.0))
    again, out = body.result(body.op("Less", more, body.const(1e9))), body.result(more)
    made = loop(
        outer,
        body,
        outer.const(-1, I64),
        outer.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
    )
    outer.result(made)
    if record is None:
        with pytest.raises(loopscope.RunStopped) as stopped:
            loopscope.run(outer.model(), [np.float32(0)])
        told, reached = str(stopped.value), stopped.value.result.control_flow[0].iterations
    else:
        debugger = loopscope.Debugger(outer.model(), [np.float32(0)], record=record)
        debugger.run()
        told, reached = debugger.failure or "", debugger.control_flow[0].iterations
    found = re.search(r"iterations ([\d,]+) and ([\d,]+) is equal", told)
    assert found is not None
    one, other = (int(number.replace(",", "")) for number in found.groups())
    assert reached is not None
    assert 70_000 <= one < other <= reached
    assert record is None or (one, other) == (
        70_000,
        70_001,
    )  # when all rows are kept, the first two are named


def test_seconds_are_a_limit() -> None:
    model = counting(-1, True, stop_at=np.inf)
    with pytest.raises(loopscope.RunStopped, match=r"limit of 0\.2 seconds"):
        loopscope.run(model, [np.array([0], np.float32)], limits=loopscope.Limits(seconds=0.2))
