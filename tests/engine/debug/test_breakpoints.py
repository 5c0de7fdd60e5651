"""Breakpoints: where they stop a run that computes, and one that moves through what has been
computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder.tensor import Tensor
from loopscope.debug.breakpoints import BreakpointKind
from loopscope.errors import AddressError, ExpressionError
from tests.engine.debug.walks import debugger
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop
from tests.engine.explain.runs import begun

BREAKPOINTS = [
    ({"pattern": "main/last"}, ["main/last"]),
    ({"pattern": "main/outer/body/above"}, [f"main/outer[{n}]/body/above" for n in range(3)]),
    ({"pattern": "main/outer[*]/body/above"}, [f"main/outer[{n}]/body/above" for n in range(3)]),
    ({"pattern": "main/outer[1]/body/above"}, ["main/outer[1]/body/above"]),
    ({"pattern": "main/outer[1]"}, ["main/outer[1]/body/inner"]),
    (
        {"pattern": "main/outer[*]/body/inner[1]/body/grow"},
        [f"main/outer[{n}]/body/inner[1]/body/grow" for n in range(3)],
    ),
    (
        {"pattern": "main/outer[2]/body/inner/body/grow"},
        [f"main/outer[2]/body/inner[{n}]/body/grow" for n in range(2)],
    ),
    ({"pattern": "main/outer/body/choice/then/halve"}, ["main/outer[2]/body/choice/then/halve"]),
    ({"pattern": "main/outer/body"}, [f"main/outer[{n}]/body" for n in range(3)]),
    (
        {"pattern": "main/outer/body/above", "condition": "iteration == 1"},
        ["main/outer[1]/body/above"],
    ),
    ({"pattern": "main/outer/body/above", "condition": "inner > 7"}, ["main/outer[2]/body/above"]),
    (
        {"pattern": "main/outer/body/above", "condition": "choice > 0"},
        [],
    ),  # has not run when it is asked
    # What names the operation itself is asked once that has run.
    (
        {"pattern": "main/outer[*]/body/inner[1]/body/grow", "condition": "grow > 7"},
        ["main/outer[2]/body/inner[1]/body"],
    ),
    ({"pattern": "main/outer/body/inner", "condition": "inner > 7"}, ["main/outer[2]/body/above"]),
    (
        {"pattern": "main/outer[2]/body/inner", "condition": "inner > 7"},
        ["main/outer[2]/body/above"],
    ),
    (
        {"condition": "value > 6"},
        ["main/outer[2]/body/inner[1]/body/grow", "main/outer[2]/body/inner[1]/body"],
    ),
]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(("breakpoint", "stops"), BREAKPOINTS)
def test_breakpoints(breakpoint: dict[str, Any], stops: list[str], recorded: bool) -> None:
    """They stop a run that computes, and one that moves through what has been computed, at the
    same moments.
    """
    d = debugger()
    if recorded:
        d.run()
        d.seek(0)
    d.breakpoints.add(**breakpoint)
    found = []
    while d.run().kind != "finished":
        found.append(d.cursor.address)
    assert found == stops


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(("breakpoint", "stops"), BREAKPOINTS)
def test_one_that_is_switched_off_stops_nothing_until_it_is_on_again(
    breakpoint: dict[str, Any], stops: list[str], recorded: bool
) -> None:
    d = debugger()
    if recorded:
        d.run()
        d.seek(0)
    first, other = d.breakpoints.add(**breakpoint, on=False), d.breakpoints.add("main/last")
    assert (d.run().address, d.notice) == ("main/last", f"breakpoint {other.id}, before last")
    d.seek(0)
    d.breakpoints.switch(first.id, True)
    d.breakpoints.switch(other.id, False)
    assert [one.id for one in d.breakpoints.on] == [first.id]
    found = []
    while d.run().kind != "finished":
        found.append(d.cursor.address)
    assert found == stops


def test_one_that_is_switched_off_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether it holds: the run goes at full speed."""
    d = debugger()
    d.breakpoints.add("", "value > 6", on=False)
    monkeypatch.setattr("loopscope.debug.debugger.stops", lambda *_: pytest.fail("asked"))
    assert d.run().kind == "finished"
    assert d.notice is None


def test_breakpoints_that_can_never_hold_are_refused() -> None:
    d = debugger()
    for pattern, message in (
        ("main/nothing", "no 'nothing'"),
        ("main/outer/then/halve", "no body 'then'"),
        ("main/double/body/x", "no body"),
        ("main/x", "is not an operation that runs: its value is there when its graph begins"),
        ("main/y", "is not an operation that runs: it is the value of 'last', which does"),
        ("halve", "no 'halve' in main; there is 'outer › choice · then › halve'"),
        ("", "needs a place or a condition"),
    ):
        with pytest.raises(AddressError, match=message):
            d.breakpoints.add(pattern)
    with pytest.raises(ExpressionError):
        d.breakpoints.add("main/double", "__import__('os')")
    first = d.breakpoints.add("main/double")
    assert [one.id for one in d.breakpoints] == [first.id]
    d.breakpoints.remove(first.id)
    d.breakpoints.remove(first.id)
    d.breakpoints.switch(first.id, True)
    assert len(d.breakpoints) == 0


