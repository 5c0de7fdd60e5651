"""Labels of lines in a real chromium: iterations side by side, and no two labels in one place,
nor one on a box.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import LONG, choose_in_menu, open_sample, place

pytestmark = pytest.mark.browser
OVERLAPS = """canvas => {
  canvas.querySelector('.stage').classList.remove('far');
  const area = (element) => element.getBoundingClientRect();
  const labels = [...canvas.querySelectorAll('.line-label')].filter((one) => one.textContent && one.getClientRects().length);
  const boxes = [...canvas.querySelectorAll('.box > .body')];
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const found = labels.filter((one, k) => [...labels.slice(k + 1), ...boxes].some((other) => meet(area(one), area(other))));
  const texts = (some) => some.map((one) => one.textContent);
  return { texts: texts(labels), found: texts(found) };
}"""


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("slice_and_concatenate", 3),
        ("records_scan", 2),
        ("growing_sequence", 0),
        ("map_with_cond", 0),
    ],
)
def test_labels_of_iterations_side_by_side_keep_apart(
    page: Page, server: str, name: str, parts: int
) -> None:
    canvas = open_sample(page, server, name)
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    choose_in_menu(canvas, "unroll")
    copies = canvas.locator(".frame.copy")
    expect(copies).to_have_count(4, timeout=LONG)
    canvas.locator("[data-action=fewer]").dispatch_event("click")
    for count in (3, 4, 5, 6):
        expect(copies).to_have_count(count, timeout=LONG)
        skipped = canvas.locator(".frame.copy.skipped").count()
        seen = canvas.evaluate(OVERLAPS)
        assert seen["found"] == []
        assert sum(text.startswith("part ") for text in seen["texts"]) == parts * (count - skipped)
        canvas.locator("[data-action=wider]").dispatch_event("click")
