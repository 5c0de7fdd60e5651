"""What made a condition true or false: the operands that decided and no others, through all
operations and graphs that pass it on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.explain.verdict import Verdict, verdict
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop


@dataclass(frozen=True)
class Row:
    """A condition of inputs, their values, what is said of it, and the labels that decided, of
    each fact.
    """

    condition: Callable[..., Any]
    inputs: tuple[object, ...]
    told: str
    decided: list[list[str]] = field(default_factory=list)


def all_of(condition: Any) -> Any:
    return ops.reduce_logical_and(condition, [0], keep_dims=False)


def any_of(condition: Any, axes: tuple[int, ...] = (0,)) -> Any:
    return ops.reduce_logical_or(condition, list(axes), keep_dims=False)


def all_of_axis(condition: Any, axis: int) -> Any:
    return ops.reduce_logical_and(condition, [axis], keep_dims=False)


def number(boolean: Any) -> Any:
    return ops.convert(boolean, destination_type="i32")


VECTOR = [1.0, 10.5, 3.0]
ROWS = [
    Row(
        lambda x: (x < 9.0) & (x > 0.0),
        (1.0,),
        "`LogicalAnd` was true: `Less` tests `x` < 9, and `x` was 1; `Greater` tests `x` > 0, and `x` was 1",
        [["Less", "Greater"]],
    ),
    Row(
        lambda x: (x < 9.0) & (x < 0.5),
        (1.0,),
        "`LogicalAnd` was false: `Less_1` tests `x` < 0.5, and `x` was 1",
        [["Less_1"], ["x", "Const_1"]],
    ),
    Row(
        lambda x: (x < 0.5) | (x < 9.0),
        (1.0,),
        "`LogicalOr` was true: `Less_1` tests `x` < 9, and `x` was 1",
        [["Less_1"]],
    ),
    Row(
        lambda x: ((x < 9.0) & (x < 8.0)) & ((x < 0.5) & (x < 7.0)),
        (1.0,),
        "`LogicalAnd_2` was false: `Less_2` tests `x` < 0.5, and `x` was 1",
        [["LogicalAnd_1"], ["Less_2"], ["x", "Const_2"]],
    ),
    Row(
        lambda x: ops.logical_xor(x < 9.0, x > 3.0),
        (1.0,),
        "`LogicalXor` was true: `Less` tests `x` < 9, and `x` was 1; `Greater` tests `x` > 3, and `x` was 1",
        [["Less", "Greater"]],
    ),
    Row(
        lambda x: ops.logical_xor(x < 9.0, x > 0.0),
        (1.0,),
        "`LogicalXor` was false: `Less` tests `x` < 9, and `x` was 1; `Greater` tests `x` > 0, and `x` was 1",
    ),
    Row(
        lambda x: ~~(x < 9.0),
        (1.0,),
        "`LogicalNot_1` was true: `Less` tests `x` < 9, and `x` was 1",
        [["LogicalNot"], ["Less"], ["x", "Const"]],
    ),
    Row(
        lambda x: ops.select(x < 9.0, x > 3.0, x < 2.0),
        (1.0,),
        "`Select` was false: `Less` tests `x` < 9, and `x` was 1; `Greater` tests `x` > 3, and `x` was 1",
        [["Less", "Greater"]],
    ),
    Row(
        lambda x: ops.select(x > 9.0, x > 3.0, True),
        (1.0,),
        "`Select` was true: `Greater` tests `x` > 9, and `x` was 1",
    ),
    Row(
        lambda x: ops.convert(number(x > 3.0), destination_type="boolean"),
        (1.0,),
        "`Convert_1` was false: `Greater` tests `x` > 3, and `x` was 1",
    ),
    Row(
        lambda x: ops.convert(x, destination_type="boolean"),
        (5.0,),
        "`Convert` was true: `x` was 5, which is not 0",
        [["x"]],
    ),
    Row(
        lambda x: ops.convert(x - x, destination_type="boolean"),
        (5.0,),
        "`Convert` was false: `Subtract` was 0",
        [["Subtract"]],
    ),
    Row(
        lambda x: ops.squeeze(ops.reshape(x < 0.5, [1], special_zero=False), [0]),
        (1.0,),
        "`Squeeze` was false: `Less` tests `x` < 0.5, and `x` was 1",
        [["Reshape"], ["Less"], ["x", "Const"]],
    ),
    Row(lambda x: x < 0.5, (np.nan,), "`Less` was false: it tests `x` < 0.5, and `x` was NaN"),
    Row(
        lambda x: x > 1.0,
        (np.float32(1.0000001),),
        "`Greater` was true: it tests `x` > 1, and `x` was 1.0000001",
    ),
    Row(
        lambda x: x > 1.0,
        (np.float32(2.0000002),),
        "`Greater` was true: it tests `x` > 1, and `x` was 2",
    ),
    Row(
        lambda x: x == 1.0,
        (np.float32(1.0000001),),
        "`Equal` was false: it tests `x` = 1, and `x` was 1.0000001",
    ),
    Row(
        lambda x: ops.is_nan(x - x),
        (1.0,),
        "`IsNaN` was false: IsNaN(`Subtract` = 0) gave false",
        [["Subtract"]],
    ),
    Row(
        lambda x: all_of(x < 9.0),
        (VECTOR,),
        "`ReduceLogicalAnd` was false: `Less` tests `x`[1] < 9, and `x`[1] was 10.5",
        [["Less"], ["x", "Const"]],
    ),
    Row(
        lambda x: all_of(x < 19.0),
        (VECTOR,),
        "`ReduceLogicalAnd` was true: every element of `Less` was true",
        [["Less"]],
    ),
    Row(
        lambda x: any_of(x > 9.0),
        (VECTOR,),
        "`ReduceLogicalOr` was true: `Greater` tests `x`[1] > 9, and `x`[1] was 10.5",
    ),
    Row(
        lambda x: any_of(x > 19.0),
        (VECTOR,),
        "`ReduceLogicalOr` was false: every element of `Greater` was false",
    ),
    Row(
        lambda x: any_of(x > 0.0),
        ([[[2.0]]],),
        "`Squeeze` was true: `Greater` tests `x` > 0, and `x` was 2",
    ),
    Row(
        lambda x, y: all_of(ops.unsqueeze(x, [0]) < y),
        (4.0, [5.0, 9.0, 3.0]),
        "`ReduceLogicalAnd` was false: `Less` tests `Unsqueeze` < `y`[2], and they were 4 and 3",
    ),
    Row(
        lambda x: all_of(any_of(x > 2.0, (1,))),
        ([[1.0, 3.0], [1.0, 2.0]],),
        "`ReduceLogicalAnd` was false: every element of `Greater`[1] was false",
        [["ReduceLogicalOr"], ["Greater"]],
    ),
    Row(
        lambda x: any_of(all_of_axis(x > 2.0, 0)),
        ([[3.0, 1.0], [4.0, 9.0]],),
        "`ReduceLogicalOr` was true: every element of `Greater`[:, 0] was true",
    ),
    Row(
        lambda x: all_of(x > 2.0),
        (np.zeros(0),),
        "`ReduceLogicalAnd` was true: `Greater` had no elements",
    ),
    Row(
        lambda x: ops.convert(
            ops.reduce_prod(number(x < 9.0), [0], keep_dims=False), destination_type="boolean"
        ),
        (VECTOR,),
        "`Convert_1` was false: `Less` tests `x`[1] < 9, and `x`[1] was 10.5",
    ),
    Row(
        lambda x: ops.convert(
            ops.reduce_sum(number(x > 9.0), [0], keep_dims=False), destination_type="boolean"
        ),
        (VECTOR,),
        "`Convert_1` was true: `Greater` tests `x`[1] > 9, and `x`[1] was 10.5",
    ),
    Row(
        lambda x: ops.convert(ops.reduce_min(x, [0], keep_dims=False), destination_type="boolean"),
        (VECTOR,),
        "`Convert` was true: `ReduceMin` was 1, which is not 0",
    ),
    Row(
        lambda x: ops.reduce_max(x, [0], keep_dims=False) < 10.0,
        (VECTOR,),
        "`Less` was false: it tests `ReduceMax` < 10, and `ReduceMax` was 10.5",
    ),
]


def of_condition(row: Row) -> Verdict:
    graph = builder.Graph("choice")
    feeds = {
        name: np.asarray(value, np.float32) for name, value in zip("xyz", row.inputs, strict=False)
    }
    given = [graph.parameter(name, "f32", list(value.shape)) for name, value in feeds.items()]
    condition = row.condition(*given)
    if condition.shape.rank:
        condition = ops.squeeze(condition)
    debugger = loopscope.Debugger(
        graph.model(builder.cond(condition, lambda: 1.0, lambda: 2.0, name="choice")), feeds
    )
    debugger.run()
    return verdict(debugger, "main/choice")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.told)
def test_what_decided(row: Row) -> None:
    found = of_condition(row)
    narrowly = (
        f" {found.margin.sentence}" if found.margin is not None and found.margin.otherwise else ""
    )
    assert found.sentence == f"Took the {found.record.branch} branch because {row.told}.{narrowly}"
    assert [[label(one) for one in fact.operands] for fact in found.proof][
        : len(row.decided)
    ] == row.decided


def label(address: str) -> str:
    return address.rpartition("/")[2]


def chain(debugger: loopscope.Debugger, address: str) -> list[str]:
    return [
        f"{'  ' * fact.depth}{fact.address.partition('/')[2]}: {fact.text}"
        for fact in verdict(debugger, address).proof
    ]


def run(made: Callable[[builder.Graph, Any], Any], x: object) -> loopscope.Debugger:
    graph = builder.Graph("model")
    value = np.asarray(x, np.float32)
    debugger = loopscope.Debugger(
        graph.model(made(graph, graph.parameter("x", "f32", list(value.shape)))), {"x": value}
    )
    debugger.run()
    return debugger


def test_a_boolean_that_an_if_gave() -> None:
    def made(_: builder.Graph, x: Any) -> Any:
        return builder.cond(
            builder.cond(x < 3.0, lambda: x > 0.5, lambda: x > 7.0, name="first"),
            lambda: 1.0,
            lambda: 2.0,
            name="choice",
        )

    assert chain(run(made, 1), "main/choice") == [
        "first: the then branch of `first` gave true",
        "  first/then/Greater: `Greater` tests `x` > 0.5, and `x` was 1",
    ]
    assert (
        verdict(run(made, 4), "main/choice").sentence
        == "Took the else branch because `first` was false: `Greater` tests `x` > 7, and `x` was 4."
    )


def test_a_constant_that_an_if_gave_was_decided_by_its_condition() -> None:
    def made(_: builder.Graph, x: Any) -> Any:
        return builder.cond(
            builder.cond(x < 3.0, lambda: True, lambda: False, name="first"),
            lambda: 1.0,
            lambda: 2.0,
            name="choice",
        )

    assert (
        verdict(run(made, 4), "main/choice").sentence
        == "Took the else branch because `first` was false: `Less` tests `x` < 3, and `x` was 4."
    )


def test_a_boolean_that_a_loop_gave() -> None:
    def made(_: builder.Graph, x: Any) -> Any:
        go, _ = builder.while_loop(
            lambda go, v: v < 5.0, lambda go, v: (v < 4.0, v + 1.0), [x < 9.0, x], name="inner"
        )
        return builder.cond(go, lambda: 1.0, lambda: 2.0, name="choice")

    assert chain(run(made, 1), "main/choice") == [
        "inner: the last iteration of `inner` gave false",
        "  inner[3]/body/Less: `Less` tests `v` < 4, and `v` was 4",
    ]
    assert chain(run(made, 8), "main/choice") == [
        "inner: `inner` ran no iteration, and its initial value was true",
        "  Less: `Less` tests `x` < 9, and `x` was 8",
    ]


def test_a_condition_that_enters_a_branch() -> None:
    def made(_: builder.Graph, x: Any) -> Any:
        flag = x < 3.0
        return builder.cond(
            x < 9.0,
            lambda: builder.cond(flag, lambda: x, lambda: x * 2.0, name="deep"),
            lambda: x,
            name="choice",
        )

    found = verdict(run(made, 1), "main/choice/then/deep")
    assert (
        found.sentence
        == "Took the then branch because `Less` was true: `Less` tests `x` < 3, and `x` was 1."
    )
    assert [fact.operation for fact in found.proof] == ["Parameter", "Less"]


def handing_on(trips: int, identity: bool = True, start: str = "start") -> loopscope.Model:
    """A Loop that hands a flag on, through an Identity or bare, next to a number; an If in it
    asks the flag.
    """
    main, body = Draft(), Draft()
    flag, x = main.parameter("flag", BOOL, ()), main.parameter("x", F32, ())
    kept, v = body.parameter("kept", BOOL, ()), body.parameter("v", F32, ())
    arms = []
    for name, factor in (("then", 2.0), ("else", 3.0)):
        arm = Draft()
        value = arm.op("Multiply", arm.parameter("p", F32, ()), arm.const(factor))
        arms.append(branch(name, arm, [(1, Ref(0))], [arm.result(value)]))
    asked = body.region("If", [kept, v], arms, 1, name="ask", opset=8)
    passed = body.result(body.op("Identity", kept, opset=16, name="same") if identity else kept)
    out = body.result(body.op("Add", v, body.op("Multiply", asked, body.const(0.0)), name="next"))
    again = body.result(body.const(True, BOOL))
    carried = [(flag, kept, passed), (x, v, out)]
    main.result(
        loop(
            main,
            body,
            main.const(trips, I64),
            main.const(True, BOOL),
            again=again,
            carried=carried,
            last=[out],
            name="loop",
        )
    )
    return main.model()


@pytest.mark.parametrize("identity", [True, False])
def test_a_flag_that_is_handed_on_is_followed_to_where_it_was_made(identity: bool) -> None:
    debugger = loopscope.Debugger(handing_on(5000, identity), [np.bool_(True), np.float32(1)])
    debugger.run()
    found = verdict(debugger, "main/loop[4999]/body/ask")
    assert (
        found.sentence
        == "Took the then branch because `kept` was true: its initial value `flag` was true."
    )
    assert len(found.proof) <= 4
    assert found.proof[-1].address == "main/loop[0]/body/kept"
    assert found.proof[-1].operands == ("main/flag",)


def test_a_carried_condition_is_that_of_the_iteration_before() -> None:
    """It goes on as long as the iteration before said so."""
    main, body = Draft(), Draft()
    x, go = main.parameter("x", F32, ()), main.const(True, BOOL, "begin")
    kept, v = body.parameter("kept", BOOL, ()), body.parameter("v", F32, ())
    more = body.op("Add", v, body.const(1.0), name="more")
    to_kept, out, again = (
        body.result(body.op("Less", more, body.const(3.0), name="below")),
        body.result(more),
        body.result(kept),
    )
    carried = [(go, kept, to_kept), (x, v, out)]
    main.result(
        loop(
            main,
            body,
            main.const(-1, I64),
            go,
            again=again,
            carried=carried,
            last=[out],
            name="loop",
        )
    )
    debugger = loopscope.Debugger(main.model(), [np.float32(0)])
    debugger.run()
    assert (
        verdict(debugger, "main/loop").sentence
        == "Stopped after 4 iterations because `kept` became false: `below` tests `more` < 3, and `more` was 3."
    )
    assert chain(debugger, "main/loop") == [
        "loop[3]/body/kept: `below` was false in the previous iteration",
        "  loop[2]/body/below: `below` tests `more` < 3, and `more` was 3",
    ]


def test_slices_of_booleans() -> None:
    def made(graph: builder.Graph, x: Any) -> Any:
        return builder.map_fn(
            lambda one: builder.cond(one, lambda: 1.0, lambda: 2.0, name="pick"),
            x > 2.0,
            name="each",
        )

    debugger = run(made, [1, 2, 3, 4])
    found = verdict(debugger, "main/each[1]/body/pick")
    assert (
        found.sentence
        == "Took the else branch because `Squeeze` was false: `Greater` tests `x`[1] > 2, and `x`[1] was 2."
    )
    assert [fact.text for fact in found.proof][-2:] == [
        "the outer value `Greater`[1] was false",
        "`Greater` tests `x`[1] > 2, and `x`[1] was 2",
    ]


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_a_boolean_that_an_iteration_gave_to_a_joined_output(asked: int) -> None:
    def made(graph: builder.Graph, x: Any) -> Any:
        flags = builder.map_fn(lambda one: one > 2.5, ops.gather(x, [3, 2, 1, 0], 0), name="each")
        return builder.cond(ops.gather(flags, asked, 0), lambda: 1.0, lambda: 2.0, name="choice")

    found = verdict(run(made, [1, 2, 3, 4]), "main/choice")
    branch_taken, boolean = ("then", "true") if asked < 2 else ("else", "false")
    value = 4 - asked
    why = f"`Greater` tests `Squeeze` > 2.5, and `Squeeze` was {value}"
    assert (
        found.sentence == f"Took the {branch_taken} branch because `Gather_1` was {boolean}: {why}."
    )
    texts = [fact.text for fact in found.proof]
    assert (
        f"iteration {asked} gave element [{asked}] of the output of `each`, which was {boolean}"
        in texts
    )


def test_a_boolean_that_a_variable_held() -> None:
    """In each iteration what the one before found: above 3."""
    kept: dict[str, Any] = {
        "variable_id": "found",
        "variable_type": "boolean",
        "variable_shape": "",
    }
    main, body, then, otherwise = Draft(), Draft(), Draft(), Draft()
    x, v = main.parameter("x", F32, ()), body.parameter("v", F32, ())
    read_before = body.op(
        "ReadValue", body.const(False, BOOL, "nothing"), opset=6, name="before", **kept
    )
    results = [
        arm.result(arm.op("Add", arm.parameter("p", F32, ()), arm.const(2.0)))
        for arm in (then, otherwise)
    ]
    arms = [
        branch(name, arm, [(1, Ref(0))], [one])
        for name, arm, one in zip(("then", "else"), (then, otherwise), results, strict=True)
    ]
    asked = body.region("If", [read_before, v], arms, 1, name="ask", opset=8)
    body.op(
        "Assign",
        body.op("Greater", asked, body.const(3.0), name="above"),
        opset=6,
        name="keep",
        variable_id="found",
    )
    out, again = body.result(asked), body.result(body.const(True, BOOL))
    ends = main.const(3, I64), main.const(True, BOOL)
    main.result(
        loop(main, body, *ends, again=again, carried=[(x, v, out)], last=[out], name="loop")
    )
    debugger = loopscope.Debugger(main.model(), [np.float32(0)])
    debugger.run()
    told = [verdict(debugger, f"main/loop[{number}]/body/ask").sentence for number in range(3)]
    assert told == [
        "Took the else branch because `before` was false: `nothing` was false.",
        "Took the else branch because `before` was false: `above` tests `v` > 3, and `v` was 2.",
        "Took the then branch because `before` was true: `above` tests `v` > 3, and `v` was 4.",
    ]


def test_a_proof_is_bounded() -> None:
    """Forty conditions joined; each is a fact, and the sentence names a few."""

    def made(_: builder.Graph, x: Any) -> Any:
        condition = x > 0.0
        for limit in range(1, 40):
            condition = condition & (x > -float(limit))
        return builder.cond(condition, lambda: 1.0, lambda: 2.0, name="choice")

    found = verdict(run(made, 1), "main/choice")
    assert len(found.proof) == 32
    assert len(found.sentence) < 300
