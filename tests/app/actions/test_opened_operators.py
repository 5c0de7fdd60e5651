"""Opening an operator as a loop in the node's menu, folding it again, and the page's link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from loopscope.ir.rt_info import opened_operators
from loopscope_app.actions import derived_models as opened_operators_actions
from loopscope_app.state.user_session import UserSession
from tests.app.browsing import open_address, place
from tests.engine.transform.test_open_as_loop import document, stacked

Visit = Callable[..., AppTest]


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> str:
    (tmp_path / "lstms.onnx").write_bytes(document("first", "second"))
    return str(tmp_path / "lstms.onnx")


def session_of(app: AppTest) -> UserSession:
    session: UserSession = app.session_state["loopscope"]
    return session


def opened_in(app: AppTest) -> list[str]:
    opened = session_of(app).model.opened
    assert opened is not None
    return opened_operators(opened.model)


def test_an_operator_is_opened_and_folded_in_its_menu(opened: Visit, path: str) -> None:
    app = opened(model=path, node="main/first", step="9999")
    assert opened_in(app) == []
    app.button("inspector_loop").click().run()
    assert not app.exception
    assert opened_in(app) == ["main/first"]
    session = session_of(app)
    assert session.canvas.selected == "main/first"
    assert session.run.debugger is not None
    assert session.run.debugger.state == "finished"
    assert "main/first/body" not in session.canvas.folding.folded
    assert app.query_params["open"] == '["main/first"]'
    app.button("inspector_loop").click().run()
    assert not app.exception
    assert opened_in(app) == []
    assert "open" not in app.query_params


def test_a_link_opens_operators(opened: Visit, path: str) -> None:
    gate = "main/second[2]/body/forget_gate"
    app = opened(model=path, open='["main/second"]', step=gate, node=gate)
    assert opened_in(app) == ["main/second"]
    assert session_of(app).canvas.selected == gate


@pytest.mark.parametrize("text", ['["main/third"]', "[3]", "{", '["<b>"]'])
def test_a_link_with_another_operator_is_a_sentence(opened: Visit, path: str, text: str) -> None:
    app = opened(model=path, open=text)
    assert not app.exception
    message = session_of(app).message
    assert message is not None
    assert message.text.rstrip(".")


@pytest.mark.browser
def test_the_handle_of_a_box_opens_the_loop_in_place_and_folds_it(
    page: Page, server: str, path: str
) -> None:
    canvas = open_address(page, f"{server}/?model={path}&step=main/second")
    box = canvas.locator("[data-address='main/first']")
    expect(box).to_contain_text("4 steps")
    box.locator(".button[data-action=unfold]").click()
    gate = canvas.locator(".box[data-address='main/first/body/forget_gate']")
    expect(gate).to_be_attached()
    expect(place(page)).to_contain_text("main")
    expect(canvas.locator("[data-address='main/second'].current")).to_be_attached()
    canvas.locator(".head .button[data-action=fold]").first.click()
    expect(gate).to_have_count(0)
    expect(box).to_contain_text("4 steps")


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("main/second", "main/second"),
        ("main/first[2]/body/forget_gate", "main/first"),
        ("main/first[2]/body", "main/first"),
        ("main/first%2Fcount", "main/first"),
        ("main", "main"),
    ],
)
def test_a_moment_inside_a_folded_loop_is_the_operator(moment: str, expected: str) -> None:
    model = stacked("first", "second")
    assert opened_operators_actions._moment_or_operator(model, moment, "main/first") == expected
