"""In a real chromium: the legend opens by its keys, and each of its rows shows what it speaks
of.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import open_sample

pytestmark = pytest.mark.browser
CLEAR = "all => all.filter((one) => getComputedStyle(one).backgroundColor === 'rgba(0, 0, 0, 0)').map((one) => one.className)"


def test_the_legend_opens_by_key(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "count_primes")
    for key in ("?", "l"):
        page.keyboard.press(key)  # wherever the focus is
        expect(canvas.locator(".legend")).to_be_visible()
        expect(canvas.locator(".legend")).to_contain_text("other")
        assert canvas.locator(".legend .swatch").evaluate_all(CLEAR) == []
        page.keyboard.press(key)
        expect(canvas.locator(".legend")).to_be_hidden()
