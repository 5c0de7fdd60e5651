"""What a run remembers: variables between runs, random states that repeat, and records within a
budget.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.executor.machine.execute import execute
from loopscope.executor.plan.plan import Instruction
from loopscope.timeline import run_values
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop


def state_of(debugger: loopscope.Debugger) -> str:
    """Read anew: a type checker takes it for what it was before the run went on."""
    return debugger.state


def accumulating(trips: int = 0) -> loopscope.Model:
    """Adds x to a variable that begins at 100; in a loop when there are trips. Gives what the
    variable holds then.
    """
    main = Draft()
    x = main.parameter("x", F32, (1,))
    body = Draft() if trips else main
    add = body.parameter("add", F32, (1,)) if trips else x
    kept = body.op(
        "ReadValue",
        body.const([100.0]),
        opset=6,
        name="read",
        variable_id="total",
        variable_type="f32",
        variable_shape="1",
    )
    total = body.op("Add", kept, add, name="total")
    body.op("Assign", total, opset=6, name="assign", variable_id="total")
    out = body.result(total, "out")
    if trips:
        again = body.result(body.const(True, BOOL))
        made = loop(
            main,
            body,
            main.const(trips, I64),
            main.const(True, BOOL),
            again=again,
            invariants=[(x, add)],
            last=[out],
            joined=[(out, {})],
            name="loop",
        )
        main.result(made)
        main.result(Ref(made.layer, 1))
    return main.model()


@pytest.mark.parametrize("trips", [0, 3, 40])
def test_variables_are_kept_between_runs_until_reset(trips: int) -> None:
    session = loopscope.Session(accumulating(trips))
    steps = max(trips, 1)
    x = np.array([2], np.float32)
    for run in (1, 2, 3):
        assert session.run([x]).outputs[0].tolist() == [100 + 2 * steps * run]
        assert session.variables["total"].tolist() == [100 + 2 * steps * run]
    session.reset()
    assert session.variables == {}
    assert session.run([x]).outputs[0].tolist() == [100 + 2 * steps]
    assert loopscope.run(accumulating(trips), [x]).outputs[0].tolist() == [100 + 2 * steps]


def test_a_variable_without_an_initial_value_begins_with_zeros(tmp_path: Path) -> None:
    """As in OpenVINO."""
    draft = Draft()
    x = draft.parameter("x", F32, (2,))
    kept = draft.op(
        "ReadValue", opset=6, variable_id="total", variable_type="f32", variable_shape="2"
    )
    total = draft.op("Add", kept, x)
    draft.op("Assign", total, opset=6, variable_id="total")
    draft.result(total)
    loopscope.write_model(draft.model(), tmp_path / "m.xml")
    session, feed = (
        loopscope.Session(loopscope.read_model(tmp_path / "m.xml")),
        np.array([1, 2], np.float32),
    )
    assert session.run([feed]).outputs[0].tolist() == [1, 2]
    assert session.run([feed]).outputs[0].tolist() == [2, 4]


@pytest.mark.parametrize(
    "record",
    [loopscope.Record(), loopscope.Record(everything=True), loopscope.Record(budget_bytes=40)],
)
def test_the_debugger_shows_what_a_variable_held_in_any_iteration(record: loopscope.Record) -> None:
    debugger = loopscope.Debugger(accumulating(40), [np.array([1], np.float32)], record=record)
    debugger.run()
    assert debugger.result.outputs[1].tolist() == [101.0 + n for n in range(40)]
    for iteration in (0, 1, 7, 20, 39):
        assert debugger.value(f"main/loop[{iteration}]/body/read").tolist() == [100 + iteration]
        assert debugger.value(f"main/loop[{iteration}]/body/total").tolist() == [101 + iteration]
    debugger.seek("main/loop[5]/body/assign")
    assert debugger.value("main/loop/body/total").tolist() == [106]
    debugger.restart()
    debugger.run()
    assert debugger.result.outputs[0].tolist() == [140]


def random_walk(trips: int, *, seeds: tuple[int, int] = (0, 0)) -> loopscope.Model:
    """Adds a random number to x in each iteration, after one that nobody looks at."""
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, (2,)), body.parameter("state", F32, (2,))
    seed, own = map(str, seeds)
    limits = body.const(-1.0), body.const(1.0)
    body.op(
        "RandomUniform",
        body.const([3], I64),
        *limits,
        opset=8,
        name="unseen",
        output_type="f32",
        global_seed=seed,
        op_seed=own,
    )
    step = body.op(
        "RandomUniform",
        body.const([2], I64),
        *limits,
        opset=8,
        name="step",
        output_type="f32",
        global_seed=seed,
        op_seed=own,
    )
    moved = body.op("Add", state, step, name="moved")
    out, again = body.result(moved), body.result(body.const(True, BOOL))
    made = loop(
        main,
        body,
        main.const(trips, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        joined=[(out, {})],
        name="loop",
    )
    main.result(made)
    main.result(Ref(made.layer, 1))
    return main.model()


@pytest.mark.parametrize("seeds", [(0, 0), (3, 7)])
@pytest.mark.parametrize(
    "record",
    [loopscope.Record(), loopscope.Record(everything=True), loopscope.Record(budget_bytes=200)],
)
def test_what_was_random_repeats_when_it_is_looked_at(
    record: loopscope.Record, seeds: tuple[int, int]
) -> None:
    """The walk that the outputs tell is the one that any iteration shows, in any order, with any
    budget.
    """
    trips = 60
    debugger = loopscope.Debugger(
        random_walk(trips, seeds=seeds), [np.zeros(2, np.float32)], record=record, seed=11
    )
    debugger.run()
    walk = debugger.result.outputs[1].reshape(trips, 2)
    for iteration in (59, 0, 31, 30, 2, 58, 1, 44):
        debugger.seek(f"main/loop[{iteration}]/body/moved")
        before = np.zeros(2, np.float32) if iteration == 0 else walk[iteration - 1]
        np.testing.assert_array_equal(debugger.value("main/loop/body/state"), before)
        np.testing.assert_array_equal(
            debugger.value(f"main/loop[{iteration}]/body/moved"), walk[iteration]
        )
        np.testing.assert_array_equal(
            before + debugger.value(f"main/loop[{iteration}]/body/step"), walk[iteration]
        )
        assert debugger.value(f"main/loop[{iteration}]/body/unseen").shape == (3,)


def test_a_seed_fixes_a_run_and_none_does_not() -> None:
    model, x = random_walk(5), np.zeros(2, np.float32)
    one, same, other = (loopscope.run(model, [x], seed=seed).outputs[0] for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    free = [loopscope.run(model, [x]).outputs[0] for _ in range(2)]
    assert (free[0] != free[1]).any()
    fixed = [loopscope.run(random_walk(5, seeds=(3, 7)), [x]).outputs[0] for _ in range(2)]
    np.testing.assert_array_equal(fixed[0], fixed[1])
    stepped = loopscope.Debugger(model, [x], seed=5)
    while stepped.state == "paused":
        stepped.step()
    np.testing.assert_array_equal(stepped.result.outputs[0], one)


def growing(trips: int) -> loopscope.Model:
    """x doubles its length in each iteration."""
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, (-1,)), body.parameter("state", F32, (-1,))
    out = body.result(body.op("Concat", state, state, axis="0", name="twice"))
    again = body.result(body.const(True, BOOL))
    made = loop(
        main,
        body,
        main.const(trips, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        name="loop",
    )
    main.result(made)
    return main.model()


def test_what_is_recorded_stays_within_the_budget() -> None:
    budget = 10_000
    debugger = loopscope.Debugger(
        random_walk(3000),
        [np.zeros(2, np.float32)],
        record=loopscope.Record(budget_bytes=budget),
        seed=1,
    )
    debugger.run()
    debugger.machine.recording.pack()
    assert debugger.machine.recording.bytes <= budget
    walk = debugger.result.outputs[1].reshape(-1, 2)
    for iteration in (2999, 1234, 1):
        np.testing.assert_array_equal(
            debugger.value(f"main/loop[{iteration}]/body/moved"), walk[iteration]
        )


def test_collecting_more_than_allowed_pauses_and_goes_on() -> None:
    debugger = loopscope.Debugger(
        random_walk(3000),
        [np.zeros(2, np.float32)],
        record=loopscope.Record(everything=True),
        seed=1,
        limits=loopscope.Limits(memory_bytes=40_000),
    )
    debugger.run()
    assert state_of(debugger) == "limit"
    assert "limit of 40,000 bytes" in (debugger.failure or "")
    reached = debugger.control_flow[0].iterations
    assert reached is not None
    assert 50 < reached < 3000
    for _ in range(100):
        if state_of(debugger) == "finished":
            break
        debugger.run()
    assert debugger.state == "finished"
    np.testing.assert_array_equal(
        debugger.result.outputs[1],
        loopscope.run(random_walk(3000), [np.zeros(2, np.float32)], seed=1).outputs[1],
    )


def test_an_operation_that_asks_for_too_much_fails_before_it_takes_it() -> None:
    debugger = loopscope.Debugger(
        growing(60), [np.zeros(1, np.float32)], limits=loopscope.Limits(memory_bytes=1_000_000)
    )
    debugger.run()
    assert debugger.state in ("failed", "limit")
    reached = debugger.control_flow[0].iterations
    assert reached is not None
    assert reached < 25
    assert debugger.value(f"main/loop[{reached - 1}]/body/twice").shape == (2**reached,)


def nested_vectors() -> loopscope.Model:
    """A loop over a vector in a loop, with weights of another rank."""
    main, body, inner = Draft(), Draft(), Draft()
    x, weights = main.parameter("x", F32, (3,)), main.parameter("weights", F32, (2, 3))
    state, outer_weights = body.parameter("state", F32, (3,)), body.parameter("w", F32, (2, 3))
    value, scale = inner.parameter("value", F32, (3,)), inner.parameter("scale", F32, (2, 3))
    wide = inner.op("Multiply", value, scale, name="wide")
    squashed = inner.op("Tanh", wide, name="squashed")
    total = inner.op("ReduceSum", squashed, inner.const([0], I64), keep_dims="false", name="total")
    small = inner.op(
        "Sigmoid", inner.op("Subtract", total, inner.const(0.25), name="less"), name="small"
    )
    out = inner.result(small)
    made = loop(
        body,
        inner,
        body.const(7, I64),
        body.const(True, BOOL),
        again=inner.result(inner.const(True, BOOL)),
        carried=[(state, value, out)],
        invariants=[(outer_weights, scale)],
        last=[out],
        name="inner",
    )
    end = body.result(body.op("Divide", made, body.const(2.0), name="half"))
    last = loop(
        main,
        body,
        main.const(9, I64),
        main.const(True, BOOL),
        again=body.result(body.const(True, BOOL)),
        carried=[(x, state, end)],
        invariants=[(weights, outer_weights)],
        last=[end],
        name="outer",
    )
    main.result(last)
    return main.model()


def test_vectors_and_nested_loops_are_recorded_bit_for_bit() -> None:
    """What is computed again instead of recorded equals what stepping gives, for ranks that
    broadcast.
    """
    model = nested_vectors()
    feeds = [np.array([0.5, -1, 2], np.float32), np.array([[1, 2, 3], [-1, 0.5, 0.25]], np.float32)]
    stepped = loopscope.Debugger(model, feeds)
    seen = {}
    while stepped.state == "paused":
        cursor = stepped.cursor
        stepped.step()
        if cursor.kind == "operation":
            seen[cursor.address] = stepped.value(cursor.address)
    debugger = loopscope.Debugger(model, feeds, record=loopscope.Record(everything=True))
    debugger.run()
    for address, value in seen.items():
        np.testing.assert_array_equal(debugger.value(address), value, err_msg=address)


def test_a_state_whose_rank_changes_in_a_long_run_is_recorded_as_it_was() -> None:
    """Columns of scalars become columns of vectors in the middle of a chunk."""
    main, body, then, otherwise = Draft(), Draft(), Draft(), Draft()
    x, state = main.parameter("x", F32, ()), body.parameter("state", F32, ())
    more = body.op("Add", state, body.const(1.0), name="more")
    total = body.op(
        "ReduceSum",
        body.op("Reshape", more, body.const([-1], I64), special_zero="false"),
        body.const([0], I64),
        keep_dims="false",
    )
    late = body.op("Equal", total, body.const(700.0), name="late")
    p, q = then.parameter("p", F32, ()), otherwise.parameter("q", F32, ())
    wide = then.result(
        then.op(
            "Concat",
            *[then.op("Reshape", p, then.const([-1], I64), special_zero="false")] * 2,
            axis="0",
        )
    )
    same = otherwise.result(otherwise.op("Multiply", q, otherwise.const(1.0)))
    made = body.region(
        "If",
        [late, more],
        [branch("then", then, [(1, p)], [wide]), branch("else", otherwise, [(1, q)], [same])],
        1,
        opset=8,
    )
    out = body.result(made)
    again = body.result(body.const(True, BOOL))
    end = loop(
        main,
        body,
        main.const(900, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        name="loop",
    )
    main.result(end)
    model = main.model()
    runs = [
        loopscope.Debugger(model, [np.float32(0)], record=loopscope.Record(everything=one))
        for one in (False, True)
    ]
    for debugger in runs:
        debugger.run()
        assert debugger.result.outputs[0].tolist() == [900, 900]
        assert debugger.value("main/loop[699]/body/more").tolist() == 700
        assert debugger.value("main/loop[700]/body/more").tolist() == [701, 701]
        assert debugger.value("main/loop[698]/body/late").tolist() is False
        assert debugger.value("main/loop[3]/body/more").shape == ()


def test_what_follows_from_something_recorded_is_computed_from_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, (3, 3)), body.parameter("state", F32, (3, 3))
    product = body.op(
        "MatMul",
        state,
        body.const(np.eye(3, dtype=np.float32)),
        transpose_a="false",
        transpose_b="false",
        name="product",
    )
    out = body.result(body.op("Add", product, body.const(1.0), name="sum"))
    again = body.result(body.const(True, BOOL))
    end = loop(
        main,
        body,
        main.const(9, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        name="loop",
    )
    main.result(end)
    debugger = loopscope.Debugger(
        main.model(), [np.zeros((3, 3), np.float32)], record=loopscope.Record(everything=True)
    )
    debugger.run()
    ran: list[str] = []

    def noted(one: Instruction, slots: list[Any], anew: bool) -> None:
        ran.append(one.label)
        execute(one, slots, anew=anew)

    monkeypatch.setattr(run_values, "execute", noted)
    assert debugger.value("main/loop[6]/body/product")[0, 0] == 6
    assert debugger.value("main/loop[6]/body/sum")[0, 0] == 7
    assert ran == ["sum"]
