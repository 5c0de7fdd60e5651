"""In a real chromium: what is done on the canvas is heard and shown, however fast it comes and
whatever is lost on its way.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import LONG, open_sample

pytestmark = pytest.mark.browser
CANVAS = 'const canvas = globalThis[Symbol.for("loopscope.canvas")].canvases.get("canvas_graph");'
CLICK = 'const click = (one) => one.dispatchEvent(new MouseEvent("click", { bubbles: true, composed: true }));'


def test_a_click_that_was_not_heard_is_told_again(page: Page, server: str) -> None:
    """As when a word is lost between two drawings of a page that opens."""
    canvas = open_sample(page, server, "collatz", step="30")
    expect(canvas).to_have_attribute("data-step", "30", timeout=LONG)
    page.evaluate(f"""() => {{
      {CANVAS}
      const tell = canvas.setState;
      window.lost = 0;
      canvas.setState = () => {{ window.lost += 1; canvas.setState = tell; }};
    }}""")
    canvas.locator('.box[data-address="main/number"]').dispatch_event("click")
    expect(page).to_have_url(re.compile("node=main%2Fnumber"), timeout=LONG)
    assert page.evaluate("window.lost") == 1
    expect(canvas.locator(".box.selected")).to_have_attribute("data-address", "main/number")


def test_clicks_in_one_moment_are_all_heard_once(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz", step="30")
    expect(canvas).to_have_attribute("data-step", "30", timeout=LONG)
    page.evaluate(f"""() => {{
      {CANVAS} {CLICK}
      click(canvas.root.querySelector('.head.if [data-action=fold]'));
      click(canvas.root.querySelector('.box[data-address="main/number"]'));
    }}""")
    expect(page).to_have_url(re.compile("node=main%2Fnumber"), timeout=LONG)
    expect(canvas.locator(".box.folded")).to_have_count(1, timeout=LONG)
    page.wait_for_timeout(2500)  # what was told again would unfold it
    expect(canvas.locator(".box.folded")).to_have_count(1)


def test_a_click_in_the_moment_in_which_the_canvas_asks_for_more_is_shown(
    page: Page, server: str
) -> None:
    """Streamlit makes one word of both, and draws anew only what was told of first."""
    canvas = open_sample(page, server, "collatz", step="30")
    expect(canvas).to_have_attribute("data-step", "30", timeout=LONG)
    for clicked, shown in (
        (".st-key-strip_open button", ".st-key-whole_run"),
        (".st-key-dock_tabs button:nth-of-type(4)", ".st-key-dock :text('Pause at NaN')"),
        (".st-key-header_close button", "[class*=st-key-card_]"),
    ):
        page.wait_for_timeout(1500)  # what it asks for by itself has come
        page.evaluate(
            f"""(clicked) => {{
              {CANVAS} {CLICK}
              canvas.playback.requests.sentAt = undefined;
              canvas.playback.requests.request(5);
              click(document.querySelector(clicked));
            }}""",
            clicked,
        )
        expect(page.locator(shown).first).to_be_visible(timeout=LONG)


def test_in_a_pause_the_canvas_asks_only_when_nothing_is_being_drawn(
    page: Page, server: str
) -> None:
    """Streamlit forgets to take away what was on the page when another part of it is asked for
    in the meantime.
    """
    canvas = open_sample(page, server, "collatz", step="30")
    expect(canvas).to_have_attribute("data-step", "30", timeout=LONG)
    page.wait_for_timeout(1500)
    state = page.locator("[data-test-script-state]")
    expect(state).to_have_attribute("data-test-script-state", "notRunning")
    state.evaluate("e => e.setAttribute('data-test-script-state', 'running')")
    page.evaluate(f"""() => {{
      {CANVAS}
      // As on a machine that is not busy: the last stretch was long, and none is still on its way.
      canvas.playback.store = () => undefined;
      Object.assign(canvas.playback.requests, {{ sentAt: undefined, request: (step) => (window.asked = step) }});
      Object.assign(canvas.playback.frames, {{ isCheap: true }}).clear();
      canvas.playback.requests.schedule();
    }}""")
    page.wait_for_timeout(1200)
    assert page.evaluate("window.asked") is None
    state.evaluate("e => e.setAttribute('data-test-script-state', 'notRunning')")
    page.wait_for_function("window.asked === 31")
