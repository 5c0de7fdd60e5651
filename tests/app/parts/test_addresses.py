"""Addresses in the app: read as people read them, taken in every form, and one click away from
their exact form.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from loopscope.view import search
from loopscope_app.describe import input_parsing
from loopscope_app.parts.frame import header
from loopscope_app.state import open_model
from tests.app.browsing import open_sample
from tests.app.components import sent

Visit = Callable[..., AppTest]
MODEL = open_model.open_sample("hybrid_stack").model
LOOP = "main/layers.1%2Fmamba%2Ffor_each_token"
STATE = f"{LOOP}/body/layers.1%2Fmamba%2Fnew_state"
THIRD = STATE.replace("/body", "[3]/body")
FORMS = [
    "mamba/new_state",
    "layers.1/mamba/new_state",
    "layers.1/mamba › for_each_token › new_state",
    STATE,
]
AMBIGUOUS = (
    "'new_state' is the end of 3 addresses: layers.0/linear_attn › for_each_token › new_state, "
)


def page_text(app: AppTest) -> str:
    return " ".join(str(one.proto.body) for one in app.get("html"))


def panel(opened: Visit) -> AppTest:
    return opened(model="sample:hybrid_stack", tab="setup")


@pytest.mark.parametrize("form", FORMS)
def test_a_breakpoint_is_set_at_what_any_form_means(opened: Visit, form: str) -> None:
    app = panel(opened)
    app.text_input("breakpoint_place").set_value(form)
    app.button("FormSubmitter:breakpoint_form-Add").click().run()
    assert json.loads(sent(app, "address_bar")["moment"]["breakpoints"]) == [
        [STATE, "", "address", True]
    ]
    assert "1 · before layers.1/mamba › for_each_token › new_state" in page_text(app)


@pytest.mark.parametrize(
    "form",
    [
        "mamba/for_each_token[3]/new_state",
        "mamba › for_each_token · iteration 3 › new_state",
        THIRD,
    ],
)
def test_iterations_are_taken_in_any_form(opened: Visit, form: str) -> None:
    app = panel(opened)
    app.text_input("breakpoint_place").set_value(form)
    app.button("FormSubmitter:breakpoint_form-Add").click().run()
    assert json.loads(sent(app, "address_bar")["moment"]["breakpoints"]) == [
        [THIRD, "", "address", True]
    ]


def test_an_end_that_several_have_is_one_sentence(opened: Visit) -> None:
    app = panel(opened)
    app.text_input("breakpoint_place").set_value("new_state")
    app.button("FormSubmitter:breakpoint_form-Add").click().run()
    assert len(app.error) == 1
    assert AMBIGUOUS in app.error[0].value.replace("\\", "")


def test_a_condition_takes_an_end_of_a_name(opened: Visit) -> None:
    app = panel(opened)
    app.text_input("breakpoint_place").set_value("mamba/new_state")
    app.text_input("breakpoint_condition").set_value("iteration == 2 and max(abs(new_state)) >= 0")
    app.button("FormSubmitter:breakpoint_form-Add").click().run()
    assert not app.error
    app.button("transport_run").click().run()
    assert "iteration 2" in page_text(app)


@pytest.mark.parametrize(
    "form",
    [
        "mamba/for_each_token[3]/new_state",
        f"`{THIRD}`",
        "mamba › for_each_token · iteration 3 › new_state",
    ],
)
def test_a_watch_takes_any_form(opened: Visit, form: str) -> None:
    app = opened(model="sample:hybrid_stack", tab="setup", step="9999999")
    app.text_input("watch_expression").set_value(form)
    app.button("FormSubmitter:watch_form-Add").click().run()
    assert not app.error
    assert "= [1,2,8,8]" in page_text(app)


@pytest.mark.parametrize(
    "form",
    ["new_state", "mamba/new_state", "`layers.1/mamba/new_state`", "for_each_token › new_state"],
)
def test_ask_takes_any_form(opened: Visit, form: str) -> None:
    app = opened(model="sample:hybrid_stack", step="450", formula="shown")
    app.text_input("ask").set_value(form).run()
    drawn = sent(app, "loop_table")
    assert drawn["titles"][-1] == form
    assert sum(row[-1] != "" for row in drawn["cells"]) >= 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max(abs(x)) > 3", "max(abs(x)) > 3"),
        ("mamba/new_state", "`mamba/new_state`"),
        ("new_state / update", "new_state / update"),
        ("`mamba/new_state` + 1", "`mamba/new_state` + 1"),
        ("nothing/at/all", "nothing/at/all"),
        ("", ""),
    ],
)
def test_an_address_that_stands_alone_is_an_expression(text: str, expected: str) -> None:
    assert input_parsing.typed_expression(MODEL, text) == expected


@pytest.mark.parametrize("form", FORMS)
def test_search_finds_what_any_form_means_first(form: str) -> None:
    assert search(MODEL, form)[0].address == STATE


def test_the_finder_says_where_in_words() -> None:
    row = header._hit_row(search(MODEL, STATE)[0], "")
    assert (row["where"], row["why"]) == ("layers.1/mamba › for_each_token", "by address")


@pytest.mark.browser
def test_the_exact_form_is_one_click_away(page: Page, server: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_sample(page, server, "hybrid_stack", node=quote(STATE), step="9999999")
    line = page.locator(".st-key-inspector_address .address")
    expect(line).to_contain_text("layers.1/mamba › for_each_token · iteration 11 › new_state")
    line.get_by_role("button").click()
    expect(line.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == STATE.replace("/body", "[11]/body")
