"""Stepping, seeking, stopping and looking, from every kind of place of a run."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np
import pytest

import loopscope
from loopscope.errors import AddressError, EngineError, ExpressionError, ValueUnavailable
from loopscope.explain.history import history
from loopscope.explain.provenance import provenance
from loopscope.explain.verdict import verdict
from tests.engine.debug.walks import TRAIL, debugger, model
from tests.engine.drafts import F32, Draft


def test_stepping_visits_every_place_and_back_again() -> None:
    d = debugger()
    seen = []
    while d.state == "paused":
        seen.append(d.cursor.address)
        assert d.cursor.step == len(seen) - 1
        d.step()
    assert seen == TRAIL
    assert (d.cursor.kind, d.cursor.previous, d.steps) == ("finished", "main/last", len(TRAIL))
    for step in reversed(range(len(TRAIL))):
        assert d.step_back().address == TRAIL[step]
    assert d.step_back().step == 0
    assert d.cursor.previous == ""
    assert d.state == "finished"  # of the run as a whole


def test_the_kind_of_each_place() -> None:
    d = debugger()
    kinds = {}
    while d.state == "paused":
        kinds[d.cursor.address] = d.cursor.kind
        d.step()
    assert {address for address, kind in kinds.items() if kind == "enter"} == {
        place for place in TRAIL if place.endswith(("/outer", "/inner", "/choice"))
    }
    assert {address for address, kind in kinds.items() if kind == "end"} == {
        place for place in TRAIL if place.endswith(("/body", "/then", "/else"))
    }


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("step", range(len(TRAIL)))
def test_over_out_and_iterations_from_every_place(step: int, computed: bool) -> None:
    """Each movement ends where the trail says, whether it moves in the past or computes."""
    at = TRAIL[step]
    depth = at.count("[") + (1 if "/then" in at or "/else" in at else 0)

    def fresh() -> loopscope.Debugger:
        d = debugger()
        if computed:
            d.run()
        d.seek(step)
        assert d.cursor.address == at
        return d

    d = fresh()
    assert d.step_into().step == step + 1
    over = next(
        (n for n in range(step + 1, len(TRAIL)) if not TRAIL[n].startswith((f"{at}[", f"{at}/"))),
        len(TRAIL),
    )
    expected = over if at.endswith(("/outer", "/inner", "/choice")) else step + 1
    assert fresh().step_over().step == expected
    out = fresh().step_out()
    if depth == 0:
        assert out.step == len(TRAIL)
    else:
        owner = _owner(at)
        assert out.step == next(
            (
                n
                for n in range(step + 1, len(TRAIL))
                if not TRAIL[n].startswith((f"{owner}[", f"{owner}/"))
            ),
            len(TRAIL),
        )


def _owner(address: str) -> str:
    """The node whose body an address lies in (a body's own end belongs to it)."""
    parts = address.split("/")
    inside = max(n for n, part in enumerate(parts) if part in ("body", "then", "else"))
    return (
        "/".join(parts[:inside]).rpartition("[")[0]
        if parts[inside] == "body"
        else "/".join(parts[:inside])
    )


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(
    ("place", "following", "before"),
    [
        (
            "main/outer[0]/body/inner[0]/body/grow",
            "main/outer[0]/body/inner[1]/body/grow",
            "main/outer[0]/body/inner",
        ),
        (
            "main/outer[0]/body/inner[1]/body/grow",
            "main/outer[0]/body/above",
            "main/outer[0]/body/inner[0]/body/grow",
        ),
        (
            "main/outer[0]/body/inner[1]/body",
            "main/outer[0]/body/above",
            "main/outer[0]/body/inner[0]/body/grow",
        ),
        ("main/outer[1]/body/above", "main/outer[2]/body/inner", "main/outer[0]/body/inner"),
        ("main/outer[0]/body/above", "main/outer[1]/body/inner", "main/outer"),
        (
            "main/outer[1]/body/choice/else/keep",
            "main/outer[2]/body/inner",
            "main/outer[0]/body/inner",
        ),
        ("main/outer[2]/body/choice", "main/last", "main/outer[1]/body/inner"),
        ("main/outer", "main/outer[0]/body/inner", "main/double"),
        ("main/double", "main/outer", "main/double"),
    ],
)
def test_next_and_previous_iteration(
    place: str, following: str, before: str, computed: bool
) -> None:
    d = debugger()
    if computed:
        d.run()
    d.seek(place)
    assert d.next_iteration().address == following
    d.seek(place)
    assert d.previous_iteration().address == before


def test_seek_by_number_and_address() -> None:
    d = debugger()
    assert d.seek(12).address == TRAIL[12]
    assert d.seek(3).address == TRAIL[3]
    assert (
        d.seek("main/outer[2]/body/choice/then/halve").address
        == "main/outer[2]/body/choice/then/halve"
    )
    assert d.seek("main/outer[1]/body/above").step == TRAIL.index("main/outer[1]/body/above")
    assert d.seek(10**6).kind == "finished"
    with pytest.raises(AddressError, match="before the beginning"):
        d.seek(-1)
    with pytest.raises(AddressError, match=r"never reaches main/outer\[7\]/body/above"):
        d.seek("main/outer[7]/body/above")
    with pytest.raises(AddressError, match=r"no 'abuve'.*'above'"):
        d.seek("main/outer[0]/body/abuve")
    with pytest.raises(
        AddressError, match="'choice' in outer is not a loop, and so has no iteration 1"
    ):
        d.value("main/outer[1]/body/choice[1]/then/halve")


def test_a_recording_has_a_budget_from_0_on() -> None:
    with pytest.raises(
        loopscope.InputError,
        match="record budget: expected a number of bytes of at least 0, got -1",
    ):
        loopscope.Record(budget_bytes=-1)


def test_run_to_goes_to_the_next_match_only() -> None:
    d = debugger()
    found = []
    while d.run_to("main/outer/body/above").kind != "finished":
        found.append(d.cursor.address)
    assert found == [f"main/outer[{n}]/body/above" for n in range(3)]
    d.seek(0)
    assert (
        d.run_to("main/outer[*]/body/inner[1]/body/grow").address
        == "main/outer[0]/body/inner[1]/body/grow"
    )
    assert d.run_to("main/outer[1]").address == "main/outer[1]/body/inner"


def test_watches_say_their_value_or_why_there_is_none() -> None:
    d = debugger()
    names = (
        "value",
        "iteration",
        "max(abs(state)) > 3",
        "main/outer[0]/body/inner[1]/body/grow",
        "nonsense",
        "double + 1",
    )
    ids = [d.watches.add(f"`{name}`" if "/" in name else name) for name in names]
    d.seek("main/outer[1]/body/inner[1]/body/grow")
    got = d.watches.values()
    assert [np.asarray(got[one]).tolist() for one in ids[:4]] == [5.0, 1, True, 4.0]
    assert "no 'nonsense'" in got[ids[4]]
    assert np.asarray(got[ids[5]]) == 3.0
    d.seek("main/last")
    got = d.watches.values()
    assert "no 'value'" in got[ids[0]]
    assert "no iteration outside a loop" in got[ids[1]]
    d.watches.remove(ids[0])
    assert len(d.watches.items()) == 5
    with pytest.raises(ExpressionError):
        d.watches.add("x.__class__")


def test_values_at_any_place_and_iteration() -> None:
    d = debugger()
    d.run()
    table = {
        "main/x": 1.0,
        "main/double": 2.0,
        "main/outer": 4.0,
        "main/outer:1": [4.0, 6.0, 4.0],
        "main/y": 104.0,
        "main/outer[2]/body/state": 6.0,
        "main/outer[2]/body/inner": 8.0,
        "main/outer[2]/body/out": 4.0,
        "main/outer[0]/body/inner[1]/body/value": 3.0,
        "main/outer[0]/body/inner[1]/body/one": 1.0,
        "main/outer[2]/body/choice/then/halve": 4.0,
        "main/outer[1]/body/choice/else/q": 6.0,
        "main/outer[1]/body/again": True,
    }
    for address, value in table.items():
        got = d.value(address)
        np.testing.assert_array_equal(got, value, err_msg=address)
        assert not got.flags.writeable


def test_every_reason_why_there_is_no_value() -> None:
    d = debugger()
    d.seek("main/outer[1]/body/above")
    for address, message in (
        ("main/last", "has not run yet"),
        ("main/outer", "has not run yet"),
        ("main/outer[1]/body/above", "has not run yet"),
        ("main/outer[2]/body/state", "iteration 2 of 'outer' has not run: there are 2 so far"),
        (
            "main/outer[1]/body/inner[5]/body/grow",
            "iteration 5 of 'inner' has not run: there are 2 so far",
        ),
        (
            "main/outer[0]/body/choice/then/halve",
            "the then branch of 'choice' did not run there: its condition chose else",
        ),
        ("main/outer[1]/body/choice/then/halve", "'choice'.*has not run yet"),
    ):
        with pytest.raises(ValueUnavailable, match=message):
            d.value(address)
    for address, message in (
        ("main/nobody", "no 'nobody'"),
        ("main/outer[0]/body", "names a graph"),
        ("main/double:3", "no output 3"),
        ("main/outer[0]/else/x", "no body 'else'"),
        ("main/double[0]/body/x", "no 'double' with a body"),
        ("", "is not an address"),
    ):
        with pytest.raises(AddressError, match=message):
            d.value(address)
    empty = loopscope.Debugger(model(outer_trips=0), [np.float32(1)])
    empty.run()
    with pytest.raises(
        ValueUnavailable, match="the body of 'outer' never ran: it has zero iterations"
    ):
        empty.value("main/outer/body/state")


def test_statuses_and_what_places_resolve_to() -> None:
    d = debugger()
    d.seek("main/outer[1]/body/choice/else/keep")
    statuses = d.statuses()
    expected = {
        "main/double": "done",
        "main/outer": "running",
        "main/last": "waiting",
        "main/outer/body/inner": "done",
        "main/outer/body/inner/body/grow": "done",
        "main/outer/body/choice": "running",
        "main/outer/body/choice/else/keep": "current",
        "main/outer/body/choice/then/halve": "skipped",
    }
    assert {place: statuses[place] for place in expected} == expected
    assert d.resolve("main/outer/body/inner/body/grow") == "main/outer[1]/body/inner[1]/body/grow"
    assert d.resolve("main/outer/body/state") == "main/outer[1]/body/state"
    assert d.resolve("main/outer/body/choice/then/halve") is None
    assert d.resolve("main/last") is None
    assert (
        d.resolve("main/outer[0]/body/inner/body/grow") == "main/outer[0]/body/inner[1]/body/grow"
    )
    assert (
        d.resolve("main/outer/body/inner[0]/body/grow") == "main/outer[1]/body/inner[0]/body/grow"
    )
    assert d.resolve("main/outer[1]/body/choice/else/keep") is None, (
        "that iteration has not come so far"
    )
    assert d.resolve("main/outer[2]/body/state") is None, "that iteration has not begun"
    assert [one.address for one in d.frames()] == [
        "main",
        "main/outer[1]/body",
        "main/outer[1]/body/choice/else",
    ]
    assert [(one.iteration, one.bound) for one in d.frames()] == [
        (None, None),
        (1, 3),
        (None, None),
    ]


def test_restart_forgets_everything() -> None:
    d = debugger()
    d.run()
    d.restart()
    assert (d.cursor.step, d.steps, d.state) == (0, 0, "paused")
    d.run()
    assert d.result.outputs[0] == 104


def test_what_a_debugger_holds_is_freed_with_it() -> None:
    """Not when the collector comes by: a run may hold gigabytes."""
    gc.collect()
    gc.disable()
    try:
        d = debugger()
        d.watches.add("state + 1")
        d.breakpoints.add("main/last", "outer > 1000")
        for move in (d.step, d.next_iteration, d.run, d.step_back, d.run):
            move()
            d.watches.values()
        held = weakref.ref(d)
        del d, move
        assert held() is None
    finally:
        gc.enable()


def test_seeking_takes_every_whole_number_and_says_what_is_none() -> None:
    d = debugger()
    assert d.seek(cast(int, np.int64(7))).step == 7
    assert type(d.cursor.step) is int
    for move in (d.seek, d.run_to):
        with pytest.raises(AddressError, match="expected an address such as"):
            move(" ")
    assert d.cursor.step == 7


def test_addresses_in_a_watch_are_written_in_backticks() -> None:
    d = debugger()
    d.run()
    assert d.watches.evaluate("`main/outer[1]/body/above`").shape == ()
    with pytest.raises(AddressError, match="an address is written in backticks"):
        d.watches.evaluate("main/outer")


def test_what_is_not_there_comes_with_what_is() -> None:
    d = debugger()
    d.run()
    with pytest.raises(AddressError, match=r"no 'abov' in outer; it has 'above'"):
        d.value("main/outer[0]/body/abov")
    with pytest.raises(
        KeyError,
        match=r"no output 'outer': there are 'y'; loopscope.run\(..., fetches=\[...\]\) gives other tensors",
    ):
        d.result.named["outer"]
    assert d.result.named.get("outer") is None


def test_what_a_run_gives_says_what_it_is() -> None:
    d = debugger()
    d.run()
    assert repr(d.result).endswith("finished: 1 output>")
    assert repr(d.result.named) == "<values by name: 'y'>"
    assert repr(d.control_flow) == f"<control flow: {len(d.control_flow)} records>"


@pytest.mark.parametrize(
    "name",
    [
        "a ",
        " a",
        " ",
        "a\u00a0",
        "a/b",
        "[0]",
        "*",
        "%41",
        "a~2",
        ":1",
        "a:1",
        "main",
        "..",
        "\u00e9'\"<&",
    ],
)
def test_every_name_has_an_address_that_leads_back_to_it(name: str) -> None:
    draft = Draft()
    draft.result(draft.op("Negative", draft.parameter("x", F32, ()), name=name))
    d = loopscope.Debugger(draft.model(), [np.float32(1)])
    address = d.cursor.address
    d.run()
    assert d.value(address) == -1
    assert d.seek(address).address == address
    assert loopscope.run(d.model, [np.float32(1)], fetches=[address]).outputs[0] == -1


@pytest.mark.parametrize(
    "text",
    ["9" * 5000, "main/" + "9" * 5000, "main/outer/" + "9" * 5000, "main/above:" + "9" * 5000],
)
def test_a_name_of_any_length_is_shortened_in_what_is_said_of_it(text: str) -> None:
    d = debugger()
    d.run()
    asked: tuple[Callable[[str], object], ...] = (
        *(
            d.value,
            d.seek,
            d.breakpoints.add,
            d.watches.evaluate,
            partial(verdict, d),
            partial(history, d),
            partial(provenance, d),
        ),
        lambda name: loopscope.run(d.model, {}, fetches=[name]),
        lambda name: loopscope.sweep(d.model, [{}], columns=[name]),
    )
    for ask in asked:
        with pytest.raises(EngineError) as told:
            ask(text)
        assert len(str(told.value)) < 1000
