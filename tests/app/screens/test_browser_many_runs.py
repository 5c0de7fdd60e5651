"""The screen of many runs, as a user meets it: a grid, a click on a bar, the debugger on that
input; a stop; an address.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import loopscope
from loopscope import builder
from tests.app.browsing import LONG, place

pytestmark = pytest.mark.browser


def button(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key} button").first


def words(page: Page) -> Locator:
    return page.locator("[class*='st-key-many_words'] input")


def bars(page: Page) -> Locator:
    """Of the histogram, from the least count on."""
    return page.locator("[class*='st-key-many_chart_']").first.locator(
        "[aria-roledescription='bar']"
    )


def test_default_inputs_run_at_once_and_a_click_opens_a_finished_run(
    page: Page, server: str
) -> None:
    page.goto(f"{server}/?model=sample:collatz")
    page.get_by_role("radio", name="Many runs").click(force=True, timeout=LONG)
    expect(page.get_by_text("200 runs in")).to_be_visible(timeout=LONG)
    words(page).fill("number=6..40")
    button(page, "many_run").click()
    expect(page.get_by_text("35 runs in")).to_be_visible(timeout=LONG)
    expect(page.locator(".headline")).to_contain_text("111 for number = 27")
    expect(page).to_have_url(re.compile("runs=number"))
    bars(page).first.click(timeout=LONG)
    expect(place(page)).to_be_visible(timeout=LONG)
    expect(page).to_have_url(re.compile(r"set=number\+%3D\+\d+"))
    expect(page.get_by_text("finished").first).to_be_visible(timeout=LONG)
    page.go_back()
    expect(page.get_by_text("35 runs in")).to_be_visible(timeout=LONG)


def test_one_threshold_drives_sentence_pictures_and_table(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=sample:collatz&view=many&runs=number%3D1..50")
    expect(page.get_by_text("50 runs in")).to_be_visible(timeout=LONG)
    field = page.get_by_role("spinbutton", name="Threshold")
    field.fill("100")
    page.keyboard.press("Enter")
    expect(page.locator(".headline")).to_contain_text("4 of 50 runs are above 100", timeout=LONG)
    expect(page.get_by_text("Above 100 · 4").first).to_be_visible(timeout=LONG)
    expect(page.get_by_text("above 100").first).to_be_attached()  # in the legend of the pictures


def test_an_address_says_what_to_run(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=sample:collatz&view=many&runs=number%3D1..50")
    expect(page.get_by_text("50 runs in")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("200 of")).to_have_count(0)
    page.get_by_role("textbox", name="Only runs where").fill("iterations main/while_not_one > 100")
    page.keyboard.press("Enter")
    expect(page.get_by_text("4 of 50 runs")).to_be_visible(timeout=LONG)


def test_runs_that_take_long_are_stopped_and_kept(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=sample:lstm_melody&view=many&runs=random:100000")
    button(page, "many_stop").click(timeout=LONG)
    expect(page.get_by_text(re.compile(r"of 100,000 runs in .*it was stopped"))).to_be_visible(
        timeout=LONG
    )
    expect(page.locator("[class*='st-key-many_table'] canvas").first).to_be_visible(timeout=LONG)


def test_a_file_that_is_uploaded_is_run(page: Page, server: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "numbers.npz", number=np.array([27, 97]))
    page.goto(f"{server}/?model=sample:collatz&view=many")
    page.get_by_role("radio", name="File").click(timeout=LONG)
    page.locator("[class*='st-key-many_file'] input[type=file]").first.set_input_files(
        tmp_path / "numbers.npz"
    )
    expect(page.get_by_text("2 runs in")).to_be_visible(timeout=LONG)
    page.locator("[class*='st-key-many_file'] input[type=file]").first.set_input_files(
        {"name": "numbers.csv", "mimeType": "text/csv", "buffer": b"wrong\n3\n"}
    )
    expect(page.get_by_text("means no input")).to_be_visible(timeout=LONG)


def test_files_of_one_run_each_are_run(page: Page, server: str, tmp_path: Path) -> None:
    """A folder of them, as the command takes it."""
    for name, number in (("b", 97), ("a", 27), ("c", 6)):
        np.savez(tmp_path / f"{name}.npz", number=np.array(number))
    page.goto(f"{server}/?model=sample:collatz&view=many")
    page.get_by_role("radio", name="File").click(timeout=LONG)
    page.locator("[class*='st-key-many_file'] input[type=file]").first.set_input_files(
        sorted(tmp_path.glob("*.npz"))
    )
    expect(page.get_by_text("3 runs in")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("These runs are on 3 files, from a.npz to c.npz.")).to_be_visible()
    expect(page.get_by_text("118 for number = 97")).to_be_visible()


def test_random_inputs_of_open_lengths_have_those_of_the_run(
    page: Page, server: str, tmp_path: Path
) -> None:
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [-1])
    total = builder.ops.ReduceSum(x, [0], keep_dims=False)
    last = builder.while_loop(lambda i: i < total, lambda i: i + 1.0, [np.float32(0)])[0]
    loopscope.write_model(graph.model({"last": last}), tmp_path / "open.xml")
    page.goto(f"{server}/?model={tmp_path / 'open.xml'}&view=many")
    page.get_by_role("radio", name="Random").click(timeout=LONG)
    expect(words(page)).to_have_value(
        re.compile(r"random:1000 seed=0 x\[\d+\]=normal\(0,1\)"), timeout=LONG
    )
    button(page, "many_run").click()
    expect(page.get_by_text("1,000 runs in")).to_be_visible(timeout=LONG)


def test_a_narrower_type_changes_the_branch_of_some(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=sample:early_exit&view=many&runs=random:400 enough%3D0.4..1")
    expect(page.get_by_text("400 runs in")).to_be_visible(timeout=LONG)
    expect(
        page.get_by_text(
            re.compile("of 400 runs are above 0 in then early_exit. Most of them where")
        )
    ).to_be_visible()
    page.locator(".st-key-many_compare_with button").first.click()
    button(page, "many_round_bf16").click()
    expect(
        page.get_by_text(re.compile("of 400 inputs change a count, an ending or a branch"))
    ).to_be_visible(timeout=LONG)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="then early_exit").click()
    expect(place(page)).to_be_visible(timeout=LONG)


def test_a_lesson_runs_its_data_set_and_opens_one_of_it(page: Page, server: str) -> None:
    page.goto(f"{server}/?lesson=not-enough")
    button(page, "trial_many").click(timeout=LONG)
    expect(page.get_by_text("2,000 runs in")).to_be_visible(timeout=4 * LONG)
    longest = re.compile("24 iterations, first_word = 6")
    # Streamlit shows the previous line, disabled, beside the new one for a moment.
    page.get_by_role("button", name=longest, disabled=False).click()
    expect(page.locator(".st-key-lesson")).to_be_visible(timeout=LONG)