CONDITIONS_THAT_NAME_NOTHING = [
    (
        "main/outer[*]/body/above",
        "abov > 3",
        "no value 'abov' in outer and the graphs around it; there are 'above'",
    ),
    ("main/outer[*]/body/above", "`above:1` > 3", "no value 'above:1'"),
    ("main/last", "state > 3", "no value 'state' in main and"),
    ("main/last", "iteration == 3", "no iteration in main"),
    ("", "nothing > 3", "no value 'nothing' in the model"),
]


@pytest.mark.parametrize(("pattern", "condition", "message"), CONDITIONS_THAT_NAME_NOTHING)
def test_conditions_that_name_nothing_are_refused(
    pattern: str, condition: str, message: str
) -> None:
    d = debugger()
    with pytest.raises(ExpressionError, match=message):
        d.breakpoints.add(pattern, condition)
    assert len(d.breakpoints) == 0


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("pattern", "condition", "why"),
    [
        ("main/outer[1]/body/above", "above[5] > 0", "no value here"),
        ("main/outer[1]/body/choice", "norm(state @ state) > 1", "no value here"),
        ("main/outer[1]/body/above", "9223372036854775807 * (iteration + 9) > 3", "64 bits"),
    ],
)
def test_a_condition_that_cannot_be_computed_stops_and_says_why(
    pattern: str, condition: str, why: str, recorded: bool
) -> None:
    d = debugger()
    if recorded:
        d.run()
        d.seek(0)
    before = d.notice
    made = d.breakpoints.add(pattern, condition)
    assert (before, d.notice) == (None, None)
    d.run()
    assert (d.cursor.previous if made.after else d.cursor.address) == pattern
    said = str(d.notice)
    assert said.startswith(
        f"breakpoint {made.id} stops here because its condition cannot be computed: "
    )
    assert why in said
    assert d.run().kind == "finished"
    assert d.notice is None


@pytest.mark.parametrize("recorded", [False, True])
def test_unusual_values_are_bound_to_a_condition_too(recorded: bool) -> None:
    d = loopscope.Debugger(growing(), [np.float32(1), np.zeros(2, np.float32)])
    if recorded:
        d.run()
        d.seek(0)
    d.breakpoints.add("main/loop/body/longer", "iteration > 4", "shape")
    d.run()
    assert d.cursor.previous == "main/loop[5]/body/longer"


def test_conditions_name_other_outputs_and_names_with_reserved_characters() -> None:
    graph = builder.Graph("names")
    x = graph.parameter("x", "f32", [4])

    def body(value: Tensor) -> Tensor:
        low, high = builder.ops.split(value * 2, 0, num_splits=2, name="halves/of it")
        return builder.ops.concat([high, low], axis=0, name="turned")

    model = graph.model({"y": builder.for_loop(4, lambda _, value: body(value), x)})
    d = loopscope.Debugger(model, [np.array([1, 2, 3, 4], np.float32)])
    loop = d.plan.regions[0][1].label
    d.breakpoints.add(f"main/{loop}[*]/body/turned", "`halves/of it:1`[0] > 10")
    d.run()
    assert d.cursor.address == f"main/{loop}[2]/body/turned"
    assert d.watches.evaluate("`halves/of it:1`").tolist() == [24, 32]


def test_seeking_pauses_at_a_change_of_shape_on_the_way() -> None:
    d = loopscope.Debugger(growing(), [np.float32(1), np.zeros(2, np.float32)])
    d.breakpoints.add("main/loop/body/longer", kind="shape")
    d.seek("main/loop[9]/body/larger")
    assert d.cursor.previous == "main/loop[1]/body/longer"


def growing() -> loopscope.Model:
    """x becomes 10 times larger in each iteration, and infinite in the 39th; ``grown`` has one
    more element in each.
    """
    main, body = Draft(), Draft()
    x, list_in = main.parameter("x", F32, ()), main.parameter("list", F32, (-1,))
    state, grown = body.parameter("state", F32, ()), body.parameter("grown", F32, (-1,))
    larger = body.op("Multiply", state, body.const(10.0), name="larger")
    longer = body.op("Concat", grown, body.const([0.0]), name="longer", axis="0")
    out, out_list, again = (
        body.result(larger),
        body.result(longer),
        body.result(body.const(True, BOOL)),
    )
    made = loop(
        main,
        body,
        main.const(60, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(x, state, out), (list_in, grown, out_list)],
        last=[out],
        name="loop",
    )
    main.result(made)
    return main.model()


@pytest.mark.parametrize("recorded", [False, True])
def test_the_first_infinity_stops(recorded: bool) -> None:
    d = loopscope.Debugger(growing(), [np.float32(1), np.zeros(0, np.float32)])
    if recorded:
        d.run()
        d.seek(0)
    d.breakpoints.add(kind="infinity")
    d.run()
    assert d.cursor.previous == "main/loop[38]/body/larger"
    assert np.isinf(d.value("main/loop[38]/body/larger"))
    assert d.run().kind == "finished"


