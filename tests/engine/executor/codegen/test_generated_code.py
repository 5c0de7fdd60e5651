"""Generated code: what it does not write down is found, what it shares is never mixed up, and it
counts exactly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder.tensor import Tensor
from tests.engine.drafts import (
    BOOL,
    F16,
    F32,
    I64,
    Draft,
    Ref,
    Slice,
    branch,
    loop,
    tensor_iterator,
)

RECORDS = [
    loopscope.Record(),
    loopscope.Record(everything=True),
    loopscope.Record(everything=True, budget_bytes=400),
]


def state_of(debugger: loopscope.Debugger) -> str:
    """Read anew: a type checker takes it for what it was before the run went on."""
    return debugger.state


def zigzag(trips: int, *, inner_trips: int | None = None, divisor: int = 10**9) -> loopscope.Model:
    """Counts up by 3, and down by 5 from 20 on: an If in a loop, perhaps in another. Divides
    ``divisor`` less what it has come to.

    The division fails where the two are equal.
    """
    then, otherwise, inner = Draft(), Draft(), Draft()
    p, q = then.parameter("p", I64, ()), otherwise.parameter("q", I64, ())
    down = then.result(
        then.op("Subtract", then.op("Identity", p, opset=16), then.const(5, I64), name="down")
    )
    up = otherwise.result(otherwise.op("Add", q, otherwise.const(3, I64), name="up"))
    x = inner.parameter("x", I64, ())
    high = inner.op("Greater", x, inner.const(20, I64), name="high")
    branches = [branch("then", then, [(1, p)], [down]), branch("else", otherwise, [(1, q)], [up])]
    made = inner.region("If", [high, x], branches, 1, name="if", opset=8)
    inner.op(
        "Divide",
        inner.const(7, I64),
        inner.op("Subtract", inner.const(divisor, I64), made),
        name="share",
    )
    out, again = inner.result(made), inner.result(inner.const(True, BOOL))
    main, body = Draft(), Draft()
    start = main.parameter("start", I64, ())
    if inner_trips is not None:
        y = body.parameter("y", I64, ())
        end = loop(
            body,
            inner,
            body.const(inner_trips, I64),
            body.const(True, BOOL),
            again=again,
            carried=[(y, x, out)],
            last=[out],
            joined=[(out, {})],
            name="inner",
        )
        total = body.op(
            "ReduceSum", Ref(end.layer, 1), body.const([0], I64), keep_dims="false", name="total"
        )
        again, x, out, inner = (
            body.result(body.op("Less", total, body.const(10**9, I64))),
            y,
            body.result(end),
            body,
        )
    trip, go = main.const(trips, I64), main.const(True, BOOL)
    main.result(
        loop(main, inner, trip, go, again=again, carried=[(start, x, out)], last=[out], name="loop")
    )
    return main.model()


def stepped(model: loopscope.Model, **options: Any) -> tuple[loopscope.Debugger, dict[str, object]]:
    """The model gone through step by step, and the value of every operation on the way."""
    debugger = loopscope.Debugger(model, [np.int64(0)], **options)
    values: dict[str, object] = {}
    while debugger.state == "paused":
        cursor = debugger.cursor
        debugger.step()
        if cursor.kind == "operation" and debugger.failed_address is None:
            values[cursor.address] = debugger.value(cursor.address)
    return debugger, values


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize(
    "model",
    [
        zigzag(60),
        zigzag(7, inner_trips=9),
        zigzag(60, divisor=17),
        zigzag(7, inner_trips=9, divisor=17),
    ],
    ids=["one loop", "two loops", "one loop that fails", "two loops of which one fails"],
)
def test_branches_that_follow_from_the_state_are_those_that_were_taken(
    model: loopscope.Model, record: loopscope.Record
) -> None:
    slow, values = stepped(model)
    fast = loopscope.Debugger(model, [np.int64(0)], record=record)
    fast.run()
    assert (fast.state, fast.failure, fast.steps) == (slow.state, slow.failure, slow.steps)
    assert list(fast.control_flow) == list(slow.control_flow)
    for address, value in values.items():
        np.testing.assert_array_equal(fast.value(address), value, err_msg=address)
    for step in (0, fast.steps // 3, fast.steps // 2, fast.steps - 1):
        assert fast.seek(step) == slow.seek(step)


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("allowance", [3, 7, 20])
def test_a_run_in_pieces_that_is_looked_at_between_them_is_one_run(
    record: loopscope.Record, allowance: int
) -> None:
    model = zigzag(7, inner_trips=9)
    whole = loopscope.Debugger(model, [np.int64(0)])
    whole.run()
    pieces = loopscope.Debugger(
        model, [np.int64(0)], record=record, limits=loopscope.Limits(iterations=allowance)
    )
    while pieces.state != "finished":
        pieces.run()
        pieces.machine.recording.pack()
        iterations = next(iter(pieces.control_flow)).iterations
        assert iterations is not None
        assert iterations <= 7
        pieces.step()
    assert list(pieces.control_flow) == list(whole.control_flow)
    assert pieces.result.outputs[0] == whole.result.outputs[0]
    for step in range(0, whole.steps, 13):
        assert pieces.seek(step) == whole.seek(step)


def begun(debugger: loopscope.Debugger) -> int:
    """Executions of loop bodies that have begun."""
    executions = debugger.timeline.executions
    bodies = [program for program in debugger.plan.programs if program.address.endswith("/body")]
    return sum(executions.rows[program.index] for program in bodies)


@pytest.mark.parametrize("slowly", [False, True], ids=["generated", "interpreted"])
@pytest.mark.parametrize("allowance", [1, 2, 5, 11, 64])
@pytest.mark.parametrize(
    "model",
    [zigzag(50), zigzag(9, inner_trips=8), zigzag(40, inner_trips=1), zigzag(3, inner_trips=40)],
)
def test_the_limit_of_iterations_is_exact_in_nests(
    model: loopscope.Model, allowance: int, slowly: bool
) -> None:
    """So many bodies have begun and not one more, all loops together; the next one is about to
    begin.
    """
    debugger = loopscope.Debugger(
        model, [np.int64(0)], limits=loopscope.Limits(iterations=allowance)
    )
    allowed = 0
    while debugger.state != "finished":
        allowed += allowance
        while slowly and state_of(debugger) != "finished":
            debugger.step()
            if debugger.state == "limit":
                break
        if not slowly:
            debugger.run()
        if debugger.state == "limit":
            assert debugger.failure == f"the limit of {allowed:,} iterations is reached"
            assert begun(debugger) == allowed + 1
    assert begun(debugger) <= allowed


@pytest.mark.measured
def test_who_waits_is_told_how_far_a_run_has_come() -> None:
    """While generated code runs, its iterations count already; after it, exactly."""
    debugger = loopscope.Debugger(
        zigzag(10**9, inner_trips=50), [np.int64(0)], limits=loopscope.Limits(seconds=20)
    )
    thread = threading.Thread(target=debugger.run)
    thread.start()
    control = debugger.machine.control
    started = time.monotonic()
    while control.reached < 10_000 and time.monotonic() - started < 15:
        time.sleep(0.01)
    debugger.stop()
    thread.join(5)
    assert control.reached > 10_000
    assert begun(debugger) - control.reached in (1, 2)


def test_a_condition_that_ends_a_loop_gives_back_what_was_allowed() -> None:
    """An inner loop that may run a million times but ends after 4 leaves the rest to the others."""
    inner, body, main = Draft(), Draft(), Draft()
    x, y, start = (
        inner.parameter("x", F32, ()),
        body.parameter("y", F32, ()),
        main.parameter("start", F32, ()),
    )
    more = inner.op("Add", x, inner.const(1.0), name="more")
    again = inner.result(inner.op("Less", more, inner.const(4.0)))
    out = inner.result(more)
    many, yes = body.const(10**6, I64), body.const(True, BOOL)
    end = loop(
        body,
        inner,
        many,
        yes,
        again=again,
        carried=[(body.op("Multiply", y, body.const(0.0)), x, out)],
        last=[out],
        name="inner",
    )
    kept, on = body.result(end), body.result(body.const(True, BOOL))
    main.result(
        loop(
            main,
            body,
            main.const(50, I64),
            main.const(True, BOOL),
            again=on,
            carried=[(start, y, kept)],
            last=[kept],
            name="outer",
        )
    )
    model = main.model()
    assert (
        loopscope.run(model, [np.float32(0)], limits=loopscope.Limits(iterations=250)).outputs[0]
        == 4
    )
    with pytest.raises(loopscope.RunStopped, match="the limit of 249 iterations is reached"):
        loopscope.run(model, [np.float32(0)], limits=loopscope.Limits(iterations=249))


@pytest.mark.parametrize("trips", [4, 40])
def test_a_condition_that_is_an_output_too_is_that_of_the_last_iteration(trips: int) -> None:
    """It asks what the iteration began with, which the back edge has overwritten when the loop
    has ended.
    """
    main, body = Draft(), Draft()
    start, x = main.parameter("start", F32, ()), body.parameter("x", F32, ())
    again = body.result(body.op("Less", x, body.const(float(trips))))
    out = body.result(body.op("Add", x, body.const(1.0)))
    trip, go = main.const(trips, I64), main.const(True, BOOL)
    end = loop(
        main, body, trip, go, again=again, carried=[(start, x, out)], last=[out, again], name="loop"
    )
    main.result(end)
    main.result(Ref(end.layer, 1))
    outputs = loopscope.run(main.model(), [np.float32(0)]).outputs
    assert [output.item() for output in outputs] == [trips, True]


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("stop", ["at a limit", "at a failure", "at the end"])
def test_an_iteration_number_that_nothing_reads_is_known_wherever_a_run_stops(
    stop: str, record: loopscope.Record
) -> None:
    outer, body = Draft(), Draft()
    x, number, state = (
        outer.parameter("x", I64, ()),
        body.parameter("number", I64, ()),
        body.parameter("state", I64, ()),
    )
    less = body.op("Subtract", state, body.const(1, I64))
    share = body.op(
        "Divide", body.const(7, I64), less if stop == "at a failure" else body.const(1, I64)
    )
    out, again = body.result(less), body.result(body.op("Less", share, body.const(100, I64)))
    trips, go = outer.const(40, I64), outer.const(True, BOOL)
    outer.result(
        loop(
            outer,
            body,
            trips,
            go,
            again=again,
            carried=[(x, state, out)],
            iteration=number,
            last=[out],
            name="loop",
        )
    )
    limits = loopscope.Limits(iterations=21) if stop == "at a limit" else loopscope.Limits()
    debugger = loopscope.Debugger(outer.model(), [np.int64(21)], record=record, limits=limits)
    debugger.run()
    assert (
        debugger.state
        == {"at a limit": "limit", "at a failure": "failed", "at the end": "finished"}[stop]
    )
    reached = 39 if stop == "at the end" else 20
    for iteration in (0, 7, reached):
        assert debugger.value(f"main/loop[{iteration}]/body/number") == iteration
    if stop == "at a limit":
        debugger.run()
        assert debugger.value("main/loop[39]/body/number") == 39


@pytest.mark.parametrize("stop", ["at a limit", "at a failure"])
def test_a_run_stops_after_an_if_that_only_another_asks(stop: str) -> None:
    """What the one gives has a local variable of its own."""
    graph = builder.Graph("asked once")
    x = graph.parameter("x", "i64", [])

    def body(number: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        asked = builder.cond(value < 50, lambda: number < 100, lambda: number < 60)
        _, more = builder.while_loop(
            lambda i, v: i < 5, lambda i, v: (i + 1, v + 1), [graph.constant(0), value]
        )
        return number + 1, builder.cond(asked, lambda: 1000 // (30 - number) + more, lambda: value)

    _, last = builder.while_loop(lambda number, value: number < 40, body, [graph.constant(0), x])
    limits = loopscope.Limits(iterations=99) if stop == "at a limit" else loopscope.Limits()
    debugger, stepped = (
        loopscope.Debugger(graph.model(last), [np.int64(0)], limits=limits) for _ in range(2)
    )
    debugger.run()
    assert debugger.state == {"at a limit": "limit", "at a failure": "failed"}[stop]
    while stepped.state == "paused":
        stepped.step()
    assert debugger.cursor.address == stepped.cursor.address
    assert list(debugger.control_flow) == list(stepped.control_flow)


def model_of_loop(
    main: Draft,
    body: Draft,
    trips: int,
    carried: tuple[Ref, Ref, Ref],
    *,
    last: Sequence[Ref] = (),
    joined: Sequence[tuple[Ref, Slice]] = (),
) -> loopscope.Model:
    """Return the model of a body that runs ``trips`` times and carries one value (initial value,
    Parameter, Result); its output is that of the loop.
    """
    trip, go = main.const(trips, I64), main.const(True, BOOL)
    again = body.result(body.const(True, BOOL))
    outputs = loop(
        main, body, trip, go, again=again, carried=[carried], last=last, joined=joined, name="loop"
    )
    main.result(outputs)
    return main.model()


def test_a_loop_in_a_loop_joins_each_of_its_outputs() -> None:
    main, body, inner = Draft(), Draft(), Draft()
    start, y = main.parameter("start", I64, ()), body.parameter("y", I64, ())
    x = inner.parameter("x", I64, ())
    plus = inner.op("Add", x, inner.const(1, I64))
    out, twice = inner.result(plus), inner.result(inner.op("Add", plus, plus))
    ends = loop(
        body,
        inner,
        body.const(5, I64),
        body.const(True, BOOL),
        again=inner.result(inner.const(True, BOOL)),
        carried=[(y, x, out)],
        joined=[(out, {}), (twice, {})],
        name="inner",
    )
    sums = [
        body.op("ReduceSum", Ref(ends.layer, index), body.const([0], I64), keep_dims="false")
        for index in range(2)
    ]
    after = body.result(body.op("Subtract", sums[1], sums[0]))
    model = model_of_loop(main, body, 6, (start, y, after), last=[after])
    fast = loopscope.run(model, [np.int64(0)]).outputs[0].item()
    expected = 0
    for _ in range(6):
        expected = sum(expected + number for number in range(1, 6))
    assert fast == expected


def test_the_state_before_the_last_back_edge_is_an_output() -> None:
    """The only output is the Parameter: the next state must not be written into its variable."""
    main, body = Draft(), Draft()
    start, x = main.parameter("start", I64, ()), body.parameter("x", I64, ())
    before, after = body.result(x), body.result(body.op("Add", x, body.const(1, I64)))
    model = model_of_loop(main, body, 40, (start, x, after), last=[before])
    assert loopscope.run(model, [np.int64(0)]).outputs[0].item() == 39


@pytest.mark.parametrize("trips", [1, 40])
def test_an_inner_tensor_iterator_converts_its_initial_state(trips: int) -> None:
    """It declares f16, and the loop around it carries f32."""
    main, body, inner = Draft(), Draft(), Draft()
    start, y = main.parameter("start", F32, ()), body.parameter("y", F32, ())
    x, part = inner.parameter("x", F16, ()), inner.parameter("part", F32, (1,))
    half = inner.result(
        inner.op("Multiply", x, inner.op("Convert", inner.const(0.5), destination_type="f16"))
    )
    halved = tensor_iterator(
        body,
        inner,
        carried=[(y, x, half)],
        sliced=[(body.const([0.0, 0.0]), part, {"axis": 0})],
        last=[half],
    )
    more = body.op("Convert", halved, destination_type="f32")
    after = body.result(body.op("Add", more, body.const(0.3)))
    model = model_of_loop(main, body, trips, (start, y, after), last=[after])
    expected = np.float32(0.1)
    for _ in range(trips):
        expected = np.float32(expected.astype(np.float16) / 4) + np.float32(0.3)
    output = loopscope.run(model, [np.float32(0.1)]).outputs[0]
    assert output.dtype == np.float32
    assert output == expected


def test_an_identity_after_the_last_operation_has_the_old_state() -> None:
    """It reads the Parameter: the next state must not be written into its variable before."""
    main, body = Draft(), Draft()
    start, x = main.parameter("start", I64, ()), body.parameter("x", I64, ())
    after = body.op("Add", x, body.const(1, I64))
    before = body.result(body.op("Identity", x, opset=16))
    after = body.result(after)
    model = model_of_loop(main, body, 40, (start, x, after), joined=[(before, {})])
    assert loopscope.run(model, [np.int64(0)]).outputs[0].tolist() == list(range(40))


def test_an_inner_tensor_iterator_converts_its_invariant_input() -> None:
    """It declares i64, and the loop around it passes 2.7."""
    main, body, inner = Draft(), Draft(), Draft()
    start, y = main.parameter("start", F32, ()), body.parameter("y", F32, ())
    x, whole = inner.parameter("x", F32, ()), inner.parameter("whole", I64, ())
    part = inner.parameter("part", F32, (1,))
    out = inner.result(inner.op("Add", x, inner.op("Convert", whole, destination_type="f32")))
    made = tensor_iterator(
        body,
        inner,
        carried=[(y, x, out)],
        invariants=[(body.const(2.7), whole)],
        sliced=[(body.const([0.0, 0.0]), part, {"axis": 0})],
        last=[out],
    )
    after = body.result(made)
    model = model_of_loop(main, body, 30, (start, y, after), last=[after])
    assert loopscope.run(model, [np.float32(0)]).outputs[0] == 30 * 2 * 2


def test_a_branch_reads_the_state_after_it_has_computed_the_next_one() -> None:
    then, otherwise, body, main = Draft(), Draft(), Draft(), Draft()
    p, q = then.parameter("p", I64, ()), otherwise.parameter("q", I64, ())
    up = then.op("Add", p, then.const(3, I64), name="up")
    then.op("Divide", then.const(1000, I64), p, name="share")
    branches = [
        branch("then", then, [(1, p)], [then.result(up)]),
        branch("else", otherwise, [(1, q)], [otherwise.result(q)]),
    ]
    start, x = main.parameter("start", I64, ()), body.parameter("x", I64, ())
    high = body.op("Less", x, body.const(90, I64), name="high")
    after = body.result(body.region("If", [high, x], branches, 1, name="if", opset=8))
    model = model_of_loop(main, body, 40, (start, x, after), last=[after])
    fast = loopscope.Debugger(
        model, [np.int64(1)], record=loopscope.Record(everything=True, recompute=False)
    )
    fast.run()
    for iteration in (0, 5, 29):
        share = fast.value(f"main/loop[{iteration}]/body/if/then/share")
        assert share == 1000 // (1 + 3 * iteration)
