"""In a real chromium: a trace opens at its end, and is compared with another trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import loopscope
from tests.app.browsing import LONG, open_address

pytestmark = pytest.mark.browser


def recorded(path: Path, wrong_step: int = -1) -> Path:
    state = np.ones(4, np.float32)
    with loopscope.trace(path) as trace:
        trace.record(state=state)
        for step in trace.iterations("decode", range(200)):
            state = np.sin(state + step).astype(np.float32)
            if step == wrong_step:
                state[2] += 0.1
            trace.record(state=state, energy=float(state @ state))
            if trace.branch("stop", step == 136):
                break
    return path


def test_a_trace_opens_at_its_end_without_what_needs_operations(
    page: Page, server: str, tmp_path: Path
) -> None:
    canvas = open_address(page, f"{server}/?model={recorded(tmp_path / 'kernel.loopscope')}")
    expect(
        page.get_by_text("decode ended after 137 of 200 iterations: stop was true.")
    ).to_be_visible(timeout=LONG)
    for name in ("state", "energy", "stop"):
        expect(canvas.get_by_text(name, exact=True).first).to_be_visible()
    expect(canvas.get_by_text("Result")).to_have_count(0)
    for absent in ("Many runs", "Gradients", "Performance", "Code"):
        expect(page.get_by_role("radio", name=absent, exact=True)).to_have_count(0)
    expect(page.locator(".titles b")).to_have_attribute("title", "trace · 3 values")
    canvas.get_by_text("energy", exact=True).first.click()
    expect(page.locator(".st-key-dock").get_by_text("Value", exact=True)).to_be_visible()
    for absent in ("Inputs", "It has no attributes.", "Consumers"):
        expect(page.locator(".st-key-dock").get_by_text(absent, exact=True)).to_have_count(0)


def test_the_lesson_leads_to_the_first_wrong_token(page: Page, server: str) -> None:
    open_address(page, f"{server}/?lesson=first-wrong-token")
    for field in page.locator(".st-key-prediction input").all():
        field.fill("64")
    page.get_by_role("button", name="Run and check").click()
    expect(page.get_by_text("✓ Right")).to_have_count(2, timeout=LONG)
    page.get_by_role("button", name="Compare the two recordings").click()
    expect(page.get_by_text("First difference: iteration 64 › state").first).to_be_visible(
        timeout=LONG
    )


def test_two_traces_are_compared(page: Page, server: str, tmp_path: Path) -> None:
    left = recorded(tmp_path / "left.loopscope")
    right = recorded(tmp_path / "right.loopscope", wrong_step=17)
    page.goto(f"{server}/?model={left}&view=compare")
    page.get_by_role("textbox", name="Path of the other model").fill(str(right), timeout=LONG)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="right.loopscope")).to_be_visible(timeout=LONG)
    page.locator(".st-key-compare_run button").click()
    expect(page.locator(".headline")).to_contain_text(
        "First difference: iteration 17 › state", timeout=LONG
    )