@pytest.mark.parametrize("recorded", [False, True])
def test_an_output_of_a_loop_is_not_odd_before_the_loop_is_done(recorded: bool) -> None:
    d = loopscope.Debugger(growing(), [np.float32(1), np.zeros(0, np.float32)])
    if recorded:
        d.run()
        d.seek(0)
    d.breakpoints.add("main/loop", kind="nan")
    d.run()
    assert d.state == "finished"
    assert (d.cursor.kind, d.cursor.step) == ("finished", d.steps)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_nan_made_of_infinities_stops(recorded: bool) -> None:
    """The NaN is minus infinity minus minus infinity; the infinities before it are the other
    breakpoint's.
    """
    d = begun("diverging_training", "too_fast")
    if recorded:
        d.run()
        d.seek(0)
    d.breakpoints.toggle("nan")
    assert d.run().kind != "finished"
    assert d.cursor.previous == "main/while_training[5]/body/next_weight"
    assert np.isnan(d.value("main/while_training[5]/body/next_weight"))
    assert d.run().kind == "finished"


def test_an_infinite_input_does_not_hide_what_is_made_of_it() -> None:
    main = Draft()
    x = main.parameter("x", F32, ())
    less = main.op("Subtract", x, x, name="less")
    main.result(main.op("Add", less, x, name="more"))
    main.result(main.op("Exp", main.const(1000.0), name="power"))
    found = {}
    for kind in ("nan", "infinity"):
        d = loopscope.Debugger(main.model(), [np.float32(np.inf)])
        d.breakpoints.add(kind=kind)
        d.run()
        found[kind] = d.cursor.previous
    assert found == {"nan": "main/less", "infinity": "main/power"}


@pytest.mark.parametrize("kind", ["nan", "infinity", "shape"])
def test_a_breakpoint_that_stops_everywhere_is_a_toggle(kind: BreakpointKind) -> None:
    d = debugger()
    d.breakpoints.add("main/outer", kind=kind)
    for expected in (True, False, True):
        d.breakpoints.toggle(kind)
        assert (d.breakpoints.has(kind), len(d.breakpoints)) == (expected, 1 + expected)


def test_a_change_of_shape_stops() -> None:
    d = loopscope.Debugger(growing(), [np.float32(1), np.zeros(2, np.float32)])
    d.breakpoints.add("main/loop/body/longer", kind="shape")
    d.run()
    assert d.cursor.previous == "main/loop[1]/body/longer"
    assert d.value("main/loop[1]/body/longer").shape == (4,)


def test_breakpoints_say_what_they_are() -> None:
    d = debugger()
    assert repr(d.breakpoints) == "<breakpoints: none>"
    one = d.breakpoints.add("main/outer[1]/body/above", "iteration == 1")
    d.breakpoints.add(kind="nan", on=False)
    assert repr(one) == "<breakpoint 1: before outer · iteration 1 › above when iteration == 1>"
    assert repr(d.breakpoints.items()[1]) == "<breakpoint 2: NaN made at any operation (off)>"
    assert (
        repr(d.breakpoints)
        == f"<breakpoints: 1 {one.describe()}; 2 NaN made at any operation (off)>"
    )


def test_running_on_from_the_past_to_what_the_newest_iteration_has_not_come_to() -> None:
    """An operation after an If that the open iteration has not come to: only the iterations
    before it have a moment for it.
    """
    body, then, otherwise = Draft(), Draft(), Draft()
    x = body.parameter("x", F32, ())
    arms = [
        arm.result(arm.op("Add", arm.parameter("p", F32, ()), arm.const(1.0)))
        for arm in (then, otherwise)
    ]
    bodies = [
        branch("then", then, [(1, Ref(0))], arms[:1]),
        branch("else", otherwise, [(1, Ref(0))], arms[1:]),
    ]
    test = body.op("Greater", x, body.const(1.5), name="test")
    chosen = body.region("If", [test, x], bodies, 1, opset=8, name="choice")
    out, again = (
        body.result(body.op("Add", chosen, chosen, name="after")),
        body.result(body.const(True, BOOL)),
    )
    main = Draft()
    ends = main.const(4, I64), main.const(True, BOOL)
    main.result(
        loop(
            main,
            body,
            *ends,
            again=again,
            carried=[(main.parameter("x", F32, ()), x, out)],
            last=[out],
            name="loop",
        )
    )
    for reached in ("main/loop[0]/body/test", "main/loop[2]/body/choice/then/Add_2"):
        d = loopscope.Debugger(main.model(), [np.float32(0)])
        d.seek(reached)
        d.seek(0)
        assert d.run_to("main/loop/body/after").address == "main/loop[0]/body/after"
        assert d.run_to("main/loop/body/after").address == "main/loop[1]/body/after"
