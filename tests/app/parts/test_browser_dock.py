"""In a real chromium: find a node with one key, click through timeline, matrix and code."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import open_sample

pytestmark = pytest.mark.browser


def press(page: Page, chart: str, across: float, down: float) -> None:
    """A click at a share of a chart's width and height."""
    canvas = page.locator(f".st-key-{chart} canvas")
    expect(canvas).to_be_visible(timeout=15_000)
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * across, box["y"] + box["height"] * down)


def test_timeline_and_matrix_go_where_they_are_clicked(page: Page, server: str) -> None:
    open_sample(page, server, "growing_sequence", step="9999")
    expect(page.locator(".crumbs")).to_contain_text("finished")
    page.get_by_role("button", name="Steps, matrix").click()
    press(page, "whole_run", 0.55, 0.45)
    expect(page.locator(".crumbs")).to_contain_text(re.compile(r"iteration [34] of 8"))
    page.get_by_role("button", name="Matrix", exact=True).click()
    press(page, "matrix", 0.98, 0.05)
    expect(page.locator(".crumbs")).to_contain_text("iteration 7, the last of 8")
    expect(page.locator(".st-key-dock")).to_contain_text("sequence")


@pytest.mark.parametrize("key", ["/", "Control+f"])
def test_a_node_is_found_with_one_key_and_its_line_of_code_is_shown(
    page: Page, server: str, key: str
) -> None:
    open_sample(page, server, "decoder", step="30")
    page.locator(".titles").click()
    expect(
        page.get_by_title("Find a node by name, type, shape or value ( / or Ctrl+F )")
    ).to_be_visible()  # from then on its key is listened to
    page.keyboard.press(key)
    field = page.get_by_label("Find", exact=True)
    expect(field).to_be_focused()
    page.keyboard.type("multiply sentence")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-dock")).to_contain_text("next_sentence_probability")
    page.get_by_text("Code", exact=True).first.click()
    expect(page.locator(".st-key-code .row.chosen")).to_contain_text("next_sentence_probability")
    page.locator(".st-key-code .row.live", has_text="is_confident = ").click()
    expect(page.locator(".st-key-code .row.chosen")).to_contain_text("is_confident")
    page.wait_for_url(re.compile("is_confident"))
