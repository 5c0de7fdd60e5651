"""The finder: what it lists, and that what the browser sends is looked at twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope import Debugger, builder
from loopscope.builder import ops
from loopscope_app.describe.signatures import bindings
from loopscope_app.parts.frame import header
from loopscope_app.state import open_model
from loopscope_app.state.model_in_use import ModelInUse
from loopscope_app.state.run_in_view import RunInView
from loopscope_app.state.user_session import UserSession

Visit = Callable[..., AppTest]


@pytest.fixture(scope="module")
def session() -> UserSession:
    model = open_model.open_sample("decoder")
    debugger = Debugger(model.model, bindings(model.model, next(iter(model.sets.values()))))
    debugger.seek(40)
    return UserSession(ModelInUse(opened=model), RunInView(stepped=debugger))


def found(session: UserSession, asked: str | None) -> list[dict[str, str]]:
    return cast(list[dict[str, str]], header.finder_message(session, asked)["hits"])


def test_a_closed_finder_computes_nothing(session: UserSession) -> None:
    assert header.finder_message(session, None) == {
        "hits": [],
        "foot": "",
        "asked": None,
        "picked": 0,
    }


def test_before_typing_all_control_flow_is_listed(session: UserSession) -> None:
    hits = found(session, " ")
    assert [(hit["type"], hit["value"]) for hit in hits] == [
        ("Loop", "4 iterations"),
        ("If", "then 4 ×"),
    ]


def test_nodes_that_ran_are_before_others_and_constants_are_last() -> None:
    model = open_model.open_sample("early_exit")
    run = Debugger(model.model, bindings(model.model, next(iter(model.sets.values()))))
    run.run()
    session = UserSession(ModelInUse(opened=model), RunInView(stepped=run))
    hits = found(session, "f32")
    ran = [bool(hit["value"]) for hit in hits if hit["type"] != "Const"]
    assert ran == sorted(ran, reverse=True)
    kinds = [hit["type"] == "Const" for hit in hits]
    assert kinds == sorted(kinds)
    assert any(ran)
    assert not all(ran)


@pytest.mark.parametrize(
    ("asked", "address", "why"),
    [
        ("best_word", "main/for_each_word/body/best_word", ""),
        ("topk", "main/for_each_word/body/best_word", "by type"),
        ("0.42", "main/for_each_word/body/word_probability", "by value"),
        ("parameter f32 least", "main/least_confidence", "by type"),
    ],
)
def test_nodes_are_found(session: UserSession, asked: str, address: str, why: str) -> None:
    hit = next(one for one in found(session, asked) if one["address"] == address)
    assert hit["why"] == why


def test_nothing_found_is_a_sentence(session: UserSession) -> None:
    told = header.finder_message(session, "zebra")
    assert told["hits"] == []
    assert "zebra" in str(told["foot"])


def test_numbers_in_names_are_in_their_order_and_all_that_was_found_is_counted() -> None:
    graph = builder.Graph("chain")
    value = graph.parameter("x", "f32", [])
    for _ in range(230):
        value = ops.relu(value)
    model = graph.model({"y": value})
    opened = open_model.Opened("", "chain", model, loopscope.check(model), {})
    told = header.finder_message(UserSession(ModelInUse(opened=opened)), "relu")
    assert [one["name"] for one in cast(list[dict[str, str]], told["hits"])][:4] == [
        "ReLU",
        "ReLU_1",
        "ReLU_2",
        "ReLU_3",
    ]
    assert str(told["foot"]).startswith("230 nodes, the best 40 are shown")


@pytest.mark.parametrize(
    "data",
    [None, 3, {}, {"open": True}, {"open": True, "text": 5}, {"open": False, "text": "word"}],
)
def test_what_the_browser_sends_is_not_trusted(data: object) -> None:
    assert header.read_finder_text(data) is None


@pytest.mark.parametrize(
    "data",
    [
        None,
        "main/add",
        {},
        {"address": "main/add"},
        {"address": 5, "number": 1},
        {"address": "main/add", "number": 0},
        {"number": "1"},
    ],
)
def test_nor_is_what_it_has_chosen(data: object) -> None:
    assert header.read_finder_pick(data) is None


def test_a_long_text_is_cut() -> None:
    assert len(header.read_finder_text({"open": True, "text": "x" * 10_000}) or "") == 200
