"""In a real chromium: what is said of what is pointed at, also when the run moves under a
pointer that rests.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import open_sample, place

pytestmark = pytest.mark.browser


def test_tooltips_keep_up_with_the_run_and_tell_all_of_a_back_edge(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "for_loop", set="three_years", step="5")
    tooltip = canvas.locator(".tooltip")
    canvas.press("0")
    canvas.locator(".box", has_text="next_balance").first.hover()
    expect(tooltip).to_contain_text("value 1102.5")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("iteration 2")
    expect(tooltip).to_contain_text("value 1157")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    canvas.press("0")
    canvas.locator(".back-chip.now").first.hover()
    expect(tooltip).to_contain_text("back edge")
    expect(tooltip).to_contain_text("to the next iteration: 1157.625")
    expect(tooltip).to_contain_text("this iteration began with: 1102.5")
