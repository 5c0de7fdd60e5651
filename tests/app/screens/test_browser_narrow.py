"""In a real chromium: nothing of a lesson is cut off in a narrow window, and it opens at its top."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import open_address, settled

pytestmark = pytest.mark.browser
BUTTONS = ".st-key-transport button"


def test_all_buttons_of_a_lesson_are_in_the_window(page: Page, server: str) -> None:
    canvas = open_address(page, f"{server}/?lesson=while")
    settled(page)
    for width in (1280, 1000, 900, 820):
        page.set_viewport_size({"width": width, "height": 800})
        area = canvas.bounding_box()
        assert area is not None
        right = page.locator(BUTTONS).evaluate_all(
            "all => Math.max(...all.map((one) => one.getBoundingClientRect().right))"
        )
        assert right <= area["x"] + area["width"] + 8
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
    text = page.locator(".st-key-lesson")
    assert text.evaluate("lesson => { lesson.scrollTo(0, 9999); return lesson.scrollTop; }") > 0
    page.get_by_role("button", name="Next").first.click()
    expect(text).to_contain_text("The same account with one difference")
    page.wait_for_function("document.querySelector('.st-key-lesson').scrollTop === 0")
