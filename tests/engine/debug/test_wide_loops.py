"""Loops over rows of some hundred numbers: whatever is recorded, a run gives the bits of
stepping, and no value is overwritten.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from tests.draws import draws
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, loop
from tests.engine.drawn.wide_rows import WEIGHTS, WIDTH, Drawn, loops

RECORDS = [
    loopscope.Record(state=False),
    loopscope.Record(),
    loopscope.Record(everything=True),
    loopscope.Record(everything=True, budget_bytes=1 << 16),
]


def feeds(model: loopscope.Model) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.standard_normal((1, WIDTH)).astype(np.float32) for _ in model.graph.parameters]


def stepped(model: loopscope.Model) -> tuple[loopscope.Debugger, dict[str, np.ndarray]]:
    """The model gone through step by step, and a copy of each value on the way."""
    debugger = loopscope.Debugger(model, feeds(model))
    values = {}
    while debugger.state == "paused":
        cursor = debugger.cursor
        debugger.step()
        if cursor.kind == "operation" and debugger.failure is None:
            values[cursor.address] = np.array(debugger.value(cursor.address))
    return debugger, values


@settings(
    max_examples=draws(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drawn=loops(), allowance=st.sampled_from([None, None, 7, 50]))
def test_runs_have_the_bits_of_stepping(drawn: Drawn, allowance: int | None) -> None:
    model = drawn.model
    slow, values = stepped(model)
    some = list(values)[:: max(len(values) // 150, 1)]
    for record in RECORDS:
        fast = loopscope.Debugger(
            model, feeds(model), record=record, limits=loopscope.Limits(iterations=allowance)
        )
        while fast.state not in ("finished", "failed"):
            fast.run()
        assert (fast.state, fast.failure) == (slow.state, slow.failure)
        for mine, theirs in (
            zip(fast.result.outputs, slow.result.outputs, strict=True)
            if slow.state == "finished"
            else ()
        ):
            np.testing.assert_array_equal(mine, theirs)
        for address in some:
            np.testing.assert_array_equal(fast.value(address), values[address], err_msg=address)


def cell(trips: int) -> loopscope.Model:
    """Three values, each carried to the next: what is computed in an iteration is read two
    iterations later.
    """
    main, body = Draft(), Draft()
    starts = [main.parameter(name, F32, (1, WIDTH)) for name in "abc"]
    a, b, c = (body.parameter(name, F32, (1, WIDTH)) for name in "pqr")
    made = body.op("Tanh", body.op("Add", body.op("MatMul", c, body.const(WEIGHTS)), a))
    carried = [
        (starts[0], a, body.result(made)),
        (starts[1], b, body.result(a)),
        (starts[2], c, body.result(b)),
    ]
    again = body.result(body.const(True, BOOL))
    last = [result for _, _, result in carried]
    out = loop(
        main,
        body,
        main.const(trips, I64),
        main.const(True, BOOL),
        again=again,
        carried=carried,
        last=last,
        name="loop",
    )
    for output in range(3):
        main.result(Ref(out.layer, output))
    return main.model()


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("trips", [63, 64, 65, 66, 67, 129, 200])
def test_what_is_carried_further_than_one_iteration_is_not_overwritten(
    trips: int, record: loopscope.Record
) -> None:
    model = cell(trips)
    a, b, c = feeds(model)
    for _ in range(trips):
        a, b, c = np.tanh(c @ WEIGHTS + a), a, b
    debugger = loopscope.Debugger(model, feeds(model), record=record)
    debugger.run()
    for mine, theirs in zip(debugger.result.outputs, (a, b, c), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_outputs_of_a_run_do_not_change_with_the_next_and_hold_no_more_than_themselves() -> None:
    model = cell(100)
    session = loopscope.Session(model)
    first = session.run(feeds(model)).outputs
    kept = [np.array(output) for output in first]
    session.run([np.ones((1, WIDTH), np.float32)] * 3)
    for output, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(output, copy)
        assert output.base is None


def test_what_was_recorded_does_not_hold_more_than_it_counts() -> None:
    debugger = loopscope.Debugger(
        cell(5000), feeds(cell(1)), record=loopscope.Record(everything=True, budget_bytes=1 << 20)
    )
    debugger.run()
    held = {}
    for rows in debugger.machine.recording.rows.values():
        for column in rows.columns.values():
            for value in (
                one
                for chunk in column.chunks
                for one in (chunk if isinstance(chunk, list) else [chunk])
            ):
                while isinstance(value.base, np.ndarray):
                    value = value.base
                held[id(value)] = len(value.base) if isinstance(value.base, bytes) else value.nbytes
    assert sum(held.values()) <= 1.2 * (1 << 20)
