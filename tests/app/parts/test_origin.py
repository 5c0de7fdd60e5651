"""Origin and difference: a provenance as an indented list, and a value against another
iteration.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from loopscope.explain.provenance import provenance
from loopscope_app.describe.node_index import moment_of
from loopscope_app.parts.inspector import origin, value
from tests.app.components import sent
from tests.engine.explain.runs import finished

Visit = Callable[..., AppTest]


def test_each_value_is_unfolded_once_and_lies_below_what_it_made() -> None:
    debugger = finished("for_loop")
    rows = origin.tree(provenance(debugger, "main/for_each_year[3]/body/next_balance"))
    unfolded = [(address, part) for _, _, step, address, part in rows if step is not None]
    assert len(unfolded) == len(set(unfolded))
    assert rows[0][0] == 0
    assert all(depth <= before[0] + 1 for before, (depth, *_) in itertools.pairwise(rows))
    assert "back edge" in {role for _, role, *_ in rows}


def test_a_long_provenance_is_cut() -> None:
    debugger = finished("for_loop")
    assert (
        len(origin.tree(provenance(debugger, "main/for_each_year[9]/body/next_balance")))
        <= origin.MOST
    )


def test_a_line_goes_to_the_moment() -> None:
    debugger = finished("growing_sequence")
    for address in (
        "main/while_below_limit[3]/body/following",
        "main/while_below_limit[2]/body/sequence",
        "main/limit",
    ):
        step = moment_of(debugger, address)
        debugger.seek(step)
        assert debugger.resolve(address.replace("[3]", "").replace("[2]", "")) == address


def test_the_inspector_tells_where_a_value_came_from(opened: Visit) -> None:
    app = opened(
        model="sample:decoder", node="main/for_each_word/body/next_sentence_probability", step="60"
    )
    app.button("node_origin").click().run()
    rows = sent(app, "origin")["rows"]
    assert rows[0]["title"] == "next_sentence_probability"
    assert any(row["role"] == "back edge" for row in rows)


def test_the_inspector_names_and_shows_the_part_that_an_iteration_read(opened: Visit) -> None:
    app = opened(
        model="sample:walking_backwards", node="main/from_last_to_first/body/worth_now", step="9"
    )
    app.button("node_origin").click().run()
    rows = sent(app, "origin")["rows"]
    read = [(row["title"], row["value"]) for row in rows if row["role"] == "slice"]
    assert read[0] == ("rewards[2]", "[1] 0")


def test_a_part_can_be_asked_for(opened: Visit) -> None:
    app = opened(model="sample:walking_backwards", node="main/from_last_to_first", step="99")
    app.button("node_origin").click().run()
    (asked,) = [one for one in app.text_input if str(one.key).startswith("origin_part_")]
    asked.set_value("1").run()
    rows = sent(app, "origin")["rows"]
    assert [row["title"] for row in rows if row["depth"] == 0] == ["from_last_to_first[1]"]
    assert [row["detail"] for row in rows if row["role"] == "concatenated"] == [
        "Add · from_last_to_first · iteration 3"
    ]
    asked = next(one for one in app.text_input if one.key == asked.key)
    for text, told in (
        ("9", "there is no element 9 along axis 0 of length 5"),
        ("x", "is not a part of a value"),
    ):
        asked.set_value(text).run()
        assert told in " ".join(str(one.proto.body) for one in app.get("html"))
    assert not app.exception


def test_the_inspector_tells_the_difference_to_another_iteration(opened: Visit) -> None:
    app = opened(
        model="sample:decoder", node="main/for_each_word/body/scores_of_next_word", step="60"
    )
    app.toggle("difference").set_value(True).run()
    assert not app.exception
    assert "of 8 elements changed" in " ".join(str(one.proto.body) for one in app.get("html"))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), []),
        (np.array([1.0, 2.0]), np.array([4.0, 2.5]), [((0,), 1.0, 4.0), ((1,), 2.0, 2.5)]),
        (np.array([1.0, 2.0]), np.array([1.5, np.inf]), [((1,), 2.0, np.inf), ((0,), 1.0, 1.5)]),
        (np.array([1.0]), np.array([1.0, 2.0]), []),
        (np.array(["a"], object), np.array(["b"], object), []),
    ],
)
def test_the_largest_changes(before: np.ndarray, now: np.ndarray, expected: list[object]) -> None:
    assert value.largest_changes(before, now) == expected
