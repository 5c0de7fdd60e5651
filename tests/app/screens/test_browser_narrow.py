"""In a real chromium: nothing of a lesson is cut off in a narrow window."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import open_address, settled

pytestmark = pytest.mark.browser
BUTTONS = ".st-key-transport button"


@pytest.mark.parametrize("width", [820, 900, 1000, 1280])
def test_all_buttons_of_a_lesson_are_in_the_window(page: Page, server: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    canvas = open_address(page, f"{server}/?lesson=while").bounding_box()
    settled(page)
    assert canvas is not None
    right = page.locator(BUTTONS).evaluate_all(
        "all => Math.max(...all.map((one) => one.getBoundingClientRect().right))"
    )
    assert right <= canvas["x"] + canvas["width"] + 8
    for name in ("Play", "Step", "Iteration"):  # those without words have a name all the same
        expect(
            page.locator(".st-key-transport").get_by_role("button", name=name).first
        ).to_be_visible()
    first, second = (
        page.locator(f".st-key-course_{way} button").first.bounding_box()
        for way in ("previous", "next")
    )
    assert first is not None
    assert second is not None
    assert first["y"] == pytest.approx(second["y"], abs=2)
