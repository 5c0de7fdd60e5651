"""Every role of a body's ports (specification, sections 1 to 5), alone and together: what it
gives, at both speeds, and what we tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pytest

import loopscope
from loopscope.checks.check import check
from loopscope.ir.model import BackEdge, Body, InputMap, LayerId, OutputMap
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.drafts import (
    BOOL,
    F32,
    I32,
    I64,
    Draft,
    Ref,
    Slice,
    branch,
    loop,
    tensor_iterator,
)


@dataclass(frozen=True)
class Row:
    """A model, its inputs and outputs, how often its loop ran and why it ended (or its branch),
    the codes of what we tell.
    """

    name: str
    model: Callable[[], loopscope.Model]
    inputs: Sequence[object]
    outputs: Sequence[object]
    ran: tuple[object, ...]
    codes: frozenset[str] = frozenset()


def region(
    outer: Draft,
    body: Draft,
    sources: Sequence[Ref],
    inputs: Sequence[InputMap],
    outputs: Sequence[OutputMap],
    edges: Any,
) -> None:
    """A Loop with these maps, and a Result for each of its outputs."""
    made = Body(
        "body",
        body.graph(),
        tuple(inputs),
        tuple(outputs),
        tuple(BackEdge(LayerId(a), LayerId(b)) for a, b in edges),
    )
    count = sum(one.external >= 0 for one in outputs)
    node = outer.region("Loop", sources, [made], count, name="loop")
    for number in range(count):
        outer.result(Ref(node.layer, number))


def many_roles(shape: Sequence[int] = ()) -> loopscope.Model:
    """One Result is the condition, carried to two Parameters, the last value and joined; another
    is carried and joined backwards.
    """
    main, body = Draft(), Draft()
    flag, x = main.parameter("flag", BOOL, shape), main.parameter("x", F32, (1,))
    one, two = body.parameter("one", BOOL, shape), body.parameter("two", BOOL, shape)
    number, state = body.parameter("number", I32, (1,)), body.parameter("state", F32, (1,))
    below = body.op("Less", number, body.const([2], I32))
    both = body.op(
        "LogicalAnd",
        body.op("LogicalAnd", one, two),
        below if shape else body.op("Squeeze", below, body.const([0], I64)),
    )
    more = body.op("Add", state, body.const([1.0]))
    again, out = body.result(both), body.result(more)
    maps = [
        InputMap(2, LayerId(one.layer)),
        InputMap(3, LayerId(two.layer)),
        InputMap(4, LayerId(state.layer)),
    ]
    maps.append(InputMap(-1, LayerId(number.layer), purpose="current_iteration"))
    outputs = [
        OutputMap(5, LayerId(again.layer), purpose="execution_condition"),
        OutputMap(7, LayerId(out.layer), axis=0, stride=-1),
        OutputMap(6, LayerId(out.layer)),
    ]
    edges = [(again.layer, one.layer), (again.layer, two.layer), (out.layer, state.layer)]
    region(main, body, [main.const(-1, I64), flag, flag, flag, x], maps, outputs, edges)
    return main.model()


def unconnected(trips: int) -> loopscope.Model:
    """A carried Parameter without an outer value."""
    main, body = Draft(), Draft()
    state = body.parameter("state", F32, (2,))
    out, again = (
        body.result(body.op("Add", state, body.const([1.0, 2.0]))),
        body.result(body.const(True, BOOL)),
    )
    outputs = [
        OutputMap(2, LayerId(out.layer)),
        OutputMap(3, LayerId(out.layer), axis=0),
        OutputMap(-1, LayerId(again.layer), purpose="execution_condition"),
    ]
    region(
        main,
        body,
        [main.const(trips, I64), main.const(True, BOOL)],
        [InputMap(-1, LayerId(state.layer))],
        outputs,
        [(out.layer, state.layer)],
    )
    return main.model()


def sliced_loop(**slicing: Unpack[Slice]) -> loopscope.Model:
    main, body = Draft(), Draft()
    trips, x = main.parameter("trips", I64, ()), main.parameter("x", F32, (4,))
    part = body.parameter("part", F32, (-1,))
    out, again = body.result(part), body.result(body.const(True, BOOL))
    made = loop(
        main,
        body,
        trips,
        main.const(True, BOOL),
        again=again,
        sliced=[(x, part, {"axis": 0, **slicing})],
        joined=[(out, {})],
    )
    main.result(made)
    return main.model()


def without_slices(**joining: Unpack[Slice]) -> loopscope.Model:
    """A TensorIterator that carries a value and slices nothing."""
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, (1,)), body.parameter("state", F32, (1,))
    out = body.result(body.op("Add", state, body.const([1.0])))
    made = tensor_iterator(
        main, body, carried=[(x, state, out)], last=[out], joined=[(out, joining)]
    )
    main.result(made)
    main.result(Ref(made.layer, 1))
    return main.model()


def constants_in_branches(shape: Sequence[int]) -> loopscope.Model:
    """Branches without inputs, whose outputs have different lengths."""
    main, then, otherwise = Draft(), Draft(), Draft()
    c = main.parameter("c", BOOL, shape)
    arms = [
        branch("then", then, [], [then.result(then.const([1.0, 2.0]))]),
        branch("else", otherwise, [], [otherwise.result(otherwise.const([3.0]))]),
    ]
    main.result(main.region("If", [c], arms, 1, name="if", opset=8))
    return main.model()


def one_branch_uses(which: int) -> loopscope.Model:
    """An input that only one branch takes."""
    main, then, otherwise = Draft(), Draft(), Draft()
    c, x = main.parameter("c", BOOL, ()), main.parameter("x", F32, (1,))
    arms = []
    for number, (name, arm) in enumerate((("then", then), ("else", otherwise))):
        fed = [(1, arm.parameter("p", F32, (1,)))] if number == which else []
        value = Ref(0) if fed else arm.const([9.0])
        arms.append(branch(name, arm, fed, [arm.result(value)]))
    main.result(main.region("If", [c, x], arms, 1, name="if", opset=8))
    return main.model()


def never_computed() -> loopscope.Model:
    """A last value that no state stands behind, of a loop that may not start; its length depends
    on an input.
    """
    main, body = Draft(), Draft()
    trips, x = main.parameter("trips", I64, ()), main.parameter("x", F32, (-1, 3))
    given = body.parameter("given", F32, (-1, 3))
    out, again = body.result(body.op("Negative", given)), body.result(body.const(True, BOOL))
    main.result(
        loop(
            main,
            body,
            trips,
            main.const(True, BOOL),
            again=again,
            invariants=[(x, given)],
            last=[out],
        )
    )
    return main.model()


X = np.array([1, 2, 3, 4], np.float32)
ROWS = [
    Row(
        "one Result in all roles",
        many_roles,
        [True, [5]],
        [False, [8], [8, 7, 6]],
        (3, "condition"),
    ),
    Row(
        "the same of one element",
        lambda: many_roles((1,)),
        [[True], [5]],
        [[False], [8], [8, 7, 6]],
        (3, "condition"),
    ),
    Row(
        "the same, never started",
        many_roles,
        [False, [5]],
        [False, [5], []],
        (0, "initial_condition"),
    ),
    Row(
        "unconnected",
        lambda: unconnected(2),
        [],
        [[2, 4], [1, 2, 2, 4]],
        (2, "trip_count"),
        frozenset({"LS506"}),
    ),
    Row(
        "unconnected, no iteration",
        lambda: unconnected(0),
        [],
        [[0, 0], []],
        (0, "zero_trip_count"),
        frozenset({"LS506", "LS808"}),
    ),
    Row("fewer trips than parts", sliced_loop, [2, X], [[1, 2]], (2, "trip_count")),
    Row(
        "start and end of a Loop's slice",
        lambda: sliced_loop(start=1, end=2),
        [4, X],
        [[1, 2, 3, 4]],
        (4, "trip_count"),
        frozenset({"LS538"}),
    ),
    Row(
        "parts of two backwards",
        lambda: sliced_loop(stride=-2, part_size=2),
        [2, X],
        [[3, 4, 1, 2]],
        (2, "trip_count"),
    ),
    Row("no slices", without_slices, [[1]], [[2], [2]], (1, "trip_count"), frozenset({"LS541"})),
    Row(
        "no slices, counted by an output",
        lambda: without_slices(start=0, end=2),
        [[1]],
        [[4], [2, 3, 4]],
        (3, "trip_count"),
    ),
    Row(
        "branches without inputs, then",
        lambda: constants_in_branches(()),
        [True],
        [[1, 2]],
        ("then",),
    ),
    Row(
        "branches without inputs, else",
        lambda: constants_in_branches((1,)),
        [[False]],
        [[3]],
        ("else",),
    ),
    Row(
        "an input of one branch, there", lambda: one_branch_uses(1), [False, [4]], [[4]], ("else",)
    ),
    Row(
        "an input of one branch, elsewhere",
        lambda: one_branch_uses(1),
        [True, [4]],
        [[9]],
        ("then",),
    ),
    Row(
        "never computed",
        never_computed,
        [0, np.ones((2, 3))],
        [np.zeros((0, 3))],
        (0, "zero_trip_count"),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row: Row) -> None:
    model = row.model()
    inputs = [
        np.asarray(value, one.element_type.dtype)
        for value, one in zip(row.inputs, model.inputs, strict=True)
        if one.element_type
    ]
    assert row.codes <= {one.code for one in check(model, CATALOGUE).diagnostics}
    plain = loopscope.run(model, inputs)
    first = plain.control_flow[0]
    assert row.ran == ((first.branch,) if first.branch else (first.iterations, first.ended_by))
    stepped, traced = (
        loopscope.Debugger(model, inputs),
        loopscope.Debugger(model, inputs, record=loopscope.Record(everything=True)),
    )
    while stepped.state == "paused":
        stepped.step()
    traced.run()
    for found in (plain, stepped.result, traced.result):
        for mine, expected in zip(found.outputs, row.outputs, strict=True):
            assert np.asarray(mine).tolist() == np.asarray(expected).tolist()
