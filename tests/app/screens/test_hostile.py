"""A model with hostile names in a real chromium: no script runs, nothing is fetched from
elsewhere, and the page keeps its form.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app import hostile
from tests.app.browsing import LONG, open_address

pytestmark = pytest.mark.browser
STICKING_OUT = """() => {
    const found = [];
    if (document.documentElement.scrollWidth > document.documentElement.clientWidth) found.push('the page scrolls sideways');
    for (const column of document.querySelectorAll('[data-testid=stColumn], .ls')) {
        const right = column.getBoundingClientRect().right;
        for (const e of column.querySelectorAll('.ls, .ls *, [data-testid=stMarkdown] *'))
            if (e.getBoundingClientRect().right > right + 2) found.push(e.outerHTML.slice(0, 200));
    }
    return found;
}"""
LIVE = """() => {
    const found = [], visit = root => {
        for (const e of root.querySelectorAll('*')) {
            if (e.shadowRoot) visit(e.shadowRoot);
            for (const a of e.attributes) {
                const text = a.value.replace(/\\s/g, '').toLowerCase();
                if (a.name.startsWith('on') || (['href', 'src', 'xlink:href'].includes(a.name)
                    && (text.startsWith('javascript:') || text.includes('127.0.0.1:9/')))) found.push(e.outerHTML.slice(0, 200));
            }
        }
    };
    visit(document);
    return found;
}"""


def harmless(page: Page) -> None:
    assert page.evaluate("() => window.hacked") is None
    assert page.evaluate(LIVE) == []
    assert page.evaluate(STICKING_OUT) == []
    assert page.locator("[data-testid=stException]").count() == 0


def test_hostile_names_are_only_shown(page: Page, server: str, tmp_path: Path) -> None:
    foreign: list[str] = []
    page.on(
        "request",
        lambda request: foreign.append(request.url) if urlsplit(request.url).port == 9 else None,
    )
    page.on("dialog", lambda dialog: foreign.append(dialog.message))
    canvas = open_address(page, f"{server}/?model={quote(str(hostile.write(tmp_path)))}")
    harmless(page)
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowRight", "ArrowRight", "End"):
        page.keyboard.press(key)
        page.wait_for_timeout(400)
        harmless(page)
    for box in (0, 5):
        canvas.locator(".box").nth(box).dispatch_event("click")
        page.wait_for_timeout(300)
    set_by_hand(page)
    look_at_all(page, page.locator(".st-key-dock").get_by_role("radio"))
    look_at_all(page, page.get_by_role("radio"))
    assert foreign == []


def set_by_hand(page: Page) -> None:
    """The value of what is pinned, as it is or changed: either is told under its name."""
    page.get_by_role("button", name="What if …").first.click(timeout=LONG)
    submit = page.get_by_role("button", name="Run from here")
    expect(submit).to_be_visible(timeout=LONG)
    harmless(page)
    field = page.get_by_test_id("stPopoverBody").locator("input").first
    if field.count():
        field.fill("7")
    submit.click()
    expect(page.locator(".st-key-what_if, .st-key-told [data-testid=stAlert]").first).to_be_visible(
        timeout=LONG
    )
    harmless(page)


def look_at_all(page: Page, choices: Locator) -> None:
    """Each panel in turn, by the place of its button: a choice may bring more of them."""
    for number in range(min(choices.count(), 9)):
        choice = choices.nth(number)
        if choice.is_visible():
            choice.click()
            page.wait_for_timeout(150)
            harmless(page)
