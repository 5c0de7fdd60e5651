"""In a real chromium: a run is taken away as a file, and opens again at the same moment,
uploaded or by its path.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import loopscope
from tests.app.browsing import LONG, open_address, open_sample, place, settled

pytestmark = pytest.mark.browser


def test_a_run_is_taken_away_and_opens_again(page: Page, server: str, tmp_path: Path) -> None:
    opens = "breakpoints=[[%22main/while_not_one[*]/body/highest_so_far%22,%22%22,%22address%22,true]]&watches=[%22iteration%22]"
    page.goto(
        f"{server}/?model=sample:collatz&step=31&lens=export&node=main/while_not_one&panel=breakpoints&{opens}"
    )
    expect(place(page)).to_contain_text("step 31", ignore_case=True, timeout=LONG)
    settled(page)
    with page.expect_download(timeout=LONG) as found:
        page.get_by_role("button", name="Save run (.loopscope)").click()
    file = tmp_path / found.value.suggested_filename
    found.value.save_as(file)
    assert file.name == "collatz.loopscope"
    assert loopscope.load(file).cursor.step == 31
    for opened in ("by path", "uploaded"):
        if opened == "by path":
            open_address(page, f"{server}/?model={file}")
        else:
            page.goto(server)
            page.locator("input[type=file]").set_input_files(file)
        expect(place(page)).to_contain_text("step 31", ignore_case=True, timeout=LONG)
        expect(page.locator(".st-key-header_set, .st-key-titles, body").first).to_contain_text(
            "collatz.loopscope"
        )
        page.get_by_role("radio", name="Setup").click()
        expect(page.locator(".st-key-dock")).to_contain_text("iteration")
        settled(page)  # until then the arrow keys are the tabs' own
        page.keyboard.press("ArrowLeft")
        expect(place(page)).to_contain_text("step 30", ignore_case=True)


def test_a_run_is_taken_away_without_weights(page: Page, server: str, tmp_path: Path) -> None:
    open_sample(page, server, "speech_decoder", step="200", lens="export")
    page.locator(".st-key-take_away_without_weights label").first.click()
    settled(page)
    with page.expect_download(timeout=LONG) as found:
        page.get_by_role("button", name="Save run (.loopscope)").click()
    file = tmp_path / found.value.suggested_filename
    found.value.save_as(file)
    assert loopscope.load(file).plan.lacks_weights
    open_address(page, f"{server}/?model={file}")
    expect(place(page)).to_contain_text("step 200", ignore_case=True, timeout=LONG)
    page.keyboard.press("ArrowLeft")
    expect(place(page)).to_contain_text("step 199", ignore_case=True)
    settled(page)  # then the address says the step
    page.reload()
    expect(place(page)).to_contain_text("step 199", ignore_case=True, timeout=LONG)


def test_a_page_is_taken_away_and_opens_without_the_server(
    page: Page, server: str, tmp_path: Path
) -> None:
    open_sample(page, server, "collatz", step="31", lens="export")
    note = page.get_by_placeholder("Note (shown on the page)")
    note.fill("Look <here>")
    note.press("Enter")
    settled(page)
    with page.expect_download(timeout=LONG) as found:
        page.get_by_role("button", name="Web page (.html)").click()
    file = tmp_path / found.value.suggested_filename
    found.value.save_as(file)
    assert file.name == "collatz.html"
    page.goto(file.as_uri())
    expect(page.locator("html[data-opened]")).to_be_attached(timeout=LONG)
    expect(page.locator(".note")).to_have_text("Look <here>")
    expect(page.locator("#place")).to_contain_text("Step 31 of")
