"""Random states and variables inside nests: any value of any iteration, however little of them
was kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.ir.element_type import ElementType
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop

RECORDS = {
    "state": loopscope.Record(),
    "everything": loopscope.Record(everything=True),
    "little": loopscope.Record(budget_bytes=600),
    "hardly anything": loopscope.Record(budget_bytes=0),
    "nothing": loopscope.Record(state=False),
}


def drawing(graph: Draft, x: Ref) -> Ref:
    """Adds a random number, from seeds that go on from call to call."""
    limits = [graph.const(0.0), graph.const(1.0)]
    seeds: dict[str, Any] = {"output_type": "f32", "global_seed": "3", "op_seed": "5"}
    number = graph.op(
        "RandomUniform", graph.const([1], I64), *limits, opset=8, name="random", **seeds
    )
    return graph.op("Add", x, number, name="sum")


def counting(graph: Draft, x: Ref) -> Ref:
    """Adds what a variable holds, which grows by 1 each time."""
    variable: dict[str, Any] = {
        "variable_id": "count",
        "variable_type": "f32",
        "variable_shape": "1",
    }
    kept = graph.op("ReadValue", graph.const([100.0]), opset=6, name="read", **variable)
    grown = graph.op(
        "Assign",
        graph.op("Add", kept, graph.const(1.0)),
        opset=6,
        name="assign",
        variable_id="count",
    )
    return graph.op("Add", x, graph.op("Multiply", grown, graph.const(0.5)), name="sum")


def looped(graph: Draft, x: Ref, trips: int, inside: Callable[[Draft, Ref], Ref]) -> Ref:
    body = Draft()
    state = body.parameter("state", F32, (1,))
    out, again = body.result(inside(body, state)), body.result(body.const(True, BOOL))
    ends = graph.const(trips, I64), graph.const(True, BOOL)
    return loop(graph, body, *ends, again=again, carried=[(x, state, out)], last=[out])


def chosen(graph: Draft, x: Ref, inside: Callable[[Draft, Ref], Ref]) -> Ref:
    """A branch for what is above 3 modulo 5."""
    test = graph.op("Greater", graph.op("Mod", x, graph.const(5.0)), graph.const(3.0))
    then, otherwise = Draft(), Draft()
    results = [then.result(inside(then, then.parameter("p", F32, (1,))))]
    results.append(
        otherwise.result(
            otherwise.op("Add", otherwise.parameter("q", F32, (1,)), otherwise.const(0.75))
        )
    )
    fed = [[(1, Ref(0))], [(1, Ref(0))]]
    bodies = [
        branch("then", then, fed[0], results[:1]),
        branch("else", otherwise, fed[1], results[1:]),
    ]
    return graph.region("If", [test, x], bodies, 1, opset=8)


def nest(inside: Callable[[Draft, Ref], Ref]) -> dict[str, Callable[[Draft, Ref], Ref]]:
    return {
        "loop": lambda g, x: looped(g, x, 9, inside),
        "loop in loop": lambda g, x: looped(
            g, x, 6, lambda body, state: looped(body, state, 4, inside)
        ),
        "branch in loop": lambda g, x: looped(
            g, x, 12, lambda body, state: chosen(body, state, inside)
        ),
        "loop in branch in loop": lambda g, x: looped(
            g,
            x,
            9,
            lambda body, state: chosen(body, state, lambda then, p: looped(then, p, 3, inside)),
        ),
        "twice": lambda g, x: looped(
            g,
            inside(g, looped(g, x, 4, inside)),
            5,
            lambda body, state: looped(body, state, 3, inside),
        ),
    }


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("form", nest(drawing))
@pytest.mark.parametrize("inside", [drawing, counting])
def test_any_value_of_any_iteration_is_what_stepping_saw(
    inside: Callable[..., Any], form: str, record: loopscope.Record
) -> None:
    main = Draft()
    main.result(nest(inside)[form](main, main.parameter("x", ElementType.F32, (1,))))
    model, feeds = main.model(), [np.array([1.5], np.float32)]
    stepped = loopscope.Debugger(model, feeds)
    values = {}
    while stepped.state == "paused":
        cursor = stepped.cursor
        stepped.step()
        if cursor.kind == "operation":
            values[cursor.address] = stepped.value(cursor.address)
    debugger = loopscope.Debugger(model, feeds, record=record)
    debugger.run()
    for address in reversed(values):
        np.testing.assert_array_equal(debugger.value(address), values[address], err_msg=address)


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_what_a_person_sets_counts_wherever_it_is_carried_to(record: loopscope.Record) -> None:
    main = Draft()
    main.result(nest(counting)["twice"](main, main.parameter("x", ElementType.F32, (1,))))
    model, feeds = main.model(), [np.array([1.5], np.float32)]
    plain = loopscope.Debugger(model, feeds)
    plain.run()
    first, second, inner = (plain.control_flow[number].address for number in range(3))
    changed = loopscope.Debugger(
        model, feeds, record=record, changes={f"{first}[2]/body/read": [5.0]}
    )
    changed.run()
    deep = inner.replace(second, f"{second}[3]").replace("[3][0]", "[3]")
    reads = [
        changed.value(f"{place}/read").item()
        for place in (f"{first}[1]/body", f"{first}[3]/body", "main", f"{deep}[1]/body")
    ]
    assert reads == [101, 6, 7, 8 + 3 * 3 + 1]
