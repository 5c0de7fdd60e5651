"""The first steps of a new user: each step of the card follows from what the run shows."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from loopscope_app.describe.lessons import lessons
from loopscope_app.state.launch import LAUNCH
from tests.app.browsing import CANVAS, LONG
from tests.app.screens.test_debugger import page_text, press

Visit = Callable[..., AppTest]


def begun(opened: Visit) -> AppTest:
    return opened().button("open_collatz").click().run()


def card_is_there(app: AppTest) -> bool:
    return any(button.key == "first_run_close" for button in app.button)


def test_the_card_leads_from_a_press_to_two_tapes(opened: Visit) -> None:
    app = begun(opened)
    assert "Step 1 of 4" in page_text(app)
    press(app, "step", "step")
    assert "Press <kbd>→</kbd> once more" in page_text(app)
    press(app, "step")
    assert "Step 2 of 4" in page_text(app)
    press(app, "run")
    assert "It ran 7 iterations, because <code>keep_going</code> became false" in page_text(app)
    assert "<code>number</code> was 1" in page_text(app)
    app.button("first_run_false").click().run()
    assert not app.exception
    assert "It ran 4 iterations, because <code>keep_going</code> was set to false by hand" in (
        page_text(app)
    )
    app.button("first_run_compare").click().run()
    assert not app.exception
    assert "What next?" in page_text(app)
    assert f"{len(lessons())} lessons" in app.button("first_run_lessons").label
    app.button("first_run_lessons").click().run()
    assert not app.exception
    assert app.query_params["lesson"] == "while"


def test_the_card_of_the_canvas_is_not_in_other_views(opened: Visit) -> None:
    app = begun(opened)
    press(app, "run")
    assert "Step 3 of 4" in page_text(app)
    app.segmented_control("view_bar").set_value("compare").run()
    assert "Step 3 of 4" not in page_text(app)


def containers_around(block: Block, key: str) -> list[int]:
    """Return the indices of the containers around a button, outermost first; nothing without it."""
    for index, child in block.children.items():
        if isinstance(child, Block):
            if inner := containers_around(child, key):
                return [index, *inner]
        elif getattr(child, "key", None) == key:
            return [index]
    return []


def test_the_card_keeps_its_place_when_the_strip_gets_its_handle(opened: Visit) -> None:
    """Content of the card would be shown in the container that takes its place."""
    app = begun(opened)
    before = containers_around(app.main, "first_run_close")
    press(app, "step")
    assert containers_around(app.main, "strip_open")
    assert containers_around(app.main, "first_run_close") == before


def test_a_closed_card_does_not_come_back(opened: Visit) -> None:
    app = begun(opened)
    app.button("first_run_close").click().run()
    assert not card_is_there(app)
    app.button("header_close").click().run()
    app.button("open_collatz").click().run()
    assert not card_is_there(app)


@pytest.mark.parametrize(
    ("first_run", "model", "shown"),
    [(True, "sample:collatz", True), (True, "sample:gcd", False), (False, "sample:collatz", False)],
)
def test_the_card_is_there_on_arrival_only_where_the_command_opened_its_sample(
    opened: Visit, monkeypatch: pytest.MonkeyPatch, first_run: bool, model: str, shown: bool
) -> None:
    monkeypatch.setattr(LAUNCH, "first_run", first_run)
    assert card_is_there(opened(model=model)) == shown


def test_the_end_at_once_is_the_second_step_too(opened: Visit) -> None:
    app = begun(opened)
    press(app, "run")
    assert "Step 3 of 4" in page_text(app)


@pytest.mark.browser
def test_four_presses_of_a_new_user(page: Page, server: str) -> None:
    page.goto(server)
    page.get_by_role("button", name="Open Why 7, and not 12?").click(timeout=LONG)
    expect(page.locator(f"{CANVAS} .box").first).to_be_visible(timeout=LONG)
    card = page.locator(".st-key-first_run")
    for number in range(3):
        expect(card.get_by_text("Step 1 of 4")).to_be_visible(timeout=LONG)
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(300 + 100 * number)
    expect(card.get_by_text("Step 2 of 4")).to_be_visible(timeout=LONG)
    page.keyboard.press("End")
    expect(card.get_by_text("It ran 7 iterations")).to_be_visible(timeout=LONG)
    card.get_by_role("button", name="Make it false there").click()
    expect(card.get_by_text("It ran 4 iterations")).to_be_visible(timeout=LONG)
    card.get_by_role("button", name="Compare with 17").click()
    expect(card.get_by_text("What next?")).to_be_visible(timeout=LONG)
    expect(page).to_have_url(re.compile("view=compare"))
    card.get_by_role("button", name="Open your own model").click()
    expect(page.get_by_role("textbox", name="Open a path on this computer")).to_be_visible(
        timeout=LONG
    )
