"""In a real chromium: what fits on the screen, what the address holds, whose upload is whose,
and wrong input.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import loopscope
from loopscope_samples import FOLDER
from tests.app.browsing import CANVAS, LONG, nest, open_address, open_sample, place

pytestmark = pytest.mark.browser
SCREENS = [(1280, 800), (1920, 1080)]
ROWS = ".st-key-loop_table_rows tbody tr"
WHOLE = (".st-key-transport", CANVAS, ".st-key-dock", ".st-key-dock_tabs", ".verdict")
HIDDEN_BELOW = "() => { const page = document.querySelector('[data-testid=stMain]'); return page.scrollHeight - page.clientHeight; }"


def test_the_first_picture_needs_no_scrolling(page: Page, server: str) -> None:
    open_sample(page, server, "decoder")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        for part in WHOLE:
            expect(page.locator(part).first).to_be_in_viewport(ratio=0.99)
        expect(page.locator(ROWS)).to_have_count(5)
        expect(page.locator(ROWS).nth(4).locator("td").first).to_be_in_viewport(ratio=0.99)
        assert page.evaluate(HIDDEN_BELOW) <= 2


def test_the_innermost_loop_of_a_deep_nest_is_in_sight(
    page: Page, server: str, tmp_path: Path
) -> None:
    innermost_body = "main/" + "/".join(
        f"loop_at_level_{level}[{level // 40}]/body" for level in range(1, 41)
    )
    model = nest(tmp_path, 40)
    step = loopscope.Debugger(loopscope.read_model(model), [1]).seek(innermost_body).step
    open_address(page, f"{server}/?model={model}&step={step}")
    innermost = page.locator(".nest > .chip")
    expect(innermost).to_have_text("iteration 1 of 3")
    expect(page.locator(".nest > .name")).to_have_text("loop_at_level_40")
    expect(page.locator(".nest")).to_contain_text("37 more")
    expect(page.locator(".nest")).to_have_attribute(
        "title", re.compile("loop_at_level_17 iteration 0, the only one")
    )
    for width in (900, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        line = page.locator(".crumbs").bounding_box()
        assert line is not None
        for part in (innermost, page.locator(".nest > .name"), page.locator(".crumbs .ahead")):
            box = part.bounding_box()
            assert box is not None
            assert line["x"] <= box["x"]
            assert box["x"] + box["width"] <= line["x"] + line["width"] + 1
        assert innermost.evaluate(
            "e => e.getBoundingClientRect().right <= e.parentElement.getBoundingClientRect().right + 1"
        )


def test_the_row_of_the_moment_is_in_sight(page: Page, server: str) -> None:
    open_sample(page, server, "collatz", set="twenty_seven", step="600")
    row = page.locator(".st-key-loop_table_rows tr.now")
    expect(row).to_be_in_viewport(ratio=0.9)
    words = row.inner_text()
    page.keyboard.press("Shift+ArrowRight")
    expect(row).not_to_have_text(words)
    expect(row).to_be_in_viewport(ratio=0.9)


def test_the_address_holds_what_is_looked_at_and_back_still_leaves(page: Page, server: str) -> None:
    page.goto(server)
    page.get_by_role("button", name="Open A decoder that knows when to stop").click(timeout=LONG)
    expect(page.locator(f"{CANVAS} .box.current")).to_be_visible(timeout=LONG)
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 1")
    page.get_by_role("button", name="Steps, matrix").click()
    page.get_by_role("button", name="Matrix", exact=True).click()
    page.get_by_role("radio", name="Code").click()
    expect(page).to_have_url(re.compile("strip=matrix"))
    expect(page).to_have_url(re.compile("tab=code"))
    page.reload()
    expect(page.locator(".st-key-code .row.now")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-matrix")).to_be_visible()
    expect(place(page)).to_contain_text("step 1")
    page.go_back()
    expect(
        page.get_by_role("button", name="Open A decoder that knows when to stop")
    ).to_be_attached(timeout=LONG)


def test_two_people_do_not_share_an_upload(page: Page, browser: Browser, server: str) -> None:
    other = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    for who, name in ((page, "collatz"), (other, "swap")):
        who.goto(server)
        files = [FOLDER / name / "model.xml", FOLDER / name / "model.bin"]
        who.locator("input[type=file]").first.set_input_files(
            [file for file in files if file.exists()]
        )
        expect(who.locator(".st-key-canvas_graph .box").first).to_be_visible(timeout=LONG)
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 1")
    for step in (1, 2):
        other.keyboard.press("ArrowRight")
        expect(place(other)).to_contain_text(f"step {step}")
    page.keyboard.press("ArrowLeft")
    expect(place(page)).to_contain_text("earlier step")
    expect(page.locator(".st-key-canvas_graph")).to_contain_text("while_not_one")
    expect(other.locator(".st-key-canvas_graph")).not_to_contain_text("while_not_one")
    expect(place(other)).to_contain_text("step 2")
    other.context.close()


def test_what_is_typed_wrong_is_not_run(page: Page, server: str) -> None:
    open_sample(page, server, "collatz", panel="inputs")
    field = page.get_by_label(re.compile("^number"))
    field.fill("many")
    page.locator(".st-key-inputs_run button:visible").click()
    expect(page.locator(".st-key-told")).to_contain_text("is not a value of type i64")
    expect(field).to_have_value("many")
    field.fill("6")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-told")).to_be_hidden()
    page.locator(".st-key-inputs_run button:visible").click()
    expect(page.get_by_role("combobox").first).to_have_value("Input: number = 6")


def test_the_first_nan_is_a_click_away(page: Page, server: str) -> None:
    open_sample(page, server, "diverging_training", set="too_fast")
    page.keyboard.press("End")
    page.get_by_role("button", name="First NaN").click(timeout=LONG)
    expect(place(page)).to_contain_text("earlier step")
    page.get_by_role("radio", name="Node").click()
    expect(page.locator(".st-key-dock div.value")).to_contain_text(re.compile("NaN", re.IGNORECASE))


def test_a_lesson_and_all_that_it_speaks_of_are_in_sight(page: Page, server: str) -> None:
    page.goto(f"{server}/?lesson=why-seven")
    page.get_by_role("button", name="Just show me").click(timeout=LONG)
    expect(page.locator(".st-key-lesson")).to_contain_text("7 iterations")
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        for part in (".st-key-canvas_graph .rail", ".st-key-canvas_graph .canvas", ROWS):
            expect(page.locator(part).first).to_be_in_viewport(ratio=0.99)
        code = page.locator(".st-key-lesson [data-testid=stCode] pre")
        assert code.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
        assert page.evaluate(HIDDEN_BELOW) <= 2


def test_tabs_and_finder_fit_into_their_places(page: Page, server: str) -> None:
    """The tabs of the dock stand in one row beside the canvas."""
    canvas = open_sample(page, server, "decoder")
    tabs = page.locator(".st-key-dock_tabs button")
    expect(tabs).to_have_count(4)
    column, pill = page.locator(".st-key-find"), page.locator(".st-key-find .pill")
    for width in (1280, 1024, 900, 800):
        page.set_viewport_size({"width": width, "height": 800})
        tops = tabs.evaluate_all("all => all.map(e => Math.round(e.getBoundingClientRect().top))")
        assert len(set(tops)) == 1
        assert all(tabs.evaluate_all("all => all.map(e => e.scrollWidth <= e.clientWidth + 1)"))
        first, picture = tabs.first.bounding_box(), canvas.bounding_box()
        assert first is not None
        assert picture is not None
        assert first["x"] >= picture["x"] + picture["width"]
        assert pill.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
        room, box = column.bounding_box(), pill.bounding_box()
        assert room is not None
        assert box is not None
        assert box["x"] + box["width"] <= room["x"] + room["width"] + 1
    pill.click()
    expect(page.locator(".st-key-find .field")).to_be_visible()


def test_what_takes_long_says_so_and_leaves_the_screen_as_it_is(page: Page, server: str) -> None:
    page.goto(server)
    expect(page.locator(".st-key-open_decoder button")).to_be_attached(timeout=LONG)
    sign = "getComputedStyle(document.querySelector('[data-test-script-state]'), '::after').opacity"
    page.wait_for_function("document.querySelector('[data-test-script-state=notRunning]')")
    page.evaluate(
        "document.querySelector('[data-test-script-state]').dataset.testScriptState = 'running'"
    )
    assert page.evaluate(sign) == "0"  # a moment is no wait
    page.wait_for_function(f"{sign} === '1'")
    page.evaluate(
        "document.querySelectorAll('.stElementContainer').forEach((one) => { one.dataset.stale = 'true'; })"
    )
    button = page.locator(".st-key-open_decoder button")
    assert button.evaluate("(e) => e.checkVisibility()")
    assert not button.evaluate("(e) => e.checkVisibility({ opacityProperty: true })")


def test_an_example_of_a_page_is_pasted_and_runs(page: Page, server: str) -> None:
    page.goto(server)
    page.get_by_text("Paste a <layer>").click(timeout=LONG)
    text = Path(__file__).parents[2] / "engine" / "read" / "files" / "pages" / "if_8.xml"
    page.locator(".st-key-opener_text textarea").fill(text.read_text())
    page.get_by_role("button", name="Open the layer").click()
    expect(page.locator(CANVAS)).to_contain_text("if/cond", timeout=LONG)
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished", timeout=LONG)
