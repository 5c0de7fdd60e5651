"""In a real chromium: how the window is shared between the picture and the dock, and the picture
alone.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.browsing import CANVAS, open_sample, place, settled

pytestmark = pytest.mark.browser
DIVIDER = ".divider"


def box(locator: Locator) -> Any:
    found = locator.bounding_box()
    assert found is not None
    return found


def drag(page: Page, right: int) -> None:
    line = box(page.locator(DIVIDER))
    x, y = line["x"] + line["width"] / 2, line["y"] + line["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right / 2, y)
    page.mouse.move(x + right, y)
    page.mouse.up()


def grows(locator: Locator, side: str, least: float) -> None:
    """Wait until a side of a box is longer than a number of pixels: the page may lay it out a
    moment after a key.
    """
    for _ in range(300):
        if box(locator)[side] > least:
            return
        locator.page.wait_for_timeout(100)
    assert box(locator)[side] > least


def large(page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})


def test_the_divider_is_dragged_and_stays_where_it_was_left(page: Page, server: str) -> None:
    large(page)
    canvas = open_sample(page, server, "collatz")
    before = box(canvas)
    drag(page, 80)
    after = box(canvas)
    assert after["width"] == pytest.approx(before["width"] + 80, abs=8)
    assert after["height"] == before["height"]
    page.keyboard.press("ArrowRight")  # keys still step
    expect(place(page)).to_contain_text("step 1")
    page.reload()
    expect(page.locator(f"{CANVAS} .box.current")).to_be_visible(timeout=60_000)
    assert box(canvas) == pytest.approx(after, abs=2)


def test_the_dock_folds_by_key_and_by_pointer(page: Page, server: str) -> None:
    large(page)
    canvas = open_sample(page, server, "collatz")
    settled(page)
    page.locator(DIVIDER).press("Enter")
    expect(page.locator(DIVIDER)).to_have_attribute("aria-valuenow", "0")
    expect(page.locator(".st-key-dock")).to_be_hidden()
    grows(canvas, "width", 1430)
    page.locator(DIVIDER).press("ArrowLeft")
    expect(page.locator(".st-key-dock")).to_be_visible()
    page.locator(DIVIDER).dblclick()
    expect(page.locator(".st-key-dock")).to_be_hidden()
    expect(place(page)).to_contain_text("step 0")


def test_the_handle_of_the_strip_opens_lanes(page: Page, server: str) -> None:
    large(page)
    canvas = open_sample(page, server, "collatz")
    before = box(canvas)
    expect(page.locator(".st-key-strip_open")).to_have_count(0)  # nothing has run
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    page.locator(".st-key-strip_open button:visible").click()
    expect(page.locator(".st-key-whole_run canvas")).to_be_visible()
    assert box(canvas)["height"] < before["height"] - 100
    page.locator(".st-key-strip_Matrix button:visible").click()
    expect(page.locator(".st-key-matrix canvas")).to_be_visible()
    page.locator(".st-key-strip_close button:visible").click()
    expect(page.locator(".st-key-strip_lanes")).to_have_count(0)
    grows(canvas, "height", before["height"] - 2)


def test_the_picture_alone_with_transport_and_verdict_on_it(page: Page, server: str) -> None:
    large(page)
    canvas = open_sample(page, server, "collatz")
    before = box(canvas)
    page.keyboard.press("f")
    assert (box(canvas)["width"], box(canvas)["height"]) == (1440, 900)
    expect(page.locator(".st-key-dock")).to_be_hidden()
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    for floating in (".st-key-transport", ".verdict"):
        expect(page.locator(floating).first).to_be_in_viewport(ratio=0.99)
    page.locator(".st-key-transport_restart button").first.click()
    expect(place(page)).to_contain_text("step 0")
    page.keyboard.press("Escape")
    assert box(canvas) == pytest.approx(before, abs=1)
    expect(page.locator(".st-key-dock")).to_be_visible()


def test_a_letter_that_is_typed_is_no_command(page: Page, server: str) -> None:
    open_sample(page, server, "collatz")
    page.keyboard.press("/")
    page.keyboard.type("ff")
    expect(page.locator("input:focus")).to_have_value("ff")
    expect(page.locator(":root[data-canvas-alone]")).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), [(900, 800), (1280, 800), (1440, 900)])
def test_nothing_moves_when_the_verdict_comes(
    page: Page, server: str, width: int, height: int
) -> None:
    """Of the samples this one has the longest verdict: three lines at 1280 pixels."""
    page.set_viewport_size({"width": width, "height": height})
    open_sample(page, server, "decoder")
    expect(page.locator(".named_values")).to_be_visible()
    first = [
        round(box(page.locator(part))["y"])
        for part in (CANVAS, ".st-key-controls", ".st-key-dock_tabs")
    ]
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    expect(page.locator(".named_values")).to_contain_text("sentence_probability")
    assert [
        round(box(page.locator(part))["y"])
        for part in (CANVAS, ".st-key-controls", ".st-key-dock_tabs")
    ] == first
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") <= height
