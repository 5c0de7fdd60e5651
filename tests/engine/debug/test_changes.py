"""What if: values set by hand are used by all that follows, at any speed and however it is
looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope.debug.position import Cursor
from loopscope.errors import AddressError, EngineError, InputError
from tests.draws import draws
from tests.engine.debug import walks
from tests.engine.debug.replay import RECORDS, Replay
from tests.engine.drafts import F32, I64, Draft
from tests.engine.drawn.two_numbers import Drawn, bodies, whole

FEEDS = st.tuples(st.floats(-2, 2, width=32), st.floats(-2, 2, width=32))
SLOW = settings(
    max_examples=draws(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def same_run(one: loopscope.Debugger, values: dict[str, np.ndarray]) -> None:
    for address, value in values.items():
        np.testing.assert_array_equal(one.value(address), value, err_msg=address)


def changed_value(draw: Callable[[st.SearchStrategy[Any]], Any], was: np.ndarray) -> np.ndarray:
    """Another value of the same type and shape, small where it is a number."""
    if was.dtype == bool:
        return np.asarray(~was)
    if was.dtype.kind == "i":
        return np.asarray(draw(st.integers(0, 6)), was.dtype) if was.ndim == 0 else was
    return np.full(was.shape, draw(st.sampled_from([-1.5, -0.25, 0.0, 0.75, 2.0])), was.dtype)


def is_input(address: str) -> bool:
    return address in ("main/p", "main/q")


@SLOW
@given(draft=bodies(), inputs=FEEDS, data=st.data())
def test_a_changed_run_is_what_an_interpreter_of_its_own_computes_however_it_is_looked_at(
    draft: Drawn, inputs: tuple[float, float], data: st.DataObject
) -> None:
    model, feeds = whole(draft), [np.float32(value) for value in inputs]
    plain = Replay({})
    plain.run(model, feeds)
    places = st.sampled_from(sorted(address for address in plain.values if not is_input(address)))
    chosen = data.draw(st.lists(places, min_size=1, max_size=3, unique=True))
    changes = {address: changed_value(data.draw, plain.values[address]) for address in chosen}
    expected = Replay(changes)
    outputs = expected.run(model, feeds)
    trail: list[Cursor] = []
    for record in RECORDS:
        debugger = loopscope.Debugger(model, feeds, record=record, changes=changes)
        debugger.run()
        assert debugger.state == "finished"
        for mine, theirs in zip(debugger.result.outputs, outputs, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        loops = {one.address: one.iterations for one in debugger.control_flow if one.kind == "Loop"}
        assert loops == expected.counts
        same_run(debugger, expected.values)
        assert {one.address: one.reached for one in debugger.changes} == {
            one: one in expected.values for one in changes
        }
        stepped = loopscope.Debugger(model, feeds, record=record, changes=changes)
        trail = []
        while stepped.state == "paused":
            trail.append(stepped.cursor)
            stepped.step()
            if trail[-1].kind == "operation":
                np.testing.assert_array_equal(
                    stepped.value(trail[-1].address), expected.values[trail[-1].address]
                )
        assert debugger.steps == len(trail)
        assert list(stepped.control_flow) == list(debugger.control_flow)
        for step in (
            data.draw(st.lists(st.integers(0, max(len(trail) - 1, 0)), max_size=4)) if trail else ()
        ):
            assert debugger.seek(step) == trail[step]
            assert stepped.seek(step) == trail[step]
            np.testing.assert_equal(debugger.value("main/p"), feeds[0])
        while stepped.cursor.step:
            assert stepped.step_back() == trail[stepped.cursor.step]


@SLOW
@given(draft=bodies(), inputs=FEEDS, data=st.data())
def test_a_change_to_the_value_that_is_there_changes_nothing(
    draft: Drawn, inputs: tuple[float, float], data: st.DataObject
) -> None:
    model, feeds = whole(draft), [np.float32(value) for value in inputs]
    plain = Replay({})
    plain.run(model, feeds)
    chosen = data.draw(
        st.lists(
            st.sampled_from(sorted(one for one in plain.values if not is_input(one))),
            min_size=1,
            max_size=4,
        )
    )
    original = loopscope.Debugger(model, feeds)
    original.run()
    debugger = loopscope.Debugger(
        model, feeds, changes={address: plain.values[address] for address in chosen}
    )
    debugger.run()
    assert debugger.steps == original.steps
    assert list(debugger.control_flow) == list(original.control_flow)
    for step in range(original.steps + 1):
        assert debugger.seek(step) == original.seek(step)
    for address in plain.values:
        np.testing.assert_array_equal(
            debugger.value(address), original.value(address), err_msg=address
        )
    assert all(one.reached for one in debugger.changes)


# -- where
# ------------------------------------------------------------------------------------------------------------


def outputs(changes: Mapping[str, object], x: float = 1.0) -> list[object]:
    debugger = loopscope.Debugger(walks.model(), [np.float32(x)], changes=changes)
    debugger.run()
    return [one.tolist() for one in debugger.result.outputs]


# 2 -> 4 (keep) -> 6 (keep) -> 8 (halve: 4), and 100 more at the end
PLACES = [
    ("nothing", {}, 104.0),
    ("an operation before the loop", {"main/double": 5.0}, 103.75),
    ("an operation of the inner loop", {"main/outer[1]/body/inner[0]/body/grow": 0.0}, 103.0),
    ("the output of the inner loop", {"main/outer[0]/body/inner": 0.0}, 104.0),
    ("a carried value", {"main/outer[2]/body/state": 0.0}, 102.0),
    ("a carried value of the first iteration", {"main/outer[0]/body/state": 0.0}, 106.0),
    ("a carried value of the inner loop", {"main/outer[2]/body/inner[1]/body/value": 1.0}, 102.0),
    ("the condition of an If", {"main/outer[0]/body/above": True}, 106.0),
    ("the output of an If", {"main/outer[1]/body/choice": 10.0}, 106.0),
    ("an operation in a branch", {"main/outer[2]/body/choice/then/halve": 9.0}, 109.0),
    ("a Parameter of a branch", {"main/outer[2]/body/choice/then/p": 9.0}, 104.5),
    ("a Const of the body in one iteration", {"main/outer[0]/body/inner[0]/body/one": 3.0}, 106.0),
    ("a Result, which is what it takes", {"main/outer[1]/body/out": 10.0}, 106.0),
    ("an operation after the loop", {"main/last": -1.0}, -1.0),
    ("a branch that never runs", {"main/outer[0]/body/choice/then/halve": 9.0}, 104.0),
    ("two places", {"main/outer[0]/body/above": True, "main/outer[1]/body/above": True}, 104.0),
]


@pytest.mark.parametrize(
    ("changes", "last"), [case[1:] for case in PLACES], ids=[case[0] for case in PLACES]
)
def test_what_follows_uses_the_value(changes: Mapping[str, Any], last: float) -> None:
    assert outputs(changes) == [last]


# -- refusals
# ---------------------------------------------------------------------------------------------------------

REFUSED = [
    (
        {"main/outer/body/state": 1.0},
        AddressError,
        "does not say in which iteration of 'outer' the value is to be set: write outer.0. for the first",
    ),
    ({"main/outer[*]/body/state": 1.0}, AddressError, "does not say in which iteration of 'outer'"),
    (
        {"main/outer[1]/body/inner/body/grow": 1.0},
        AddressError,
        "does not say in which iteration of 'inner'",
    ),
    (
        {"main/outer[1]/body/choice[0]/then/halve": 1.0},
        AddressError,
        "'choice' is not a loop, and so has no iteration",
    ),
    ({"main/outer[1]/body": 1.0}, AddressError, "names a graph, not a value"),
    ({"main/outer[1]": 1.0}, AddressError, "names an iteration, not a value"),
    ({"main/nothing": 1.0}, AddressError, "there is no 'nothing' in main"),
    ({"main/nothing[0]/body/x": 1.0}, AddressError, "there is no 'nothing' with a body in main"),
    ({"main/outer[0]/then/x": 1.0}, AddressError, "has no body 'then'"),
    ({"main/double:3": 1.0}, AddressError, "has no output 3"),
    ({"main/x": 1.0}, AddressError, "is an input of the model: give the run another input"),
    ({"main/double": 1.0, "double:0": 2.0}, AddressError, "is set already"),
    (
        {"main/outer[0]/body/choice": 1.0, "main/outer[0]/body/out": 2.0},
        AddressError,
        "is set already",
    ),
    (
        {"main/double": np.float64(0.1)},
        InputError,
        "main/double takes f32: the cast from float64 would lose values",
    ),
    ({"main/double": "text"}, InputError, "main/double takes f32: "),
    ({"main/double": [1.0, 2.0]}, InputError, r"main/double: expected shape \[\], got \[2\]"),
    (
        {"main/outer[0]/body/above": 2},
        InputError,
        "above takes boolean: the cast from int64 would lose values",
    ),
    ({"main/outer[0]/body/above": 0.5}, InputError, "above takes boolean: "),
]


@pytest.mark.parametrize(("changes", "error", "words"), REFUSED)
def test_what_cannot_be_set_is_refused_before_anything_runs(
    changes: Mapping[str, Any], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        walks.debugger(changes=changes)


def test_a_change_that_the_run_never_comes_to_is_told() -> None:
    changes = {
        "main/outer[7]/body/state": 1.0,
        "main/outer[0]/body/choice/then/halve": 1.0,
        "main/double": 3.0,
    }
    debugger = walks.debugger(changes=changes)
    assert [one.reached for one in debugger.changes] == [False, False, False]
    debugger.step()
    assert [one.reached for one in debugger.changes] == [False, False, True]
    debugger.run()
    assert [(one.address, one.value.tolist(), one.reached) for one in debugger.changes] == [
        ("main/outer[7]/body/state", 1.0, False),
        ("main/outer[0]/body/choice/then/halve", 1.0, False),
        ("main/double", 3.0, True),
    ]


def test_a_value_that_makes_an_operation_fail_fails_there() -> None:
    main = Draft()
    x = main.parameter("x", F32, (-1,))
    shape = main.op("Add", main.const([2, 3], I64), main.const([0, 0], I64), name="shape")
    main.result(main.op("Reshape", x, shape, special_zero="false", name="reshape"))
    debugger = loopscope.Debugger(
        main.model(), [np.zeros(6, np.float32)], changes={"main/shape": [2, 4]}
    )
    debugger.run()
    assert (debugger.state, debugger.failed_address) == ("failed", "main/reshape")


def test_what_a_kernel_keeps_of_constants_is_computed_anew_where_one_is_changed() -> None:
    main = Draft()
    x = main.parameter("x", F32, (3,))
    kept = main.op("Multiply", main.const([1.0, 2.0, 3.0], name="weights"), main.const(2.0))
    main.result(main.op("Add", x, kept))
    model, feeds = main.model(), [np.zeros(3, np.float32)]
    for _ in range(3):
        assert loopscope.run(model, feeds).outputs[0].tolist() == [2, 4, 6]
    debugger = loopscope.Debugger(model, feeds, changes={"main/weights": [5.0, 5.0, 5.0]})
    debugger.run()
    assert debugger.result.outputs[0].tolist() == [10, 10, 10]
    assert loopscope.run(model, feeds).outputs[0].tolist() == [2, 4, 6]


def test_breakpoints_and_watches_see_what_was_set() -> None:
    debugger = walks.debugger(changes={"main/outer[1]/body/inner[0]/body/grow": 50.0})
    debugger.breakpoints.add("main/outer[*]/body/above", "inner > 40")
    assert debugger.run().address == "main/outer[1]/body/above"
    debugger.run()
    assert debugger.seek(0).step == 0
    assert debugger.run().address == "main/outer[1]/body/above"
    with pytest.raises(EngineError, match="never reaches"):
        debugger.seek("main/outer[9]/body/above")
