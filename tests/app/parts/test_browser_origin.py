"""Where a value came from, walked on the canvas in a real chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.browsing import LONG, open_sample, place

pytestmark = pytest.mark.browser


def lit(canvas: Locator, address: str) -> Locator:
    return canvas.locator(f'.box.origin[data-address="main/{address}"]')


def shade(distance: int) -> re.Pattern[str]:
    return re.compile(rf"\borigin-{distance}\b")


def test_the_way_to_a_value_lights_up_and_goes_out(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "for_loop", set="three_years")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    canvas.locator('.box[data-address="main/for_each_year/body/next_balance"]').dispatch_event(
        "click"
    )
    side = page.locator(".st-key-dock")
    expect(side).to_contain_text("for_each_year · iteration 2 › next_balance", timeout=LONG)
    expect(canvas.locator(".origin")).to_have_count(0)
    page.get_by_role("button", name="Where from?").click()
    # Through the back edge to what the first iteration began with, the brighter, the nearer.
    expect(lit(canvas, "for_each_year/body/next_balance")).to_have_class(shade(0), timeout=LONG)
    expect(lit(canvas, "for_each_year/body/balance")).to_have_class(shade(1))
    expect(canvas.locator(".line.back.origin")).to_have_class(shade(1))
    expect(lit(canvas, "balance")).to_have_class(shade(5))
    expect(canvas.locator(".line.input_map.origin")).not_to_have_count(0)
    expect(canvas.locator(".trace")).to_contain_text("for_each_year · iteration 2 › next_balance")
    # A click on the way goes on from there.
    lit(canvas, "for_each_year/body/balance").dispatch_event("click")
    expect(lit(canvas, "for_each_year/body/balance")).to_have_class(shade(0), timeout=LONG)
    canvas.locator(".trace button").click()
    expect(canvas.locator(".origin")).to_have_count(0, timeout=LONG)
    expect(canvas.locator(".trace")).to_be_hidden()
    expect(page.get_by_role("button", name="Where from?")).to_be_visible()


def test_leaving_the_view_puts_the_lights_out(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz", step="30", tab="node", origin="shown")
    expect(canvas.locator(".box.origin")).not_to_have_count(0, timeout=LONG)
    page.get_by_role("button", name="Hide where from").click()
    expect(canvas.locator(".origin")).to_have_count(0, timeout=LONG)
    page.get_by_role("button", name="Where from?").click()
    expect(canvas.locator(".box.origin")).not_to_have_count(0, timeout=LONG)
    page.get_by_role("radio", name="Code").click()
    expect(canvas.locator(".origin")).to_have_count(0, timeout=LONG)
