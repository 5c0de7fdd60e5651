"""What tests in a real browser do again and again: open a model, and look where its run stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

import loopscope
from loopscope import builder

LONG = 30_000
"""Milliseconds that a page may take to open on a busy machine."""
CANVAS = ".st-key-canvas_graph .canvas"


def open_address(page: Page, address: str) -> Locator:
    """The canvas of a page, once its picture is there."""
    page.goto(address)
    canvas = page.locator(CANVAS)
    expect(canvas.locator(".box").first).to_be_visible(timeout=LONG)
    return canvas


def open_sample(page: Page, server: str, name: str, **address: str) -> Locator:
    """The canvas of a sample at the moment that the other words of its address say."""
    words = "".join(f"&{key}={text}" for key, text in address.items())
    return open_address(page, f"{server}/?model=sample:{name}{words}")


def place(page: Page) -> Locator:
    """The line that says where the run stands."""
    return page.locator(".st-key-place")


_RESTED = """([calm, longest]) => new Promise((rested, gaveUp) => {
  const start = performance.now();
  let busy = start;
  const timer = setInterval(() => {
    const now = performance.now();
    const app = document.querySelector("[data-test-script-state]");
    if (app?.dataset.testScriptState !== "notRunning") busy = now;
    if (now - busy < calm && now - start < longest) return;
    clearInterval(timer);
    if (now - busy < calm) gaveUp(new Error("the script still runs"));
    else rested();
  }, 40);
})"""
_CALM = 400
"""Milliseconds without a run of the script after which no click is under way."""


def settled(page: Page) -> None:
    """Wait until the script has run for the last click or key.

    A download that is requested before belongs to the previous run of the script.
    """
    expect(page.locator("[data-test-script-state]")).to_be_attached(timeout=LONG)
    page.evaluate(_RESTED, [_CALM, LONG])


def nest(folder: Path, depth: int) -> Path:
    """A model file whose loops are so deep in each other; the outermost and the innermost one
    have three iterations each.
    """
    graph = builder.Graph(f"nest of {depth}")

    def level(number: int, carried: Any) -> Any:
        if number > depth:
            return carried + 1.0
        count = 3 if number in (1, depth) else 1
        return builder.for_loop(
            count,
            lambda i, inner: [level(number + 1, inner)],
            [carried],
            name=f"loop_at_level_{number}",
        )[0]

    path = folder / f"nest{depth}.xml"
    loopscope.write_model(graph.model({"last": level(1, graph.parameter("x", "f32", []))}), path)
    return path


def choose_in_menu(canvas: Locator, name: str) -> None:
    """Chooses what the menu behind the zoom calls by a name of its markup, such as ``unroll``."""
    canvas.locator("[data-do=menu]").click()
    canvas.locator(f".picture-menu [data-do={name}]").click()
