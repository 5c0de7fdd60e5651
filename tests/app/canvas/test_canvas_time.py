"""The canvas in time, in a real chromium: unrolled, played, slid through, and ahead of Python by
a step.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import loopscope
from loopscope_samples import FOLDER
from tests.app.browsing import LONG, choose_in_menu, open_sample, place
from tests.engine.explain.runs import begun

pytestmark = pytest.mark.browser


def test_a_loop_is_unrolled_and_drawn_once_again(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz", step="30")
    once = canvas.locator(".box").count()
    choose_in_menu(canvas, "unroll")
    copies = canvas.locator(".frame.copy")
    expect(copies).to_have_count(4, timeout=LONG)
    expect(canvas.locator(".line.back")).to_have_count(0)
    expect(canvas.locator(".line.carried").first).to_be_attached()
    expect(canvas.locator(".head.copy", has_text="Iteration 2")).to_contain_text("now")
    # Side by side in the order of time, each as high as the others.
    # Read at one moment: the picture may still be following the current operation.
    boxes = canvas.evaluate(
        "c => [...c.querySelectorAll('.frame.copy')].map(e => e.getBoundingClientRect()).map(b => [b.x, b.y, b.height])"
    )
    lefts, tops, heights = zip(*boxes, strict=True)
    assert list(lefts) == sorted(lefts)
    assert max(tops) - min(tops) < 3
    assert max(heights) - min(heights) < 3
    assert canvas.locator(".box.current").count() == 1
    canvas.locator(".head.loop [data-action=unroll]").dispatch_event("click")
    expect(copies).to_have_count(0, timeout=LONG)
    expect(canvas.locator(".box")).to_have_count(once)


def test_a_click_in_a_copy_pins_that_iteration(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz", step="30")
    choose_in_menu(canvas, "unroll")
    expect(canvas.locator(".frame.copy")).to_have_count(4, timeout=LONG)
    side = page.locator(".st-key-dock")
    for iteration, value in (("0", "10"), ("1", "5")):
        canvas.locator(
            f'.box[data-address="main/while_not_one[{iteration}]/body/if_even:0"]'
        ).dispatch_event("click")
        expect(side).to_contain_text(
            f"while_not_one · iteration {iteration} › if_even", timeout=LONG
        )
        expect(side).to_contain_text(value)
        expect(canvas.locator(".box.selected")).to_have_attribute(
            "data-address", f"main/while_not_one[{iteration}]/body/if_even"
        )
    # Drawn once again, nothing tells one iteration from another: what the cursor's holds counts.
    canvas.locator(".head.loop [data-action=unroll]").dispatch_event("click")
    expect(side).to_contain_text("while_not_one · iteration 2 › if_even", timeout=LONG)


def test_the_window_of_iterations_moves_with_the_cursor_and_by_hand(
    page: Page, server: str
) -> None:
    canvas = open_sample(page, server, "collatz")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    choose_in_menu(canvas, "unroll")
    expect(canvas.locator(".head.copy")).to_have_count(4, timeout=LONG)
    canvas.locator(".box.more").dispatch_event("click")
    expect(canvas.locator(".head.copy", has_text="Iteration 6")).to_be_attached(timeout=LONG)
    canvas.locator(".head.loop [data-action=fewer]").dispatch_event("click")
    expect(canvas.locator(".head.copy")).to_have_count(3, timeout=LONG)
    page.keyboard.press("Home")
    expect(place(page)).to_contain_text("step 0")
    for step in (1, 2, 3):
        page.keyboard.press("ArrowRight")
        expect(place(page)).to_contain_text(f"step {step}")
    expect(canvas.locator(".head.copy", has_text="Iteration 0")).to_be_attached(timeout=LONG)


def test_space_plays_and_pauses_and_python_follows(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz")
    page.keyboard.press("ArrowRight")  # the speed appears with the first step
    canvas.locator(".speed").select_option("8")
    page.keyboard.press(" ")
    expect(canvas).to_have_attribute("data-step", re.compile(r"^\d{2}$"), timeout=LONG)
    page.keyboard.press(" ")
    page.wait_for_timeout(300)
    step = canvas.get_attribute("data-step")
    expect(place(page)).to_contain_text(re.compile(rf"step {step}(?!\d)"), timeout=LONG)
    # What was only sent ahead has not happened: the debugger stands at its newest moment.
    expect(place(page)).to_contain_text("paused")
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text(f"step {int(step or 0) + 1}")


def test_sliding_along_the_inner_loop_pins_the_outer_iteration(page: Page, server: str) -> None:
    folder = FOLDER / "count_primes"
    with np.load(folder / "inputs" / "up_to_30.npz", allow_pickle=False) as arrays:
        debugger = loopscope.Debugger(
            loopscope.read_model(folder / "model.xml"), {key: arrays[key] for key in arrays.files}
        )
    step = debugger.seek("main/for_each_candidate[21]/body/try_each_divisor[2]/body").step
    canvas = open_sample(page, server, "count_primes", set="up_to_30", step=str(step))
    expect(place(page)).to_contain_text(
        re.compile(r"for_each_candidate\W*iteration 21\b"), timeout=LONG
    )
    rail = canvas.locator(".rail")
    expect(rail).to_have_count(2, timeout=LONG)
    inner = rail.nth(1).bounding_box()
    assert inner is not None
    page.mouse.move(inner["x"] + inner["width"] - 2, inner["y"] + 12)
    page.mouse.down()
    page.mouse.move(inner["x"] + 1, inner["y"] + 12, steps=8)
    page.mouse.up()
    expect(place(page)).to_contain_text(
        re.compile(r"try_each_divisor\W*iteration 0\b"), timeout=LONG
    )
    expect(place(page)).to_contain_text(re.compile(r"for_each_candidate\W*iteration 21\b"))
    expect(place(page)).to_contain_text("earlier step")


def test_a_key_finds_its_picture_in_the_browser(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz", step="20")
    expect(canvas).to_have_attribute("data-step", "20", timeout=LONG)
    page.wait_for_timeout(1500)  # long enough a rest for the steps around to come
    page.evaluate("""() => {
      const canvas = document.querySelector(".st-key-canvas_graph").querySelector("*");
      window.slow = WebSocket.prototype.send;
      WebSocket.prototype.send = function () {};
    }""")
    page.keyboard.press("ArrowRight")
    expect(canvas).to_have_attribute("data-step", "21", timeout=2000)
    page.evaluate("() => { WebSocket.prototype.send = window.slow; }")
    # Python did not hear of it then: its word counts, whether it is told later or not.
    page.wait_for_timeout(4000)
    expect(place(page)).to_contain_text(
        re.compile(rf"step {canvas.get_attribute('data-step')}(?!\d)"), timeout=LONG
    )


def test_no_key_is_lost_however_fast_they_come(page: Page, server: str) -> None:
    """Press keys before the pictures of the next steps have come, and after a rest."""
    canvas = open_sample(page, server, "collatz", step="20")
    expect(canvas).to_have_attribute("data-step", "20", timeout=LONG)
    for rest, there, back in ((0, 32, 27), (1500, 39, 34)):
        page.wait_for_timeout(rest)
        for key, times, step in (("ArrowRight", 12, there), ("ArrowLeft", 5, back)):
            for _ in range(times):
                page.keyboard.press(key, delay=15)
                page.wait_for_timeout(15)
            expect(place(page)).to_contain_text(re.compile(rf"step {step}(?!\d)"), timeout=LONG)
        expect(place(page)).to_contain_text("earlier step")


def test_keys_of_all_kinds_go_on_from_each_other(page: Page, server: str) -> None:
    """Also when the next one comes before the browser has heard what the one before has led to."""
    canvas = open_sample(page, server, "collatz", step="20")
    expect(canvas).to_have_attribute("data-step", "20", timeout=LONG)
    for keys, step in (
        ("ArrowRight ArrowRight Home", 0),
        ("End Home ArrowRight ArrowRight ArrowRight", 3),
        ("Home ArrowRight", 1),
    ):
        for key in keys.split():
            page.keyboard.press(key)
            page.wait_for_timeout(300 if key in ("Home", "End") else 0)
        expect(place(page)).to_contain_text(re.compile(rf"step {step}(?!\d)"), timeout=LONG)
        expect(canvas).to_have_attribute("data-step", str(step), timeout=LONG)


MOVES = {
    "ArrowRight": loopscope.Debugger.step,
    "ArrowLeft": loopscope.Debugger.step_back,
    "ArrowDown": loopscope.Debugger.step_into,
    "ArrowUp": loopscope.Debugger.step_out,
    "o": loopscope.Debugger.step_over,
    "Shift+ArrowRight": loopscope.Debugger.next_iteration,
    "Shift+ArrowLeft": loopscope.Debugger.previous_iteration,
    "End": loopscope.Debugger.run,
}


def test_no_move_is_lost_however_fast_they_come(page: Page, server: str) -> None:
    debugger = begun("collatz")
    canvas = open_sample(page, server, "collatz")
    expect(canvas).to_have_attribute("data-step", "0", timeout=LONG)
    for keys in (
        "ArrowRight ArrowRight ArrowDown o ArrowRight ArrowLeft ArrowUp ArrowLeft ArrowLeft",
        "Shift+ArrowRight Shift+ArrowRight Shift+ArrowRight Shift+ArrowRight Shift+ArrowRight",
        "End Shift+ArrowLeft Shift+ArrowLeft ArrowRight o",
    ):
        for key in keys.split():
            MOVES[key](debugger)
            page.keyboard.press(key, delay=10)
        step = debugger.cursor.step
        expect(place(page)).to_contain_text(re.compile(rf"step {step}(?!\d)"), timeout=LONG)
        expect(canvas).to_have_attribute("data-step", str(step), timeout=LONG)


def test_a_move_that_was_not_heard_is_told_again(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz")
    expect(canvas).to_have_attribute("data-step", "0", timeout=LONG)
    page.evaluate(
        "() => { window.slow = WebSocket.prototype.send; WebSocket.prototype.send = () => {}; }"
    )
    page.keyboard.press("End")
    page.wait_for_timeout(300)
    page.evaluate("() => { WebSocket.prototype.send = window.slow; }")
    expect(place(page)).to_contain_text("finished", timeout=LONG)


def test_a_step_that_was_not_heard_is_told_again(page: Page, server: str) -> None:
    """As when a word is lost between two drawings of a page: the picture is there at once, but
    Python knows nothing of it.
    """
    canvas = open_sample(page, server, "collatz")
    expect(canvas).to_have_attribute("data-step", "0", timeout=LONG)
    page.wait_for_timeout(1500)
    page.evaluate("""() => {
      const canvas = globalThis[Symbol.for("loopscope.canvas")].canvases.get("canvas_graph");
      const tell = canvas.setState;
      window.lost = 0;
      canvas.setState = () => { window.lost += 1; canvas.setState = tell; };
    }""")
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 1")
    assert page.evaluate("window.lost") == 1
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 2")
    expect(canvas).to_have_attribute("data-step", "2")


def test_buttons_may_be_pressed_as_fast_as_keys(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz")
    expect(canvas).to_have_attribute("data-step", "0", timeout=LONG)
    for _ in range(6):
        page.get_by_role("button", name="Step").first.click(delay=0)
    expect(place(page)).to_contain_text(re.compile(r"step 6(?!\d)"), timeout=LONG)


def test_keys_end_where_the_run_ends(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "if_add")
    expect(canvas).to_have_attribute("data-step", "0", timeout=LONG)
    for _ in range(40):
        page.keyboard.press("ArrowRight", delay=10)
    expect(place(page)).to_contain_text("finished", timeout=LONG)
    expect(canvas).to_have_attribute("data-step", "3", timeout=LONG)
    page.keyboard.press("ArrowLeft")
    expect(place(page)).to_contain_text("earlier step", timeout=LONG)


def test_a_folded_loop_shows_its_line(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    canvas.locator(".head.loop [data-action=fold]").dispatch_event("click")
    expect(canvas.locator(".box.folded .spark.on .spark-line")).to_have_attribute(
        "d", re.compile("^M.*L"), timeout=LONG
    )
    expect(canvas.locator(".box.folded")).to_contain_text("7 iterations")
