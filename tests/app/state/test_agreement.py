"""The comparison with the runtime that begins when a model opens."""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from loopscope.peers import ComparisonReport, ValueDifference
from loopscope_app.parts.frame.header import short_runtime
from loopscope_app.state import model_in_use
from loopscope_app.state.model_in_use import Agreement, is_small
from loopscope_app.state.open_model import Opened, open_sample
from tests.app.browsing import LONG
from tests.app.browsing import open_sample as open_in_browser
from tests.app.serving import ROOT, SOURCES, serving


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_in_use, "DELAY", 0.0)


def begun(opened: Opened, name: str) -> Agreement:
    begun = Agreement(opened, opened.sets[name])
    begun.begin()
    if begun.thread is not None:
        begun.thread.join(120)
    return begun


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("sample", "inputs", "agrees"), [("collatz", "three", True), ("swap", "three_rounds", False)]
)
def test_a_sample_agrees_or_not(sample: str, inputs: str, agrees: bool) -> None:
    result = begun(open_sample(sample), inputs)
    assert result.over
    assert result.report is not None
    assert result.report.agrees == agrees
    assert result.report.runtime.startswith("OpenVINO")


def test_a_run_without_end_has_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_in_use, "OWN_LIMITS", replace(model_in_use.OWN_LIMITS, iterations=50))
    opened = open_sample("infinite_loop")
    endless = next(
        one.name for one in (opened.sample.sets if opened.sample else ()) if one.never_ends
    )
    result = begun(opened, endless)
    assert result.over
    assert result.report is None
    assert result.is_for(opened, result.inputs)
    assert not result.is_for(opened, dict(result.inputs))


@pytest.mark.parametrize(("name", "limit"), [("MOST_NODES", 5), ("MOST_BYTES", 0)])
def test_a_large_model_is_not_compared(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(model_in_use, name, limit)
    opened = open_sample("decoder")
    assert not is_small(opened)
    result = begun(opened, "sure_sentence")
    assert result.over
    assert result.thread is None


def test_a_model_without_its_runtime_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_in_use, "runtime_of", lambda _: "")
    assert begun(open_sample("swap"), "one_round").thread is None


def test_a_comparison_ends_with_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(model_in_use, "DELAY", 0.3)
    monkeypatch.setattr(model_in_use, "_report", lambda *words: asked.append(words))
    opened = open_sample("swap")
    left = Agreement(opened, opened.sets["one_round"])
    left.begin()
    thread = left.thread
    assert thread is not None
    del left
    gc.collect()
    thread.join(30)
    assert asked == []


def test_the_report_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    report = ComparisonReport("OpenVINO 2026.4.1", (ValueDifference("y", -1, "1", "2"),), None)
    monkeypatch.setattr(model_in_use, "against", lambda *_, **__: report)
    assert begun(open_sample("swap"), "one_round").report is report


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("ONNX Runtime 1.31.0", "ONNX Runtime 1.31"),
        ("OpenVINO 2026.4.1", "OpenVINO 2026.4"),
        ("OpenVINO", "OpenVINO"),
    ],
)
def test_the_short_name_of_a_runtime(name: str, short: str) -> None:
    assert short_runtime(name) == short


@pytest.mark.browser
def test_the_badge_leads_to_the_comparison(page: Page) -> None:
    command = [sys.executable, "-m", "loopscope_app.cli"]
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    with serving(command, folder=ROOT, environment=environment) as address:
        _click_the_badge(page, address)


def _click_the_badge(page: Page, address: str) -> None:
    open_in_browser(page, address, "collatz")
    badge = page.get_by_role("button", name="Agrees with OpenVINO")
    expect(badge).to_be_visible(timeout=120_000)
    badge.click()
    headline = page.locator(".headline", has_text="All outputs agree with OpenVINO")
    expect(headline).to_be_visible(timeout=4 * LONG)
