"""In a real chromium: the model without what did not run, from the menu of an If or a loop."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import loopscope
from loopscope.ir.address import nodes
from tests.app.browsing import LONG, open_sample, place, settled

pytestmark = pytest.mark.browser


def test_the_count_that_ran_is_previewed_and_saved(page: Page, server: str, tmp_path: Path) -> None:
    canvas = open_sample(page, server, "collatz")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished", timeout=LONG)
    settled(page)
    canvas.locator('.box[data-address="main/while_not_one"]').dispatch_event("click")
    menu = page.locator(".st-key-node_menu button").first
    menu.click()
    page.get_by_role("button", name="Keep the count that ran").click()
    preview = page.get_by_text("valid while main/while_not_one ran")
    expect(preview).to_be_in_viewport(timeout=LONG)
    expect(page.get_by_text("1 If, 1 loop, 12 operations became")).to_be_visible()
    settled(page)
    with page.expect_download(timeout=LONG) as download:
        page.get_by_role("button", name="Save as").click()
    assert download.value.suggested_filename == "collatz_specialised.zip"
    archive = tmp_path / "saved.zip"
    download.value.save_as(archive)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path)
    model = loopscope.read_model(tmp_path / "collatz_specialised.xml")
    assert "loopscope.valid_while" in model.rt_info
    assert [node.type for _, node in nodes(model) if node.is_loop] == ["Loop"]


def test_an_if_that_took_both_branches_is_refused(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished", timeout=LONG)
    canvas.locator('.box[data-address="main/while_not_one/body/if_even"]').dispatch_event("click")
    page.locator(".st-key-node_menu button").first.click()
    page.get_by_role("button", name="Keep the branch that ran").click()
    expect(page.get_by_text("took both branches: expected a run")).to_be_visible(timeout=LONG)
