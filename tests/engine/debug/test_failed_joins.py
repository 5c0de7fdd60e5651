"""Loops whose outputs cannot be joined: the run stands at the end of the last iteration, and all
that was computed there can be seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopscope
from tests.engine.debug.replay import RECORDS
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, loop


def growing(outer: Draft, x: Ref, trips: int) -> Ref:
    """A loop whose state grows by a row in each iteration, and which joins the states along the
    other axis.
    """
    body = Draft()
    state, turned = body.parameter("state", F32, (-1, 2)), body.parameter("turned", F32, (2,))
    grown = body.op(
        "Concat", state, body.op("Unsqueeze", turned, body.const([0], I64)), axis="0", name="grown"
    )
    other = body.op("Multiply", turned, body.const([-1.0, 2.0]), name="other")
    # Nothing but the condition reads it, so that generated code has no variable for it.
    go = body.op(
        "LessEqual",
        body.op("ReduceMax", turned, body.const([0], I64), keep_dims="false", name="most"),
        body.const(1e9),
        name="go",
    )
    out, next_turned, again = body.result(grown), body.result(other), body.result(go)
    carried = [(x, state, out), (outer.const([1.0, 1.0]), turned, next_turned)]
    ends = outer.const(trips, I64), outer.const(True, BOOL)
    return loop(
        outer,
        body,
        *ends,
        again=again,
        carried=carried,
        last=[out],
        joined=[(out, {"axis": 1})],
        name="growing",
    )


def model(trips: int, *, nested: bool) -> loopscope.Model:
    main = Draft()
    x = main.parameter("x", F32, (-1, 2))
    if not nested:
        main.result(growing(main, x, trips))
        return main.model()
    body = Draft()
    state, number = body.parameter("state", F32, (-1, 2)), body.parameter("number", I64, ())
    # One iteration in the first three, in which there is nothing to join.
    late = body.op(
        "Convert", body.op("Greater", number, body.const(2, I64)), destination_type="i64"
    )
    many = body.op("Add", body.op("Multiply", late, body.const(trips - 1, I64)), body.const(1, I64))
    made = growing(body, state, trips)
    node = body.nodes[made.layer]
    body.edges = [
        edge._replace(from_layer=body.nodes[many.layer].id, from_port=2)
        if (edge.to_layer, edge.to_port) == (node.id, 0)
        else edge
        for edge in body.edges
    ]
    out, again = body.result(made), body.result(body.const(True, BOOL))
    ends = main.const(6, I64), main.const(True, BOOL)
    main.result(
        loop(
            main,
            body,
            *ends,
            again=again,
            carried=[(x, state, out)],
            iteration=number,
            last=[out],
            name="outer",
        )
    )
    return main.model()


@pytest.mark.parametrize("nested", [False, True], ids=["a loop", "a loop in a loop"])
@pytest.mark.parametrize(
    "record",
    [*RECORDS, loopscope.Record(state=False)],
    ids=["state", "everything", "little", "nothing"],
)
def test_the_last_iteration_is_as_stepping_saw_it(record: loopscope.Record, nested: bool) -> None:
    tested, feeds = model(7, nested=nested), [np.array([[1, 2]], np.float32)]
    stepped = loopscope.Debugger(tested, feeds)
    values: dict[str, Any] = {}
    while stepped.state == "paused":
        cursor = stepped.cursor
        level = stepped.moment[-1]
        if level.position == 0 and level.program.parent is not None:
            places = [
                f"{stepped.timeline.address(level.program, level.row)}/{name}"
                for name in ("state", "turned", "number")
            ]
            values |= {
                place: stepped.value(place)
                for place in places
                if place.rpartition("/")[2] in level.program.layer_of_label
            }
        stepped.step()
        if cursor.kind == "operation" and stepped.failure is None:
            values[cursor.address] = stepped.value(cursor.address)
    debugger = loopscope.Debugger(tested, feeds, record=record)
    debugger.run()
    assert stepped.state == debugger.state == "failed"
    assert (debugger.failure, debugger.failed_address, debugger.steps) == (
        stepped.failure,
        stepped.failed_address,
        stepped.steps,
    )
    assert len(values) > 30
    for address, value in values.items():
        np.testing.assert_array_equal(debugger.value(address), value, err_msg=address)
