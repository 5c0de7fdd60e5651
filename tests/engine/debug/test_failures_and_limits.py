"""Runs that fail, reach a limit, or are stopped: everything up to there is kept."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import loopscope
from loopscope.errors import ValueUnavailable
from tests.engine.drafts import BOOL, F32, I64, Draft, loop


def failing(at: float) -> loopscope.Model:
    """Divides integers by a counter that comes to zero."""
    main, body = Draft(), Draft()
    x = main.parameter("x", I64, ())
    state = body.parameter("state", I64, ())
    less = body.op("Subtract", state, body.const(1, I64), name="less")
    body.op("Divide", body.const(7, I64), state, name="share")
    out, again = body.result(less), body.result(body.const(True, BOOL))
    made = loop(
        main,
        body,
        main.const(100, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        name="loop",
    )
    main.result(made)
    return main.model()


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("start", [1, 30])
def test_a_failure_keeps_everything_before_it(start: int, steps: bool) -> None:
    """Interpreted or in generated code: the same place, the same words, and the past is still
    there.
    """
    d = loopscope.Debugger(failing(0), [np.int64(start)])
    if steps:
        while d.state == "paused":
            d.step()
    else:
        d.run()
    assert d.state == "failed"
    assert d.failed_address == f"main/loop[{start}]/body/share"
    assert (
        d.failure
        == "Divide-1 failed: integer division by zero: 1 of 1 divisors are 0 (inputs: i64[] = 7; i64[] = 0)"
    )
    assert d.cursor.address == d.failed_address
    assert d.statuses()["main/loop/body/share"] == "failed"
    assert d.value(f"main/loop[{start - 1}]/body/share") == 7
    with pytest.raises(ValueUnavailable, match="failed"):
        d.value(f"main/loop[{start}]/body/share")
    (record,) = d.control_flow
    assert (record.iterations, record.ended_by) == (start, "error")
    assert d.step().address == d.failed_address
    assert d.run().address == d.failed_address
    assert d.step_back().step == d.steps - 1
    with pytest.raises(loopscope.RunStopped, match="integer division by zero") as stopped:
        loopscope.run(failing(0), [np.int64(start)], optimise=loopscope.Optimise(prune=False))
    assert (stopped.value.cause, stopped.value.address) == ("error", d.failed_address)
    with pytest.raises(ValueUnavailable, match="the run did not finish"):
        _ = d.result.outputs


def endless() -> loopscope.Model:
    """Counts forever."""
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, ()), body.parameter("state", F32, ())
    more = body.op("Add", state, body.const(1.0), name="more")
    out, again = body.result(more), body.result(body.const(True, BOOL))
    made = loop(
        main,
        body,
        main.const(-1, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        name="loop",
    )
    main.result(made)
    return main.model()


@pytest.mark.measured
def test_a_limit_pauses_and_a_run_goes_on_for_as_much_again() -> None:
    d = loopscope.Debugger(endless(), [np.float32(0)], limits=loopscope.Limits(iterations=1000))
    for times in (1, 2, 3):
        d.run()
        assert (d.state, d.failure) == (
            "limit",
            f"the limit of {1000 * times:,} iterations is reached",
        )
        assert d.control_flow[0].iterations == 1000 * times
        assert d.control_flow[0].ended_by == "limit"
        assert d.cursor.address == f"main/loop[{1000 * times}]/body/more"
        assert d.value(f"main/loop[{1000 * times - 1}]/body/more") == 1000 * times
    d.seek(5)
    assert d.cursor.address == "main/loop[2]/body/more"
    timed = loopscope.Debugger(endless(), [np.float32(0)], limits=loopscope.Limits(seconds=0.05))
    started = time.perf_counter()
    timed.run()
    assert timed.state == "limit"
    assert "0.05 seconds" in str(timed.failure)
    for _ in range(3):  # each time it goes on for as much again
        before = timed.steps
        timed.run()
        assert timed.state == "limit"
        assert timed.steps > before
    assert time.perf_counter() - started < 2


@pytest.mark.measured
def test_another_thread_stops_a_run() -> None:
    d = loopscope.Debugger(endless(), [np.float32(0)], limits=loopscope.Limits(seconds=30))
    thread = threading.Thread(target=d.run)
    thread.start()
    time.sleep(0.1)
    asked = time.perf_counter()
    d.stop()
    thread.join(5)
    assert not thread.is_alive()
    assert time.perf_counter() - asked < 1  # 0.1 s on a machine that does nothing else
    assert d.state == "paused"
    reached = d.control_flow[0].iterations
    assert reached is not None
    assert reached > 100
    assert d.value(f"main/loop[{reached - 1}]/body/more") == reached
    d.step()
    assert d.state == "paused"


def long_past(seconds: float) -> loopscope.Debugger:
    """At the beginning of a run that is over, with a breakpoint that nothing in it fulfils."""
    main, body = Draft(), Draft()
    x, state = main.parameter("x", I64, ()), body.parameter("state", I64, ())
    out, again = (
        body.result(body.op("Add", state, body.const(1, I64), name="add")),
        body.result(body.const(True, BOOL)),
    )
    trips = main.const(100_000, I64)
    main.result(
        loop(
            main,
            body,
            trips,
            main.const(True, BOOL),
            again=again,
            carried=[(x, state, out)],
            last=[out],
            name="loop",
        )
    )
    d = loopscope.Debugger(main.model(), [np.int64(0)], limits=loopscope.Limits(seconds=seconds))
    d.run()
    assert d.state == "finished"
    d.seek(0)
    d.breakpoints.add("", "state < 0")
    return d


@pytest.mark.measured
def test_a_search_through_what_has_run_has_the_limit_of_a_run() -> None:
    d = long_past(seconds=1)
    places = [0]
    for _ in range(2):
        began = time.process_time()
        d.run()
        assert time.process_time() - began < 5
        assert (
            d.failure
            == "the limit of 1 seconds is reached while looking for a breakpoint in what has run"
        )
        places.append(d.cursor.step)
    assert places[0] <= places[1] < places[2] < d.steps
    d.breakpoints.clear()
    assert d.run().kind == "finished"
    assert d.failure is None


def test_a_search_through_what_has_run_can_be_stopped() -> None:
    d = long_past(seconds=100)
    worker = threading.Thread(target=d.run)
    worker.start()
    time.sleep(0.3)
    d.stop()
    worker.join(10)
    assert not worker.is_alive()
    assert (d.failure, d.cursor.step < d.steps) == (None, True)


def test_no_breakpoint_is_passed_over_by_another() -> None:
    d = long_past(seconds=100)
    d.breakpoints.add("main/loop[*]/body/add", "state == 900")
    d.breakpoints.add("", "state == 3000")
    d.breakpoints.add("main/loop[2000]/body/add")
    assert [d.run().address for _ in range(3)] == [
        f"main/loop[{iteration}]/body/add" for iteration in (900, 2000, 3000)
    ]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (loopscope.Limits(memory_bytes=20_000), "bytes is reached: loops have collected"),
        (loopscope.Limits(iterations=1000), "the limit of 1,000 iterations is reached"),
    ],
    ids=["memory", "iterations"],
)
def test_a_run_that_is_stepped_has_the_same_limits(limits: loopscope.Limits, words: str) -> None:
    d = loopscope.Debugger(endless(), [np.int64(0)], limits=limits)
    d.breakpoints.add("", "iteration < 0")
    d.run()
    assert (d.state, words in str(d.failure)) == ("limit", True)
    come_to = d.steps
    assert d.run().step > come_to
    assert d.state == "limit"
