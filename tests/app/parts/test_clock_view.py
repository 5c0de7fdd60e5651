"""Performance, Clock: the costliest operation and iteration, strips over iterations, boxes tinted
by their time; it can be stopped.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from tests.app.browsing import LONG, open_sample
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text


def test_steps_of_ours_are_measured(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopscope_app.actions.timing.PATIENCE", 60.0)
    app = opened(model="sample:linear_attention", step="9999", view="performance", timeline="clock")
    app.selectbox("clock_of").select("loopscope").run()
    app.button("clock_measure").click().run()
    assert not app.exception
    assert "In Loopscope the costliest operation is" in page_text(app)
    strips = sent(app, "clock")["lanes"]
    assert strips[0]["name"] == "for_each_token"
    assert all(len(strip["blocks"]) == 12 for strip in strips)
    heats = app.session_state["loopscope"].canvas.pictured[1].heats
    assert max(heats.values()) == 8


@pytest.mark.browser
def test_the_runtime_is_measured_and_a_strip_goes_to_its_iteration(page: Page, server: str) -> None:
    canvas = open_sample(
        page, server, "linear_attention", step="9999", view="performance", timeline="clock"
    )
    page.locator(".st-key-clock_measure button").first.click()
    expect(page.get_by_text("OpenVINO does not report operations inside loops")).to_be_visible(
        timeout=LONG
    )
    page.locator(".st-key-clock_of").click()
    page.get_by_text("In steps of Loopscope").click()
    page.locator(".st-key-clock_measure button").first.click()
    strips = page.locator(".st-key-clock canvas")
    expect(strips).to_be_visible(timeout=LONG)
    expect(canvas.locator(".box.heat-8")).to_have_count(1)
    strips.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = strips.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.98, box["y"] + 12)
    expect(page.locator(".st-key-view_canvas")).to_contain_text("iteration 11", timeout=LONG)
    page.locator(".st-key-clock_costs .line").first.click()
    expect(canvas.locator(".box.selected")).to_have_count(1)
