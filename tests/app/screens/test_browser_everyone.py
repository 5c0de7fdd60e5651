"""In a real chromium: axe-core finds nothing serious on any screen, and the canvas works without a pointer and says the moment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app.accessibility import rules_of_axe, serious
from tests.app.browsing import CANVAS, LONG, open_sample, place

pytestmark = pytest.mark.browser
LENSES = ("Why", "Timeline", "Matrix", "Ask", "Compare", "Take away")
TABS = ("Code", "Lesson", "Inputs", "Breakpoints", "Problems")


@pytest.fixture(scope="session")
def rules() -> str:
    return rules_of_axe()


@pytest.fixture(params=["light", "dark"])
def themed(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=request.param)
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


def settled(page: Page) -> None:
    expect(page.locator("[data-test-script-state=notRunning]")).to_be_attached(timeout=LONG)
    page.wait_for_timeout(400)


def test_nothing_serious_on_any_screen(themed: Page, server: str, rules: str) -> None:
    page = themed
    page.goto(server)
    expect(page.get_by_role("button", name="Open A decoder that knows when to stop")).to_be_visible(timeout=LONG)
    assert serious(page, rules) == []
    open_sample(page, server, "collatz")
    assert serious(page, rules) == []
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    for group, names in ((".st-key-lens_bar", LENSES), (".st-key-side", TABS)):
        for name in names:
            page.locator(group).get_by_role("radio", name=name).first.click()
            settled(page)
            assert serious(page, rules) == [], name
    page.goto(f"{server}/?lesson=while")
    expect(page.locator(f"{CANVAS} .box").first).to_be_visible(timeout=LONG)
    settled(page)
    assert serious(page, rules) == []


def test_nothing_serious_on_many_runs(themed: Page, server: str, rules: str) -> None:
    page = themed
    page.goto(f"{server}/?model=sample:collatz&screen=runs&runs=number%3D1..40")
    expect(page.get_by_text("40 runs in")).to_be_visible(timeout=LONG)
    settled(page)
    assert serious(page, rules) == []
    page.get_by_text("Compare with").first.click()
    settled(page)
    assert serious(page, rules) == [], "Compare with"
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="File").click()
    settled(page)
    assert serious(page, rules) == [], "File"


def spoken(page: Page) -> Locator:
    return page.locator(f"{CANVAS} .spoken")


def into_the_canvas(page: Page) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.locator(f"{CANVAS}[data-walking]").count():
            return
    raise AssertionError("Tab does not lead into the canvas")


def test_the_moment_is_said_once_the_run_rests(page: Page, server: str) -> None:
    open_sample(page, server, "collatz")
    for step in range(1, 8):
        page.keyboard.press("ArrowRight")
        expect(place(page)).to_contain_text(f"step {step}")
    expect(spoken(page)).to_contain_text("while_not_one iteration 0")
    page.keyboard.press("ArrowRight")
    expect(spoken(page)).to_contain_text(" gave ")
    expect(spoken(page)).to_have_attribute("aria-live", "polite")
    expect(page.locator(f"{CANVAS} :is([role=status], [role=alert], [aria-live])")).to_have_count(1)  # nothing talks over it
    page.keyboard.press("End")
    expect(spoken(page)).to_contain_text("the run has ended")


def test_the_canvas_by_keyboard_alone(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz")
    into_the_canvas(page)
    expect(spoken(page)).to_contain_text("Picture of the graph.")
    expect(spoken(page)).to_contain_text("start_at_all")  # what runs next
    page.keyboard.press("ArrowUp")
    expect(spoken(page)).to_contain_text("number")
    page.keyboard.press("ArrowDown")
    expect(canvas.locator(".box.walked")).to_have_count(1)
    expect(place(page)).to_contain_text("step 0")  # walking is not stepping
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-side")).to_contain_text("Parameter-1")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 1")
