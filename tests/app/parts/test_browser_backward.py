"""Backpropagation watched in a real chromium: chosen, walked, tied, changed by hand, and opened
again by its address.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.browsing import CANVAS, LONG, open_sample, place

pytestmark = pytest.mark.browser

PAIRED = "for_each_year: its iteration 0 belongs to iteration 2, the last of 3"
BACK = "main/backward%2Ffor_each_sound%2FLoop"


def box(canvas: Locator, address: str) -> Locator:
    return canvas.locator(f'.box[data-address="{address}"]')


def test_a_gradient_is_computed_opened_again_and_left(page: Page, server: str) -> None:
    open_sample(page, server, "for_loop", set="three_years", view="gradients")
    page.get_by_role("button", name="Compute").click()
    words = page.locator(".walked_back")
    expect(words).to_contain_text(PAIRED, timeout=LONG)
    expect(page.locator(".headline")).to_contain_text("The gradient flows: 1 at iteration 2")
    expect(page).to_have_url(re.compile(r"backward=.*step="))
    page.reload()
    expect(words).to_contain_text(PAIRED, timeout=LONG)
    page.get_by_role("button", name="Back to the model").click()
    expect(page.get_by_role("button", name="Compute")).to_be_visible(timeout=LONG)
    expect(page).not_to_have_url(re.compile("backward="))
    page.go_back()
    expect(page.get_by_role("button", name="Back to the model")).to_be_visible(timeout=LONG)


def test_both_loops_stand_in_the_same_iteration(page: Page, server: str) -> None:
    canvas = open_sample(
        page,
        server,
        "vanishing_gradient",
        set="silence_of_5",
        step=f"{BACK}[3]/body/next_memory".replace("%", "%25"),
    )
    expect(
        canvas.locator(".frame, .cluster, text").filter(has_text="gradient of iteration 2").first
    ).to_be_attached(timeout=LONG)
    expect(canvas.locator("text").filter(has_text="gradient now").first).to_be_attached()
    # A click in the forward loop shows the iteration that is walked back, and leads to it.
    box(canvas, "main/for_each_sound/body/kept").dispatch_event("click")
    side = page.locator(".st-key-dock")
    expect(side).to_contain_text("for_each_sound · iteration 2", timeout=LONG)
    expect(
        side.get_by_role(
            "button", name="Backward iteration: backward/for_each_sound › Loop · iteration 3"
        )
    ).to_be_visible()
    box(canvas, f"{BACK}/body/kept").dispatch_event("click")
    side.get_by_role("button", name="Forward iteration: for_each_sound · iteration 2").click()
    expect(place(page)).to_contain_text("iteration 2 of 6", timeout=LONG)


def test_a_click_on_the_norms_goes_to_where_that_iteration_is_walked_back(
    page: Page, server: str
) -> None:
    open_sample(
        page, server, "vanishing_gradient", set="silence_of_5", view="gradients", step="9999"
    )
    strip = page.locator(".st-key-adjoints canvas")
    expect(strip).to_be_visible(timeout=LONG)
    box_of = strip.bounding_box()
    assert box_of is not None
    left = 155  # the names
    strip.click(position={"x": left + (box_of["width"] - left) * 1.5 / 7, "y": 20})
    expect(
        page.locator(f"{CANVAS} text").filter(has_text="gradient of iteration 1").first
    ).to_be_attached(timeout=LONG)
