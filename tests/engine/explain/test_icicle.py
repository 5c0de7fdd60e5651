"""The whole run as lanes: exact where it is short, in columns where it is long."""

from __future__ import annotations

import itertools

import pytest

from loopscope.explain.icicle import body_begin, breakpoint_steps, icicle
from tests.engine.explain.runs import begun, finished


def test_lanes_nest_as_bodies_do() -> None:
    debugger = finished("count_primes")
    run = icicle(debugger)
    assert [lane.title for lane in run.lanes] == [
        "main",
        "for_each_candidate",
        "try_each_divisor",
        "if_divides",
    ]
    assert [span.iteration for span in run.lanes[1].spans] == list(range(9))
    assert {span.branch for span in run.lanes[3].spans} == {"then", "else"}
    for inner, outer in zip(run.lanes[2:], run.lanes[1:], strict=False):
        for span in inner.spans:
            assert any(one.first <= span.first and span.end <= one.end for one in outer.spans)


@pytest.mark.parametrize("columns", [1, 7, 20, 1000])
def test_the_first_lane_covers_every_step(columns: int) -> None:
    debugger = finished("decoder")
    main = icicle(debugger, columns).lanes[0].spans
    assert (main[0].first, main[-1].end) == (0, debugger.steps)
    assert all(one.end == after.first for one, after in itertools.pairwise(main))


def test_columns_say_which_iterations_they_hold() -> None:
    debugger = finished("for_loop")
    lane = icicle(debugger, 5).lanes[1]
    assert len(lane.spans) < 10
    first, last = lane.spans[1].iteration, lane.spans[1].last_iteration
    assert first is not None
    assert last is not None
    assert last > first


def test_a_click_goes_to_the_beginning_of_the_iteration() -> None:
    debugger = finished("for_loop")
    span = icicle(debugger).lanes[1].spans[4]
    assert body_begin(debugger, span.end - 1, 1) == span.first
    debugger.seek(span.first)
    assert debugger.frames()[-1].iteration == 4
    assert body_begin(debugger, 5, 0) == 5
    assert body_begin(debugger, 0, 9) == 0


def test_breakpoints_are_found_in_what_has_run() -> None:
    debugger = finished("for_loop")
    body = next(one.address for one in debugger.plan.programs if one.parent is not None)
    label = debugger.plan.program_by_address[body].instructions[0].label
    debugger.breakpoints.add(f"{body}/{label}")
    debugger.breakpoints.add(f"main/{body.split('/')[1]}[3]/body/{label}")
    debugger.breakpoints.add(kind="nan")
    steps = [step for step, _ in breakpoint_steps(debugger)]
    assert len(steps) == 11
    assert steps[3] == steps[-1]


def test_nothing_has_run_yet() -> None:
    assert icicle(begun("for_loop")).lanes == ()
