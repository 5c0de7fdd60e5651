"""A run as one HTML file in a real chromium, offline: what a person does with it, on a desk and
on a phone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

import loopscope
from loopscope.explain import iteration_matrix, listing, step_of_cell
from loopscope.view import default_folding, overlay_at, read_node_data, unrolling
from loopscope_app.describe.code_moment import code_moment
from loopscope_app.page import page_of, shared_assets
from loopscope_app.page.paged_pictures import pictures
from tests.app import hostile
from tests.app.accessibility import rules_of_axe, serious
from tests.app.page.finished_runs import run_of

pytestmark = pytest.mark.browser


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    """A page without a network; an error in its scripts, or something that its policy forbids,
    fails the test.
    """
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, offline=True, color_scheme="dark"
    )
    page = context.new_page()
    wrong: list[str] = []
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda message: (
            wrong.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    yield page
    context.close()
    assert not wrong


def opened(page: Page, folder: Path, document: str) -> None:
    (folder / "page.html").write_text(document, encoding="utf-8")
    page.goto((folder / "page.html").as_uri())
    expect(page.locator("html[data-opened]")).to_be_attached(timeout=20_000)
    expect(page.locator("#canvas .box").first).to_be_visible()


def wires(page: Page, count: int) -> list[str]:
    """The values that stand on wires, once there are so many."""
    shown = page.locator("#canvas .chip.value.on .chip-text")
    expect(shown).to_have_count(count)
    return sorted(shown.all_text_contents())


def test_a_page_steps_plays_and_slides_as_the_debugger(offline: Page, tmp_path: Path) -> None:
    debugger = run_of("collatz")
    debugger.seek(12)
    opened(offline, tmp_path, page_of(debugger, title="collatz", note="look"))
    view = pictures(debugger.model, default_folding(debugger.model), "main").views[0]
    place = offline.locator("#place")

    def agrees(step: int) -> None:
        debugger.seek(step)
        expect(place).to_contain_text(f"Step {step} of {debugger.steps}")
        overlay = overlay_at(debugger, view)
        expect(offline.locator("#canvas .canvas")).to_have_attribute(
            "data-current", overlay.current
        )
        wanted = sorted(text for texts in overlay.values.values() for text in texts if text)
        assert wires(offline, len(wanted)) == wanted

    agrees(12)
    offline.keyboard.press("ArrowRight")
    agrees(13)
    offline.keyboard.press("ArrowLeft")
    offline.keyboard.press("ArrowLeft")
    agrees(11)
    for name, move in (
        ("Over", debugger.step_over),
        ("Iteration »", debugger.next_iteration),
        ("«", debugger.previous_iteration),
    ):
        debugger.seek(11)
        offline.keyboard.press("Home")
        expect(place).to_contain_text("Step 0 ")
        for _ in range(11):
            offline.keyboard.press("ArrowRight")
        expect(place).to_contain_text("Step 11 ")
        offline.get_by_role("button", name=name, exact=True).click()
        agrees(move().step)
    offline.get_by_role("button", name="End ⇥").click()
    agrees(debugger.steps)
    offline.keyboard.press("Home")
    agrees(0)
    offline.get_by_role("button", name="Play").click()
    expect(place).to_contain_text(re.compile(r"Step ([3-9]|[1-6]\d) "), timeout=5000)
    offline.get_by_role("button", name="Pause").click()
    rail = offline.locator(".rail").first.bounding_box()
    assert rail is not None
    offline.mouse.click(rail["x"] + rail["width"] / 2, rail["y"] + rail["height"] / 2)
    agrees(debugger.steps // 2)
    offline.wait_for_timeout(3500)  # longer than the canvas waits for a word that confirms
    agrees(debugger.steps // 2)


def test_a_linked_page_steps_when_it_is_opened_as_a_file(offline: Page, tmp_path: Path) -> None:
    assets = tmp_path / "shared files"
    assets.mkdir()
    for name, content in shared_assets().items():
        (assets / name).write_text(content, encoding="utf-8")
    opened(offline, tmp_path, page_of(run_of("gcd"), title="gcd", assets="shared%20files"))
    offline.keyboard.press("ArrowRight")
    expect(offline.locator("#place")).to_contain_text("Step 1 of ")


def test_a_row_of_the_table_leads_there_and_a_box_tells_its_value(
    offline: Page, tmp_path: Path
) -> None:
    debugger = run_of("collatz")
    opened(offline, tmp_path, page_of(debugger, title="collatz"))
    offline.locator("tr[data-moment]").nth(2).click()
    debugger.seek("main/while_not_one[2]")
    expect(offline.locator("tr.now td").first).to_have_text("2")
    expect(offline.locator("#place")).to_contain_text("iteration 2")
    offline.locator("#canvas .box", has_text="start_at_all").first.click()
    expect(offline.locator("#chosen")).to_contain_text("start_at_all · true")
    expect(offline.locator("#canvas .canvas")).to_have_attribute("data-theme", "dark")
    offline.emulate_media(color_scheme="light")
    expect(offline.locator("#canvas .canvas")).to_have_attribute("data-theme", "light")
    offline.emulate_media(media="print")  # the whole picture, and no controls
    expect(offline.locator("nav")).to_be_hidden()
    expect(offline.locator("#canvas .tools")).to_be_hidden()
    paper = offline.locator("body").bounding_box()
    tape = offline.locator("#canvas .bar-of-time").bounding_box()
    assert paper is not None
    assert tape is not None
    for box in offline.locator("#canvas .box").all():
        area = box.bounding_box()
        assert area is not None
        assert 0 <= area["x"] <= area["x"] + area["width"] <= paper["x"] + paper["width"]
        assert area["y"] + area["height"] <= tape["y"]


def test_a_page_folds_and_opens_and_a_folded_loop_says_how_it_ended(
    offline: Page, tmp_path: Path
) -> None:
    debugger = run_of("collatz")
    opened(offline, tmp_path, page_of(debugger, title="collatz"))
    canvas = offline.locator("#canvas")
    loop = canvas.locator('.head.loop [data-action="fold"]')
    boxes = canvas.locator(".box").count()
    offline.get_by_role("button", name="End ⇥").click()
    loop.click()
    folded = canvas.locator(".box.folded")
    expect(folded).to_have_count(1)
    assert canvas.locator(".box").count() < boxes
    expect(folded).to_contain_text("7 iterations, condition became")
    offline.keyboard.press("Home")
    for _ in range(30):
        offline.keyboard.press("ArrowRight")
    expect(offline.locator("#place")).to_contain_text("Step 30 ")
    expect(folded).to_have_class(re.compile("current"))
    expect(folded).to_contain_text("iteration 2")
    folded.locator('[data-action="unfold"]').click()
    expect(canvas.locator(".box")).to_have_count(boxes)
    debugger.seek(30)
    expect(canvas.locator(".box.current")).to_have_attribute(
        "data-address", re.sub(r"\[\d+\]", "", debugger.cursor.address)
    )
    for number, branch in enumerate(("then", "else"), 1):
        canvas.locator('[data-do="fit"]').click()
        canvas.locator(f'.head.{branch} [data-action="fold"]').click()
        expect(canvas.locator(".box.folded")).to_have_count(number)


def test_code_matrix_and_tape_are_in_step_and_lead_to_moments(
    offline: Page, tmp_path: Path
) -> None:
    debugger = run_of("collatz")
    opened(offline, tmp_path, page_of(debugger, title="collatz"))
    offline.locator("#code > summary").click()
    code = listing(debugger.plan)
    debugger.seek("main/while_not_one[2]/body/floor_mod")
    tape = offline.locator(".tape").first
    tape.locator("i").nth(2).click()
    expect(tape.locator("i.here")).to_have_attribute("title", "iteration 2: else")
    expect(offline.locator("#place")).to_contain_text("iteration 2")
    debugger.seek("main/while_not_one[2]")
    (line,) = code_moment(debugger, code, "")["current"]
    now = offline.locator("#code .row.now")
    expect(now).to_have_count(1)
    expect(now.locator("code")).to_have_text(code.lines[line].text)
    offline.locator(".matrix > summary").click()
    found = iteration_matrix(debugger, "main/while_not_one")
    row = next(k for k, one in enumerate(found.rows) if one.name == "floor_mod")
    chart = offline.locator(".matrix canvas")
    box = chart.bounding_box()
    assert box is not None
    # The last iteration; a lane and the gap below it have 25 pixels.
    chart.click(position={"x": box["width"] - 10, "y": 2 + 25 * row + 11})
    step = step_of_cell(debugger, found, found.rows[row], 6)
    expect(offline.locator("#place")).to_contain_text(f"Step {step} ")
    expect(offline.locator("#chosen")).to_contain_text("floor_mod")
    expect(offline.locator("#code .row.chosen code")).to_contain_text("floor_mod = ")
    offline.locator("#code .row", has_text="start_at_all = ").click()
    expect(offline.locator("#chosen")).to_contain_text("start_at_all")


def test_hostile_names_do_nothing(offline: Page, tmp_path: Path) -> None:
    model = loopscope.read_model(hostile.write(tmp_path, "collatz"))
    debugger = loopscope.Debugger(model, [3])
    debugger.run()
    words = "\n".join(one for one in hostile.HOSTILE if len(one) < 100)
    opened(offline, tmp_path, page_of(debugger, title=words, note=words))
    offline.keyboard.press("ArrowRight")
    for one in offline.locator("details:not([open]) > summary").element_handles():
        one.click()
    offline.locator(".matrix canvas").first.hover()
    offline.locator("#canvas .box").first.hover()
    offline.locator('#canvas [data-do="fit"]').click()
    offline.locator('#canvas .head.loop [data-action="fold"]').click()
    expect(offline.locator("#canvas .box.folded").first).to_be_visible()
    assert offline.evaluate("() => window.hacked") is None
    assert offline.evaluate("() => document.querySelectorAll('script').length") == 3
    # The curves of tapes are pictures of ours.
    assert (
        offline.locator(
            '#said img:not([src^="data:image/svg+xml;base64,"]), header img, #code img'
        ).count()
        == 0
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_serious_is_found_by_axe(browser: Browser, tmp_path: Path, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, offline=True)
    page = context.new_page()
    opened(page, tmp_path, page_of(run_of("collatz"), title="collatz", note="look"))
    rules = rules_of_axe()
    nothing_serious(page, rules)
    for one in page.locator("details:not([open]) > summary").element_handles():
        one.click()
    page.locator("tr[data-moment]").nth(3).click()
    expect(page.locator("tr.now")).to_have_count(1)
    nothing_serious(page, rules)
    context.close()


def nothing_serious(page: Page, rules: str) -> None:
    schemes: tuple[Literal["light", "dark"], ...] = ("dark", "light")
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("#canvas .canvas")).to_have_attribute("data-theme", scheme)
        assert serious(page, rules) == [], scheme


def test_on_a_phone_everything_is_within_the_width_and_works_by_touch(
    browser: Browser, tmp_path: Path
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, offline=True, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    opened(page, tmp_path, page_of(run_of("collatz"), title="collatz", note="look at " + "a" * 200))
    for one in page.locator("details:not([open]) > summary").element_handles():
        one.tap()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    rail = page.locator("#canvas .rail").first.bounding_box()
    assert rail is not None
    assert rail["width"] > 150
    page.get_by_role("button", name="Step ›").tap()
    expect(page.locator("#place")).to_contain_text("Step 1 ")
    page.locator(".matrix canvas").tap(position={"x": 380 - 40, "y": 14})
    expect(page.locator(".tape i.here")).to_have_count(1)
    transport = page.get_by_role("navigation").bounding_box()
    assert transport is not None
    assert (
        0 <= transport["y"] < 844 - transport["height"]
    )  # also beside the matrix, far below the picture
    page.locator('#canvas [data-do="fit"]').tap()
    page.locator('#canvas .head.loop [data-action="fold"]').tap()
    expect(page.locator("#canvas .box.folded")).to_have_count(1)
    context.close()


def test_arrow_keys_scroll_a_table_that_keys_have_led_to(offline: Page, tmp_path: Path) -> None:
    offline.set_viewport_size({"width": 360, "height": 800})
    opened(offline, tmp_path, page_of(run_of("collatz"), title="collatz"))
    table = offline.locator(".wide")
    offline.locator("#said details.loop > summary").focus()
    offline.keyboard.press("Tab")
    expect(table).to_be_focused()
    for _ in range(5):
        offline.keyboard.press("ArrowRight")
    expect(offline.locator("#place")).to_contain_text("Step 0 ")
    for _ in range(100):  # the page's policy lets nobody wait for an expression
        if table.evaluate("(one) => one.scrollLeft > 0"):
            break
        offline.wait_for_timeout(50)
    assert table.evaluate("(one) => one.scrollLeft > 0")
    offline.locator("tr[data-moment]").nth(1).click()
    expect(offline.locator("#place")).to_contain_text("iteration 1")
    before = offline.locator("#place").text_content()
    offline.keyboard.press("ArrowRight")
    expect(offline.locator("#place")).not_to_have_text(str(before))


def test_others_data_are_colours_with_a_legend_by_iteration(offline: Page, tmp_path: Path) -> None:
    debugger = run_of("collatz")
    place = "main/while_not_one[{}]/body/floor_mod"
    data = json.dumps(
        {place.format(0): 0, place.format(1): 70} | {"main/start_at_all": 35}
    ).encode()
    opened(
        offline,
        tmp_path,
        page_of(debugger, title="c", node_data=read_node_data(data, debugger.model, "load of <b>")),
    )
    expect(offline.locator("#canvas .scale")).to_contain_text("load of <b>")
    box = offline.locator('#canvas .box[data-address="main/while_not_one/body/floor_mod"]')
    for row, level in ((0, 1), (1, 8)):
        offline.locator("tr[data-moment]").nth(row).click()
        expect(box).to_have_class(re.compile(rf"\bnumber-{level}\b"))
    offline.locator('#canvas [data-do="fit"]').click()
    offline.locator('#canvas .head.loop [data-action="fold"]').click()
    expect(offline.locator("#canvas .box.folded")).to_have_class(re.compile(r"\btint\b"))


def test_an_unrolled_loop_shows_the_iterations_around_the_cursor(
    offline: Page, tmp_path: Path
) -> None:
    debugger = run_of("collatz")
    folding = unrolling.unroll(
        debugger.model, default_folding(debugger.model), "main/while_not_one", None, 2
    )
    opened(offline, tmp_path, page_of(debugger, title="collatz", folding=folding))
    rows, canvas = offline.locator("tr[data-moment]"), offline.locator("#canvas .canvas")

    def seen(*iterations: int) -> None:
        for one in iterations:
            expect(
                offline.locator(f'#canvas [data-address="main/while_not_one[{one}]"]').first
            ).to_be_attached()

    seen(0, 1)
    for row, iterations in ((3, (2, 3)), (6, (5, 6)), (4, (4, 5)), (0, (0, 1))):
        rows.nth(row).click()
        expect(offline.locator("#place")).to_contain_text(f"iteration {row} ")
        seen(*iterations)
        expect(canvas).not_to_have_attribute("data-current", "")
    offline.keyboard.press("End")
    seen(0, 1)  # behind the loop, what is in sight stays
    offline.keyboard.press("Home")
    offline.get_by_role("button", name="Play").click()
    expect(offline.locator("#place")).to_contain_text("iteration 2 ", timeout=60_000)
    seen(2, 3)
