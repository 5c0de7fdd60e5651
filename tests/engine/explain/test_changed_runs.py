"""What is explained of runs in which values were set by hand: it says so, and everything else is
as the run went.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.explain.compare import compare
from loopscope.explain.executions import branch_history
from loopscope.explain.export import export
from loopscope.explain.history import history
from loopscope.explain.iteration_matrix import iteration_matrix
from loopscope.explain.pattern import pattern
from loopscope.explain.provenance import BY_HAND, provenance
from loopscope.explain.verdict import verdict
from tests.engine.debug import walks
from tests.engine.debug.test_changed_loops import COUNTED, counted
from tests.engine.drafts import BOOL, F32, I64, Draft, loop

HIGH = [np.array([10, 20, 30, 40, 50, 60], np.float32), np.zeros(1, np.float32)]
MODELS = {early: counted(early=early) for early in (False, True)}


def ran(changes: Mapping[str, object], *, early: bool = False) -> loopscope.Debugger:
    debugger = loopscope.Debugger(MODELS[early], HIGH if early else COUNTED, changes=changes)
    debugger.run()
    return debugger


SENTENCES = [
    (
        {},
        True,
        "Stopped after 3 iterations of at most 4 because `keep` became false: `Less_9` tests `grown` < 100, and `grown` was 123.",
    ),
    (
        {"main/trips": 3},
        False,
        "Ran all 3 iterations: the trip count `trips`, which was set to 3 by hand, was reached.",
    ),
    ({"main/trips": 0}, False, "Never started: the trip count `trips` was set to 0 by hand."),
    ({"main/begin": False}, False, "Never started because `begin` was set to false by hand."),
    (
        {"main/loop[1]/body/keep": False},
        True,
        "Stopped after 2 iterations of at most 4 because `keep` was set to false by hand.",
    ),
    (
        {"main/loop[1]/body/keep_on": False},
        False,
        "Stopped after 2 iterations of at most 4 because `keep_on` was set to false by hand.",
    ),
    (
        {"main/loop[0]/body/grown": [500.0]},
        True,
        (
            "Stopped after 1 iteration of at most 4 because `keep` became false: "
            "`Less_9` tests `grown` < 100, and `grown` was set to 500 by hand."
        ),
    ),
]


@pytest.mark.parametrize(("changes", "early", "sentence"), SENTENCES)
def test_the_verdict_says_what_was_set_by_hand(
    changes: Mapping[str, Any], early: bool, sentence: str
) -> None:
    found = verdict(ran(changes, early=early), "main/loop")
    assert found.sentence == sentence
    assert any(fact.by_hand for fact in found.proof) == (
        "by hand" in sentence and "`grown`" not in sentence
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"main/outer[0]/body/above": True},
            "Took the then branch because `above` was set to true by hand.",
        ),
        (
            {"main/outer[0]/body/inner": 9.0},
            "Took the then branch because `above` was true: it tests the output of `inner` > 6.5, and the output of `inner` was set to 9 by hand.",
        ),
        (
            {},
            "Took the else branch because `above` was false: it tests the output of `inner` > 6.5, and the output of `inner` was 4.",
        ),
    ],
)
def test_the_verdict_on_a_branch_does_too(changes: Mapping[str, Any], sentence: str) -> None:
    debugger = walks.debugger(changes=changes)
    debugger.run()
    assert verdict(debugger, "main/outer[0]/body/choice").sentence == sentence


def test_a_provenance_ends_where_a_value_was_set() -> None:
    debugger = ran({"main/loop[2]/body/total": [0.0]})
    steps = {step.address: step for step in provenance(debugger, "main/loop[3]/body/grown")}
    assert steps["main/loop[2]/body/total"].operation == BY_HAND
    assert steps["main/loop[2]/body/total"].links == ()
    assert not any(
        "loop[1]" in address and address.endswith(("grown", "total")) for address in steps
    )


def test_the_pattern_does_not_take_for_constant_what_was_set() -> None:
    assert pattern(ran({}), "main/loop").trip_count == 4
    assert pattern(ran({"main/trips": 6}), "main/loop").trip_count is None
    assert pattern(ran({"main/loop[1]/body/keep_on": False}), "main/loop").condition is None


def long_loop(trips: int = 40_000) -> loopscope.Model:
    """``state`` grows by ``one`` in each iteration; ``twice`` is two times that."""
    body = Draft()
    state = body.parameter("state", F32, ())
    grown = body.op("Add", state, body.const(1.0, name="one"), name="grown")
    body.op("Multiply", grown, body.const(2.0), name="twice")
    out, again = body.result(grown), body.result(body.const(True, BOOL))
    main = Draft()
    x, count, go = main.parameter("x", F32, ()), main.const(trips, I64), main.const(True, BOOL)
    main.result(
        loop(
            main, body, count, go, again=again, carried=[(x, state, out)], last=[out], name="outer"
        )
    )
    return main.model()


def test_columns_of_long_loops_hold_what_was_set() -> None:
    places = {"[30000]/body/state": 5.0, "[30010]/body/grown": -1.0, "[30020]/body/one": 100.0}
    debugger = loopscope.Debugger(
        long_loop(),
        [np.float32(0)],
        changes={f"main/outer{place}": value for place, value in places.items()},
    )
    debugger.run()
    grown = history(debugger, "main/outer[*]/body/grown").scalars
    twice = history(debugger, "main/outer[*]/body/twice").scalars
    assert grown is not None
    assert twice is not None
    expected, state = [], 0.0
    for number in range(40_000):
        state = {30000: 5.0}.get(number, state) + {30020: 100.0}.get(number, 1.0)
        state = {30010: -1.0}.get(number, state)
        expected.append(state)
    np.testing.assert_array_equal(grown, np.array(expected, np.float32))
    np.testing.assert_array_equal(twice, 2 * np.array(expected, np.float32))
    rows = {row.name: row for row in iteration_matrix(debugger, "main/outer").rows}
    newest = rows["grown"].cells[-1]
    assert newest is not None
    assert newest.number == expected[-1]
    for number in (0, 29_999, 30_000, 30_010, 30_020, 39_999):
        assert debugger.value(f"main/outer[{number}]/body/twice") == 2 * expected[number]


def test_the_branch_history_has_the_branches_that_ran() -> None:
    debugger = walks.debugger(
        changes={"main/outer[0]/body/above": True, "main/outer[2]/body/above": False}
    )
    debugger.run()
    assert branch_history(debugger, "main/outer/body/choice").taken.tolist() == [1, 0, 0]


COMPARED = [
    ({"main/loop[1]/body/grown": [120.0]}, "main/loop[1]/body/grown", "2 iterations"),
    ({"main/loop[2]/body/keep": True}, "main/loop[2]/body/keep", "4 iterations"),
    ({"main/loop[2]/body/total": [0.0]}, "main/loop[2]/body/grown", "4 iterations"),
]


@pytest.mark.parametrize(("changes", "place", "iterations"), COMPARED)
def test_a_run_and_the_same_with_changes_are_compared(
    changes: Mapping[str, Any], place: str, iterations: str
) -> None:
    found = compare(ran({}, early=True), ran(changes, early=True))
    assert found.first_value is not None
    assert (found.first_value.kind, found.first_value.address) == ("value", place)
    told = found.first_control_flow
    assert told is not None
    assert (told.kind, told.address, told.one, told.other) == (
        "iterations",
        "main/loop",
        "3 iterations",
        iterations,
    )


def test_a_branch_that_is_another_is_found_where_later_iterations_are_alike_again() -> None:
    model = walks.model()
    runs = [
        loopscope.Debugger(model, [np.float32(1)], changes=changes)
        for changes in ({}, {"main/outer[1]/body/above": True})
    ]
    for run in runs:
        run.run()
    assert runs[0].steps == runs[1].steps
    told = compare(*runs).first_control_flow
    assert told is not None
    assert (told.kind, told.address, told.one, told.other) == (
        "branch",
        "main/outer[1]/body/choice",
        "else",
        "then",
    )


def test_equal_runs_do_not_differ() -> None:
    found = compare(ran({}), ran({"main/loop[1]/body/grown": [7.0]}))
    assert (found.first_value, found.first_control_flow) == (None, None)


def test_exports_hold_what_was_set_and_say_so(tmp_path: Path) -> None:
    debugger = ran({"main/loop[1]/body/grown": [30.0], "main/loop[9]/body/grown": [1.0]})
    export(debugger, tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz") as stored:
        assert stored["main/loop[1]/body/grown"].tolist() == [30]
        assert stored["main/loop:1"].tolist() == [2, 30, 38, 49]
    export(debugger, tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text())
    assert told["changes"] == [
        {"address": "main/loop[1]/body/grown", "reached": True},
        {"address": "main/loop[9]/body/grown", "reached": False},
    ]
