"""Numbers of iterations, steps and parts are told to people with separators."""

from __future__ import annotations

import loopscope
from loopscope import builder
from loopscope.explain.compare import first_control_flow
from loopscope.explain.pattern import pattern
from loopscope.explain.verdict import verdict
from loopscope_app.describe.wording import record_sentence


def climbed(limit: int) -> loopscope.Debugger:
    """A run that adds 1 until a limit, at most 123,456 times."""
    graph = builder.Graph("climb")
    goal = graph.parameter("goal", "i64", [])
    (last,) = builder.while_loop(
        lambda number: number < goal,
        lambda number: number + 1,
        [graph.constant(0)],
        maximum_iterations=123_456,
    )
    debugger = loopscope.Debugger(graph.model({"last": last}), {"goal": limit})
    debugger.run()
    return debugger


def test_a_loop_that_ran_often() -> None:
    debugger = climbed(7654)
    record = debugger.record("main/while")
    assert record is not None
    assert record_sentence(record) == "7,654 iterations, then its condition became false"
    told = verdict(debugger, "main/while")
    assert told.sentence.startswith("Stopped after 7,654 iterations of at most 123,456 because ")
    assert "at most 123,456 iterations" in pattern(debugger, "main/while").sentence


def test_two_runs_that_part() -> None:
    one, other = climbed(1500), climbed(1200)
    found = first_control_flow(one, other)
    assert found is not None
    assert (found.one, found.other) == ("1,500 iterations", "1,200 iterations")
    for debugger in (one, other):
        debugger.restart()
    one.run_to("main/while[1300]/body")
    other.run()
    found = first_control_flow(one, other)
    assert found is not None
    assert (found.one, found.other) == ("more than 1,200 iterations", "1,200 iterations")
