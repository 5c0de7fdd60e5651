"""Runs that take long: one that a link has reopened goes on to its end by itself; one that is
asked for leaves the picture where it is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope import builder
from loopscope.ir.model import Model
from loopscope_app.state.background_run import Onward
from tests.app.browsing import LONG, place
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text, press, step_of

Visit = Callable[..., AppTest]
MANY = 400_000_000
"""Iterations that take longer than any test, so long as nobody stops them."""


def counting(iterations: int) -> Model:
    graph = builder.Graph("counting")
    x = graph.parameter("x", "f32", [])
    (last,) = builder.for_loop(iterations, lambda i, v: (v * 0.5 + 1.0,), [x])
    return graph.model(last)


def begun(iterations: int, step: int) -> loopscope.Debugger:
    debugger = loopscope.Debugger(counting(iterations), [np.float32(0)])
    debugger.seek(step)
    return debugger


def saved(folder: Path, iterations: int) -> str:
    loopscope.write_model(counting(iterations), folder / "counting.xml")
    return str(folder / "counting.xml")


def test_it_goes_on_between_two_looks_and_the_cursor_stays() -> None:
    onward = Onward(debugger := begun(MANY, 58))
    onward.halt()  # of what has not begun
    reached = [debugger.steps]
    for patience in (0.0, 0.05, 0.05):
        for _ in range(100):  # on a busy machine what goes on may not begin before it is halted
            onward.go_on(patience)
            time.sleep(0.05)
            onward.halt()
            assert (debugger.cursor.step, debugger.state, onward.over) == (58, "paused", False)
            if debugger.steps > reached[-1]:
                break
        reached.append(debugger.steps)
    assert reached == sorted(set(reached))
    debugger.step()
    assert debugger.cursor.step == 59
    debugger.seek(reached[-1])
    debugger.step()  # no word to stop is left for it
    assert debugger.cursor.step == reached[-1] + 1


@pytest.mark.parametrize("iterations", [0, 1, 3000])
def test_its_end_is_the_end_of_the_run(iterations: int) -> None:
    onward, other = Onward(debugger := begun(iterations, 2)), begun(iterations, 2)
    onward.go_on(30)
    other.run()
    assert (onward.over, debugger.state, debugger.steps) == (True, "finished", other.steps)
    assert debugger.cursor.step == min(2, other.steps)
    assert np.array_equal(debugger.result.outputs[0], other.result.outputs[0])


def test_a_breakpoint_ends_it() -> None:
    debugger = begun(MANY, 5)
    debugger.breakpoints.add("main/for[1000]/body")
    onward = Onward(debugger)
    onward.go_on(30)
    assert (onward.over, debugger.state, debugger.cursor.step) == (True, "paused", 5)
    assert debugger.run().address.startswith("main/for[1000]/body")


def test_it_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopscope_app.state.background_run.MOST_SECONDS", 0.1)
    onward = Onward(debugger := begun(MANY, 5))
    onward.go_on(30)
    assert (onward.over, debugger.state, debugger.cursor.step) == (True, "paused", 5)
    assert debugger.steps > 100


@pytest.mark.parametrize(
    ("address", "total"),
    [
        ({"model": "sample:collatz", "set": "seventeen"}, "step 31 of "),
        ({"lesson": "while"}, "step 31<"),
    ],
)
def test_a_link_runs_on_to_the_end_but_a_lesson_keeps_it_for_itself(
    opened: Visit, address: dict[str, str], total: str
) -> None:
    app = opened(step="31", **address)
    assert step_of(app) == 31
    assert total in page_text(app)
    assert (app.session_state["loopscope"].run.debugger.state == "finished") == ("model" in address)


def test_the_first_picture_does_not_wait_and_what_is_done_halts_the_run(
    opened: Visit, tmp_path: Path
) -> None:
    app = opened(model=saved(tmp_path, MANY), step="58")
    assert step_of(app) == 58
    assert "running on" in page_text(app)
    session = app.session_state["loopscope"]
    first = session.run.debugger.steps
    session.run.onward.go_on(0.05)  # as the page does by itself, some times a second
    assert step_of(press(app, "step")) == 59
    assert session.run.debugger.steps > first
    press(app, "restart")
    assert step_of(app) == 0
    session.run.debugger = None  # nothing runs on for nobody
    assert session.run.onward is None


def test_the_picture_stays_while_a_long_run_is_under_way(opened: Visit, tmp_path: Path) -> None:
    app = opened(model=saved(tmp_path, MANY))
    press(app, "step", "step")
    before: dict[str, Any] = sent(app, "canvas_graph_overlay")
    press(app, "run")
    assert "Running" in page_text(app)
    assert sent(app, "canvas_graph_overlay") == before
    app.button("progress_stop").click().run()
    for _ in range(100):
        if app.session_state["loopscope"].run.running is None:
            break
        time.sleep(0.05)
        app.run()
    assert "paused" in page_text(app)
    assert step_of(app) > 100
    assert sent(app, "canvas_graph_overlay")["step"] == step_of(app)


@pytest.mark.browser
def test_a_long_run_moves_nothing_and_is_stopped_by_its_button(
    page: Page, server: str, tmp_path: Path
) -> None:
    page.goto(f"{server}/?model={saved(tmp_path, MANY)}")
    canvas = page.locator(".st-key-canvas_graph .canvas")
    expect(canvas.locator(".box.current")).to_be_visible(timeout=LONG)
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 1")
    before = canvas.bounding_box(), canvas.locator(".box.current").bounding_box()
    page.keyboard.press("End")
    stop = page.get_by_role("button", name="Stop").first
    expect(stop).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-progress")).to_contain_text(
        re.compile(r"[1-9][\d,]* iterations"), timeout=LONG
    )
    assert (canvas.bounding_box(), canvas.locator(".box.current").bounding_box()) == before
    page.keyboard.press("ArrowRight")  # swallowed
    stop.click()
    expect(place(page)).to_contain_text(
        re.compile(r"paused.*step [\d,]{5,}", re.DOTALL), timeout=LONG
    )
    expect(canvas.locator(".box.current, .frame.current")).not_to_have_count(0)


@pytest.mark.browser
def test_a_reopened_link_shows_its_moment_then_the_total(
    page: Page, server: str, tmp_path: Path
) -> None:
    page.goto(f"{server}/?model={saved(tmp_path, 6_000_000)}&step=58")
    canvas = page.locator(".st-key-canvas_graph .canvas")
    expect(canvas.locator(".box.current")).to_be_visible(timeout=LONG)
    expect(place(page)).to_contain_text("step 58")
    words = page.locator(".st-key-canvas_graph .words").first
    expect(words).to_contain_text(re.compile(r"step 58 of 18,000,00\d(?!\+)"), timeout=LONG)
    expect(place(page)).to_contain_text(re.compile(r"earlier step\s*step 58 of 18,000,00"))
    expect(page.locator(".st-key-onward")).to_have_count(0)
