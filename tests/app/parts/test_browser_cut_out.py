"""In a real chromium: an operation is cut out, and a problem is repaired."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import loopscope
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE
from tests.app.browsing import LONG, open_sample, place, settled
from tests.app.parts.test_browser_downloads import saved

pytestmark = [pytest.mark.browser, pytest.mark.oracle]


def unpacked(file: Path, folder: Path) -> Path:
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    return folder


def test_an_operation_is_cut_out_with_its_values(page: Page, server: str, tmp_path: Path) -> None:
    canvas = open_sample(page, server, "collatz")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    canvas.locator(".box", has_text="next_steps").first.dispatch_event("click")
    settled(page)
    page.locator(".st-key-node_menu button").first.click()
    button = page.get_by_role("button", name="Cut out", exact=True)
    expect(button).to_be_visible(timeout=LONG)
    file = saved(page, button.click, tmp_path)
    assert file.name == "collatz-part.zip"
    folder = unpacked(file, tmp_path / "part")
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "expected.npz",
        "inputs.npz",
        "model.bin",
        "model.xml",
        "run.py",
    }
    ended = subprocess.run([sys.executable, str(folder / "run.py")], check=False)
    assert ended.returncode == 0


def test_a_problem_is_previewed_compared_and_repaired(
    page: Page, server: str, tmp_path: Path
) -> None:
    open_sample(page, server, "swap", drawer="problems")
    settled(page)
    page.locator(".st-key-problem_repair_LS906 button").first.click()
    body = page.locator("[data-testid=stPopoverBody]")
    expect(body).to_contain_text("An Identity is put between 'left' and 'right'.", timeout=LONG)
    expect(body).to_contain_text("OpenVINO's CPU overwrites the first value")
    file = saved(
        page, page.get_by_role("button", name="Download the repaired model").click, tmp_path
    )
    model = loopscope.read_model(unpacked(file, tmp_path / "repaired") / "repaired.xml")
    assert "LS906" not in {each.code for each in check(model, CATALOGUE).diagnostics}
    page.get_by_role("button", name="Compare before and after").click()
    expect(page.get_by_text("after, all agree").first).to_be_visible(timeout=LONG)
