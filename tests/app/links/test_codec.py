"""The page's address: what is written is read again, and what a stranger writes is told apart
from what was meant.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.debug import Pause
from loopscope_app.describe.gradients import Backward
from loopscope_app.links.codec import MOST, Link, Unreadable, Window, has_room, read, written

FULL = Link(
    model="sample:collatz",
    backward=Backward(("loss",), ("x", "main/while%2Fw")),
    opened=("main/LSTM", "main/loop/body/GRU"),
    input_set="n=27",
    changes={"main/n": 5},
    step="12",
    node="main/while_not_one",
    body="main/while_not_one/body",
    unrolled=(Window("main/while_not_one", 3, 4),),
    breakpoints=(Pause("main/if_even", "value > 3", "address", False), Pause("", "", "nan", True)),
    watches=("number", "number % 2"),
    question="number > 10",
)
TEXT = st.text(max_size=20)


def test_a_link_is_read_as_it_was_written() -> None:
    parameters = written(FULL)
    found = read(parameters)
    assert written(found) | parameters == parameters
    assert (found.model, found.input_set, found.changes, found.step) == (
        FULL.model,
        FULL.input_set,
        FULL.changes,
        FULL.step,
    )
    assert (found.backward, found.opened) == (FULL.backward, FULL.opened)
    assert (found.unrolled, found.breakpoints, found.watches, found.question) == (
        FULL.unrolled,
        FULL.breakpoints,
        FULL.watches,
        FULL.question,
    )


@given(
    st.lists(
        st.builds(Pause, TEXT, TEXT, st.sampled_from(["address", "nan", "shape"]), st.booleans()),
        max_size=3,
    ),
    st.lists(TEXT),
)
def test_breakpoints_and_watches_come_back_as_far_as_there_is_room(
    pauses: list[Pause], watches: list[str]
) -> None:
    found = read(written(Link(model="m", breakpoints=tuple(pauses), watches=tuple(watches))))
    assert found.breakpoints == tuple(pauses)
    assert found.watches == tuple(watches[: len(found.watches)])
    assert len(found.watches) <= MOST


def test_what_is_usual_is_left_out() -> None:
    assert written(Link(model="m", body="main", large=True)) == {"model": "m"}
    assert written(Link(model="m", lesson="for", large=True)) == {"lesson": "for", "type": "large"}


def test_what_has_no_room_is_left_out() -> None:
    assert "whatif" not in written(Link(model="m", changes={"main/x": np.arange(1000)}))
    assert not has_room({"main/x": np.arange(1000)})
    assert has_room({"main/x": np.array(True)})
    assert "ask" not in written(Link(model="m", question="x" * 401))


@pytest.mark.parametrize(
    "text",
    ["nonsense", "[" * 1000, "9" * 5000, "null", "[null]", '{"a": 1}', "[[1, 2, 3]]", "[[]]"],
)
def test_what_a_stranger_writes_is_told_apart(text: str) -> None:
    found = read({"unroll": text, "breakpoints": text, "watches": text})
    for items in (found.unrolled, found.breakpoints, found.watches):
        assert items
        assert all(isinstance(one, Unreadable) for one in items)


@pytest.mark.parametrize("text", ["nonsense", "[]", "3", json.dumps("main/n")])
def test_a_what_if_that_is_no_table_is_told_apart(text: str) -> None:
    assert isinstance(read({"whatif": text}).changes, Unreadable)


@pytest.mark.parametrize(
    "text", ["[", "7", '[["loss"]]', '[["loss"],[]]', '[["loss"],[3]]', '["loss","x"]']
)
def test_a_gradient_that_is_none(text: str) -> None:
    assert isinstance(read({"backward": text}).backward, Unreadable)
