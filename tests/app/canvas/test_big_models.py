"""Big models in a real chromium: a picture of few boxes at once, what is in them, and a run that
is stepped.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import loopscope
from tests.app.browsing import LONG, open_address
from tests.benchmarks.big_transformers import saved
from tests.engine.view.big_models import linear_attention

UNFOLD = "[data-action=unfold]"


@pytest.mark.browser
def test_a_large_model_opens_in_blocks_and_runs_when_it_is_checked(
    page: Page, server: str, tmp_path: Path
) -> None:
    canvas = open_address(page, f"{server}/?model={saved(tmp_path, 'large', layers=60)}")
    boxes = canvas.locator(".box")
    blocks = canvas.locator(".box.folded")
    assert boxes.count() <= 40
    expect(blocks).to_have_count(1)
    expect(blocks.first).to_contain_text("× 60")
    expect(page.locator(".st-key-transport")).to_be_visible(timeout=LONG)
    blocks.first.locator(UNFOLD).dispatch_event("click")
    expect(blocks).to_have_count(60, timeout=LONG)
    expect(blocks.nth(2)).to_contain_text("3 of 60")
    blocks.first.locator(UNFOLD).dispatch_event("click")
    expect(blocks).to_have_count(59, timeout=LONG)
    current = canvas.locator(".box.current")
    expect(current).to_contain_text("ReduceMean")
    canvas.click(position={"x": 20, "y": 300})
    page.keyboard.press("ArrowRight")
    expect(current).to_contain_text("Subtract", timeout=LONG)
    canvas.locator(".head.group [data-action=fold]").nth(1).dispatch_event("click")
    expect(blocks).to_have_count(60, timeout=LONG)
    expect(current).to_contain_text("1 of 60")


@pytest.mark.browser
def test_folded_layers_tell_how_their_loops_ended(page: Page, server: str, tmp_path: Path) -> None:
    loopscope.write_model(linear_attention(18), tmp_path / "linear.xml")
    canvas = open_address(page, f"{server}/?model={tmp_path / 'linear.xml'}")
    blocks = canvas.locator(".box.folded")
    expect(blocks).to_have_count(18)
    expect(blocks.first).to_contain_text("1 loop")
    page.get_by_role("button", name="Run", exact=False).last.click()
    expect(blocks.nth(17)).to_contain_text("loop: 5 iterations, trip count reached", timeout=LONG)
    blocks.first.locator(UNFOLD).dispatch_event("click")
    loop = canvas.locator(".box.folded.region")
    expect(loop).to_have_count(1, timeout=LONG)
    expect(loop).to_contain_text("5 iterations, trip count reached")
