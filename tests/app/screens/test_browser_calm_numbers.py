"""In a real chromium: the numbers that hold the screen calm. Few controls, a large canvas, one row
of tabs, and the deciding node in view after one key.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import CANVAS, open_sample, place

pytestmark = pytest.mark.browser
MOST_CONTROLS = 18
LEAST_SHARE = 0.6
CONTROLS = """() => {
  const roots = [document];
  for (const root of roots)
    for (const one of root.querySelectorAll("*")) if (one.shadowRoot) roots.push(one.shadowRoot);
  const wanted = "button, input, select, textarea, a[href], [role=slider], [role=combobox]";
  const all = roots.flatMap((root) => [...root.querySelectorAll(wanted)]);
  const seen = all.filter((one) => {
    const { width, height } = one.getBoundingClientRect();
    return width > 2 && height > 2 && one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  });
  // A row of which one is chosen is one control, and so is a field with its arrow.
  const groups = new Set(seen.map((one) => one.closest("[role=radiogroup], [data-testid=stSelectbox]") ?? one));
  return [...groups].map((one) => one.getAttribute("aria-label") || one.textContent.trim().slice(0, 30) || one.className);
}"""
"""Visible controls by name: buttons, fields, sliders and links."""
TABS = "document.querySelectorAll('.st-key-dock [role=radiogroup], [role=tablist]').length"


def test_the_first_screen_has_few_controls(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    open_sample(page, server, "collatz")
    expect(page.locator(".st-key-dock_tabs")).to_be_visible()
    controls = page.evaluate(CONTROLS)
    assert len(controls) <= MOST_CONTROLS, controls
    assert page.evaluate(TABS) == 1


def test_the_canvas_has_most_of_the_window(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz")
    expect(page.locator(".st-key-dock_tabs")).to_be_visible()
    for width, height in ((1280, 800), (1440, 900), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        stage = canvas.locator(".stage").bounding_box()
        assert stage is not None
        assert stage["width"] * stage["height"] / (width * height) >= LEAST_SHARE


def test_one_key_shows_why_the_loop_ended_with_the_deciding_node_in_view(
    page: Page, server: str
) -> None:
    open_sample(page, server, "collatz")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    expect(page.locator(".verdict")).to_contain_text("after 7 iterations")
    deciding = page.locator(f"{CANVAS} .box", has_text="keep_going").first
    expect(deciding).to_be_in_viewport(ratio=0.99)
    transport = page.locator(".st-key-controls").bounding_box()
    box = deciding.bounding_box()
    assert transport is not None
    assert box is not None
    assert box["y"] + box["height"] <= transport["y"]
    assert box["height"] >= 20  # readable


def test_fifteen_iterations_need_no_scrolling(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    open_sample(page, server, "collatz", set="seventeen", step="9999")
    rows = page.locator(".st-key-loop_table_rows tbody tr")
    expect(rows).to_have_count(12)
    expect(rows.nth(11)).to_be_in_viewport(ratio=0.99)
    frame = page.locator(".st-key-loop_table_rows .frame")
    height = rows.first.bounding_box()
    assert height is not None
    top = frame.bounding_box()
    assert top is not None
    assert top["y"] + 16 * height["height"] + 10 <= 900
