"""Runs that are compared: all of them stop at once, and one that fails is compared as far as it
came.
"""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import loopscope
from loopscope import builder
from loopscope_app.state.background_run import Comparing
from loopscope_samples import FOLDER
from tests.app.browsing import LONG, open_sample


def test_a_word_to_stop_ends_the_first_run_and_the_others_never_begin() -> None:
    model = loopscope.read_model(FOLDER / "count_primes" / "model.xml")
    runs = [loopscope.Debugger(model, [np.asarray(50_000_000)]) for _ in range(2)]
    compared: list[str] = []
    comparing = Comparing(runs, lambda _: compared.append("both"))
    while comparing.iterations < 100:
        time.sleep(0.05)
    comparing.stop()
    assert comparing.done(10)
    assert (comparing.error, compared, runs[1].steps) == (None, [], 0)
    assert [one.state for one in runs] == ["paused", "paused"]


def test_a_run_that_fails_does_not_keep_the_other_from_being_made() -> None:
    graph = builder.Graph("part")
    wanted = graph.parameter("wanted", "i64", [1])
    model = graph.model(
        {"part": builder.ops.reshape(graph.constant([1, 2, 3]), wanted, special_zero=False)}
    )
    runs = [loopscope.Debugger(model, [np.asarray([length])]) for length in (2, 3)]
    compared: list[bool] = []
    comparing = Comparing(runs, lambda stopped: compared.append(stopped()))
    assert comparing.done(10)
    assert compared == [False]
    assert [one.state for one in runs] == ["failed", "finished"]
    assert comparing.error is None


@pytest.mark.browser
def test_a_comparison_is_stopped_by_a_click(page: Page, server: str) -> None:
    open_sample(page, server, "count_primes", tab="setup")
    page.get_by_label(re.compile("^limit")).fill("50000000")
    page.keyboard.press("Enter")
    page.locator(".st-key-inputs_run button:visible").click()
    expect(page.get_by_role("combobox").first).to_have_value(re.compile("^Input: limit = "))
    page.get_by_role("radio", name="Compare").click()  # other inputs are compared at once
    progress = page.locator(".st-key-progress")
    expect(progress).to_contain_text("Comparing", timeout=LONG)
    expect(progress).to_contain_text("iterations")
    page.get_by_role("button", name="Stop").first.click()
    expect(page.locator(".st-key-view_page")).to_contain_text(
        "The comparison was stopped", timeout=5_000
    )
    expect(page.get_by_text("Both runs start at the beginning")).to_be_visible()
    expect(page.locator(".headline")).to_have_count(0)


@pytest.mark.browser
def test_what_is_waited_for_after_the_runs_is_said(page: Page, server: str) -> None:
    """Not how many iterations per second there were: none are run any more."""
    page.goto(f"{server}/?model=sample:swap&view=compare&with=runtime")
    expect(page.get_by_text("OpenVINO runs the model on the same inputs")).to_be_visible(
        timeout=LONG
    )
    page.locator(".st-key-compare_run button").click()
    progress = page.locator(".st-key-progress")
    expect(progress).to_contain_text(
        "the run here is done, OpenVINO is running the model", timeout=LONG
    )
    expect(progress).not_to_contain_text("per second")
    expect(page.locator(".headline")).to_contain_text(
        "First difference: swap_each_round · iteration 1 › right", timeout=LONG
    )
    page.get_by_role("radio", name="Performance").click()
    expect(page.get_by_text("Loops and branches in OpenVINO")).to_be_visible(timeout=LONG)
