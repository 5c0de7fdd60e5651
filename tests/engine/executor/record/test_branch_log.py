"""Which branch an If took, however it was written down: one by one, or only the iterations of
the rarer branch.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.builder.tensor import Tensor
from loopscope.executor.record.buffers import BranchLog
from loopscope.executor.record.recording import NOTHING
from tests.engine.drafts import BOOL, F32, I64, Draft, branch, loop


@st.composite
def executions(draw: st.DrawFn) -> tuple[list[bool], set[int]]:
    """The branches of some executions of one loop, and after how many iterations somebody asks."""
    branches = draw(st.lists(st.booleans(), min_size=1, max_size=12))
    return branches, draw(st.sets(st.integers(0, len(branches)), max_size=3))


@given(st.lists(executions(), max_size=6), st.integers(0, 1), st.integers(0, 5), st.booleans())
def test_iterations_of_one_branch_tell_all_of_them(
    loops: list[tuple[list[bool], set[int]]],
    logged: int,
    stepped: int,
    asks: bool,
) -> None:
    log = BranchLog()
    expected: list[int] = []
    for branches, pauses in loops:
        first = min(stepped, len(branches))
        log.branches.extend(map(int, branches[:first]))
        expected += map(int, branches[:first])
        log.begin(logged, first)
        for number, taken in enumerate(branches[first:], first):
            if number in pauses:
                log.catch_up(number)
                assert list(log.branches) == expected
            if taken == logged:
                log.iterations.append(number)
            expected.append(int(taken))
        log.end(len(branches))
        if asks:
            assert list(log.branches) == expected
            assert log.rarer == (2 * sum(expected[-1024:]) < len(expected[-1024:]))
    assert list(log.branches) == expected


def logged_in_the_middle() -> loopscope.Model:
    """A loop in a loop: an If on each side of the inner loop, and one in it."""
    graph = builder.Graph("tapes")

    def inner(i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, builder.cond(v > 2.0, lambda: v - 2.0, lambda: v + 0.75)

    def outer(i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        before = builder.cond(v > 1.0, lambda: v * 0.5, lambda: v + 1.0)
        _, after = builder.while_loop(lambda i, v: i < 7, inner, [graph.constant(0), before])
        return i + 1, builder.cond(after < 1.5, lambda: after + 0.25, lambda: after)

    x = graph.parameter("x", "f32", [])
    _, last = builder.while_loop(lambda i, v: i < 40, outer, [graph.constant(0), x])
    return graph.model(last)


def logs(result: loopscope.Result) -> list[list[int]]:
    return [
        list(table.branches)
        for table in result.machine.recording.tables
        if isinstance(table, BranchLog)
    ]


@pytest.mark.parametrize("most", [1, 5, 8, 9, 30, 100, 319])
def test_a_run_that_pauses_has_told_each_branch_up_to_there(most: int) -> None:
    model, inputs = logged_in_the_middle(), [np.float32(0)]
    stepped = loopscope.Debugger(model, inputs, record=NOTHING)
    paused = loopscope.Debugger(
        model, inputs, record=NOTHING, limits=loopscope.Limits(iterations=most)
    )
    while paused.state != "finished":
        paused.run()
        while stepped.steps < paused.steps:
            stepped.step()
        assert logs(paused.result) == logs(stepped.result)
        assert paused.cursor.address == stepped.cursor.address
    assert logs(loopscope.run(model, inputs)) == logs(stepped.result)


@pytest.mark.parametrize("limit", [None, 45_000])
def test_a_long_loop_packs_its_notes_while_it_runs(limit: int | None) -> None:
    graph = builder.Graph("long")
    x = graph.parameter("x", "i64", [])
    (last,) = builder.while_loop(
        lambda v: v < 100_000, lambda v: builder.cond(v % 2 < 1, lambda: v + 1, lambda: v + 1), [x]
    )
    debugger = loopscope.Debugger(
        graph.model(last), [np.int64(0)], record=NOTHING, limits=loopscope.Limits(iterations=limit)
    )
    while debugger.state != "finished":
        debugger.run()
        (log,) = [
            table for table in debugger.machine.recording.tables if isinstance(table, BranchLog)
        ]
        assert len(log.iterations) <= 2**14
    assert logs(debugger.result) == [[1, 0] * 50_000]


@pytest.mark.parametrize("keeps_mostly", [True, False])
@pytest.mark.parametrize("kept_in", ["then", "else"])
def test_a_branch_that_only_hands_on_what_the_loop_carries(
    kept_in: str, keeps_mostly: bool
) -> None:
    """In generated code it has nothing to do, and where it is the more frequent one, nothing to
    note.
    """
    bound = 3.0 if (kept_in == "then") == keeps_mostly else 300.0
    draft, bodies = Draft(), []
    value, number = draft.parameter("value", F32, ()), draft.parameter("number", I64, ())
    large = draft.op(
        "Greater",
        draft.op("Convert", number, destination_type="f32"),
        draft.const(np.float32(bound)),
    )
    for name in ("then", "else"):
        one = Draft()
        given = one.parameter("given", F32, ())
        made = given if name == kept_in else one.op("Add", given, one.const(np.float32(0.5)))
        bodies.append(branch(name, one, [(1, given)], [one.result(made)]))
    out = draft.result(draft.region("If", [large, value], bodies, 1, name="if", opset=8))
    main = Draft()
    x = main.parameter("x", F32, ())
    trips, go = main.const(400, I64), main.const(True, BOOL)
    again = draft.result(draft.const(True, BOOL))
    main.result(
        loop(
            main,
            draft,
            trips,
            go,
            again=again,
            carried=[(x, value, out)],
            iteration=number,
            last=[out],
            name="loop",
        )
    )
    model = main.model()
    result = loopscope.run(model, {"x": np.float32(1)})
    taken = sum(record.branch == "then" for record in result.control_flow if record.kind == "If")
    assert taken == 399 - bound
    changes = 400 - taken if kept_in == "then" else taken
    assert result.outputs[0] == 1 + changes * 0.5
