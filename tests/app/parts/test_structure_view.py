"""Compare, Structure: the operations of two models on one canvas."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.app.parts.test_drift_view import written


@pytest.mark.browser
def test_a_changed_operation_is_chosen_in_the_table_and_on_the_canvas(
    page: Page, server: str, tmp_path: Path
) -> None:
    left, right = (
        written(tmp_path, name, 1.5, least) for name, least in (("a", 40.0), ("b", 80.0))
    )
    page.goto(f"{server}/?model={left}&view=compare&with=model")
    path = page.locator("input[aria-label='Path of the other model']")
    path.fill(str(right))
    path.press("Enter")
    expect(page.get_by_role("button", name="b.xml")).to_be_visible()
    page.locator(".st-key-compare_run button").click()
    page.get_by_role("radio", name="Structure").click()
    canvas = page.locator(".st-key-compare_graph .canvas")
    expect(canvas.locator(".scale")).to_contain_text("added")
    rows = page.locator(".st-key-structure_changes tbody tr")
    changed = canvas.locator(".box.change-3")
    expect(changed.first).to_be_visible()
    rows.last.click()
    expect(canvas.locator(".box.selected")).to_have_count(1)
    expect(rows.last).to_have_class("now")
