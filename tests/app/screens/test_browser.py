"""As a person does it, in a real chromium: open, step with the keys, inspect, go to an
iteration, open a body, come back by link.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from loopscope_samples import FOLDER
from tests.app.browsing import CANVAS, LONG, open_sample, place

pytestmark = pytest.mark.browser


def test_a_newcomer_sees_a_loop_run(page: Page, server: str) -> None:
    page.goto(server)
    page.get_by_role("button", name="Open A decoder that knows when to stop").click(timeout=LONG)
    canvas = page.locator(CANVAS)
    expect(canvas.locator(".box.current")).to_be_visible(timeout=LONG)
    transform = canvas.locator(".wrapper").evaluate("e => e.style.transform")
    for step in (1, 2, 3):
        page.keyboard.press("ArrowRight")
        expect(place(page)).to_contain_text(f"step {step}")
    expect(place(page)).to_contain_text("iteration 0 of 12")
    expect(canvas.locator(".box.current")).to_have_count(1)
    assert canvas.locator(".wrapper").count() == 1
    assert transform
    page.keyboard.press("Shift+ArrowRight")
    expect(place(page)).to_contain_text("iteration 1 of 12")
    page.keyboard.press("ArrowLeft")
    expect(place(page)).to_contain_text("earlier step")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    expect(page.locator(".st-key-dock")).to_contain_text("5 iterations")
    expect(page.locator(".st-key-dock")).to_contain_text("became false")


def test_a_click_on_a_box_shows_its_value(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "decoder", step="3")
    canvas.locator(".box", has_text="scores_of_next_word").first.click()
    side = page.locator(".st-key-dock")
    expect(side).to_contain_text("for_each_word · iteration 0 › scores_of_next_word")
    expect(canvas.locator(".box.selected")).to_have_count(1)
    expect(page).to_have_url(re.compile("node=main"))


def test_what_the_mouse_has_chosen_leaves_the_keys_to_the_run(page: Page, server: str) -> None:
    open_sample(page, server, "collatz")
    for number, choice in enumerate(("Node", "Code", "Iterations"), 1):
        page.get_by_role("radio", name=choice).click()
        expect(page.get_by_role("radio", name=choice)).to_be_checked()
        page.keyboard.press("ArrowRight")
        expect(place(page)).to_contain_text(f"step {number}")
    page.get_by_role("button", name="Steps, matrix").click()
    colour = page.locator(".st-key-whole_run_colour").get_by_role("combobox")
    colour.click()
    page.get_by_role("option", name="steps of while_not_one").click()
    expect(colour).to_have_value("steps of while_not_one")
    expect(colour).not_to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(place(page)).to_contain_text("step 2")
    page.get_by_role("radio", name="Iterations").focus()
    page.keyboard.press("ArrowRight")  # by keyboard one goes on choosing
    expect(page.get_by_role("radio", name="Node")).to_be_focused()
    expect(place(page)).to_contain_text("step 2")


def test_a_click_on_a_row_goes_to_that_iteration(page: Page, server: str) -> None:
    open_sample(page, server, "collatz")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    rows = page.locator(".st-key-loop_table_rows tbody tr")
    expect(rows).to_have_count(7)
    expect(rows.nth(2)).to_be_in_viewport(
        ratio=0.9
    )  # in the first picture: nobody has to scroll for it
    rows.nth(2).click()
    expect(place(page)).to_contain_text("iteration 2", timeout=LONG)
    expect(rows.nth(2)).to_have_class("now")
    expect(page.locator(".st-key-loop_table_rows tr.now")).to_have_count(1)


def test_the_table_of_iterations_is_one_stop_with_arrows_inside(page: Page, server: str) -> None:
    open_sample(page, server, "collatz")
    page.keyboard.press("End")
    frame = page.locator(".st-key-loop_table_rows .frame")
    expect(frame.locator("tbody tr")).to_have_count(7)
    for key in ("Tab", "Shift+Tab"):
        frame.focus()
        page.keyboard.press(key)
        expect(frame).not_to_be_focused()
    frame.focus()
    for _ in range(4):  # from the last row, which is in view
        page.keyboard.press("ArrowUp")
    expect(frame.locator("tr.aimed td").first).to_have_text("2")
    page.keyboard.press("Enter")
    expect(place(page)).to_contain_text("iteration 2", timeout=LONG)


def test_space_switches_what_keys_have_led_to(page: Page, server: str) -> None:
    open_sample(page, server, "if_add")
    page.get_by_role("radio", name="Setup").click()
    switch = page.locator(".st-key-dock [data-testid=stCheckbox] input").first
    expect(switch).to_be_attached(timeout=LONG)
    before = switch.is_checked()
    page.keyboard.press("Tab")
    switch.focus()
    page.keyboard.press("Space")
    expect(switch).to_be_checked(checked=not before)
    expect(place(page)).to_contain_text("step 0")


def test_a_click_into_the_finder_moves_its_caret(page: Page, server: str) -> None:
    open_sample(page, server, "collatz")
    page.keyboard.press("/")
    field = page.locator("input:focus")
    field.type("while")
    field.click(position={"x": 1, "y": 8})
    page.keyboard.type("x")
    expect(field).to_have_value("xwhile")


def test_a_link_reopens_the_moment(page: Page, server: str) -> None:
    open_sample(page, server, "collatz", set="seventeen", step="31")
    expect(place(page)).to_contain_text("step 31")
    page.reload()
    expect(place(page)).to_contain_text("step 31", timeout=LONG)


def test_an_upload_opens_a_model(page: Page, server: str) -> None:
    page.goto(server)
    folder: Path = FOLDER / "if_add"
    page.locator("input[type=file]").first.set_input_files(
        [folder / "model.xml", folder / "model.bin"]
    )
    expect(page.locator(".st-key-canvas_graph .box").first).to_be_visible(timeout=LONG)


def test_nothing_is_fetched_from_elsewhere(page: Page, server: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    open_sample(page, server, "decoder")
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 1")
    assert [
        url
        for url in asked
        if not url.startswith((server, "data:", "blob:", server.replace("http", "ws")))
    ] == []


def test_two_people_do_not_share_a_run(page: Page, server: str) -> None:
    open_sample(page, server, "decoder")
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 1")
    other = page.context.browser.new_page() if page.context.browser else page
    open_sample(other, server, "decoder")
    expect(place(other)).to_contain_text("step 0")
    other.close()


def test_a_long_run_can_be_stopped(page: Page, server: str) -> None:
    open_sample(page, server, "count_primes")
    page.get_by_role("radio", name="Setup").click()
    page.get_by_label(re.compile("^limit")).fill("50000000")
    page.keyboard.press("Enter")
    page.locator(".st-key-inputs_run button:visible").click()
    expect(page.get_by_role("combobox").first).to_have_value("Input: limit = 50000000")
    page.locator(".st-key-transport_run button:visible").click()
    stop = page.get_by_role("button", name="Stop").first
    expect(stop).to_be_visible(timeout=LONG)
    stop.click()
    expect(page.locator(".st-key-canvas_graph .box").first).to_be_visible(timeout=LONG)
    expect(place(page)).to_contain_text("paused")
    expect(place(page)).to_contain_text("iteration")


def test_it_steps_by_itself_until_told_to_stop(page: Page, server: str) -> None:
    open_sample(page, server, "collatz")
    button = page.locator(".st-key-transport_play button:visible")
    expect(button).to_be_visible(timeout=LONG)
    page.keyboard.press("p")
    expect(button).to_contain_text("Pause")
    expect(place(page)).to_contain_text(re.compile(r"step [4-9](?!\d)"), timeout=LONG)
    button.click()
    expect(button).to_contain_text("Play")
    page.wait_for_timeout(500)
    words = place(page).inner_text()
    page.wait_for_timeout(1500)
    assert place(page).inner_text() == words


def test_back_in_the_browser_leaves_the_model_not_the_step(page: Page, server: str) -> None:
    page.goto(server)
    page.get_by_role("button", name="Open A decoder that knows when to stop").click(timeout=LONG)
    expect(page.locator(f"{CANVAS} .box.current")).to_be_visible(timeout=LONG)
    for step in (1, 2, 3):
        page.keyboard.press("ArrowRight")
        expect(place(page)).to_contain_text(f"step {step}")
    expect(page).to_have_url(re.compile("step=3"))
    page.go_back()
    expect(
        page.get_by_role("button", name="Open A decoder that knows when to stop")
    ).to_be_attached(timeout=LONG)
    page.go_forward()
    expect(page.locator(".st-key-canvas_graph .box").first).to_be_visible(timeout=LONG)
