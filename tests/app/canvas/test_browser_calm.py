"""The screen stays where it is while a run is stepped, and says in words where the run stands."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import LONG, open_sample, settled

STEPS = 20
PARTS = ".st-key-canvas_graph, .st-key-transport, .st-key-dock, .st-key-dock_tabs"
PLACES = f"""() => [...document.querySelectorAll("{PARTS}")].map(part => {{
  const {{ x, y, width, height }} = part.getBoundingClientRect();
  return [x, y, width, height].map(Math.round).join(" ");
}})"""
SCROLLED = '() => [...document.querySelectorAll("*")].some(part => part.scrollTop > 0)'


@pytest.mark.browser
@pytest.mark.parametrize(
    ("sample", "address", "size"),
    [
        ("collatz", {}, (1280, 800)),
        ("collatz", {"set": "twenty_seven", "step": "20"}, (1440, 900)),
        ("count_primes", {"set": "up_to_30", "step": "400"}, (1920, 1080)),
        ("if_add", {}, (1280, 800)),
        ("growing_sequence", {}, (1440, 900)),
        ("records_scan", {}, (1280, 800)),
    ],
)
def test_nothing_moves_while_one_steps(
    page: Page, server: str, sample: str, address: dict[str, str], size: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    open_sample(page, server, sample, **address)
    expect(page.locator(".st-key-transport")).to_be_visible(timeout=LONG)
    expect(page.locator(".named_values")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-dock_tabs button")).to_have_count(4)
    settled(page)
    places, before = page.evaluate(PLACES), None
    while places != before:  # parts of the page load when they are first shown
        settled(page)
        places, before = page.evaluate(PLACES), places
    assert len(places) == 4
    for _ in range(STEPS):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(50)
        assert page.evaluate(PLACES) == places
    settled(page)
    assert page.evaluate(PLACES) == places


@pytest.mark.browser
def test_neither_wheel_nor_keys_scroll_the_page_behind_the_whole_window(
    page: Page, server: str
) -> None:
    canvas = open_sample(page, server, "collatz", set="twenty_seven", step="20")
    expect(page.locator(".st-key-dock_tabs")).to_be_visible(timeout=LONG)
    canvas.click(position={"x": 20, "y": 200})
    page.keyboard.press("f")
    fills = "(canvas) => canvas.getBoundingClientRect().width === innerWidth"
    page.wait_for_function(fills, arg=canvas.element_handle(), timeout=LONG)
    page.mouse.wheel(0, 600)
    for key in ("PageDown", "ArrowDown", "End", "Tab", "Tab", "Tab"):
        page.keyboard.press(key)
    page.wait_for_timeout(500)
    assert not page.evaluate(SCROLLED)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("step", "words", "loop"),
    [
        ("200", "step 200 of 646 · iteration 0 of 2", "try_each_divisor, coloured by if_divides"),
        ("9999", "step 646 of 646 · iteration 28, the last of 29", "for_each_candidate"),
    ],
)
def test_the_slider_says_the_innermost_loop_and_its_iteration(
    page: Page, server: str, step: str, words: str, loop: str
) -> None:
    canvas = open_sample(page, server, "count_primes", set="up_to_30", step=step)
    shown = canvas.locator(".words").first
    expect(shown).to_have_text(words, timeout=LONG)
    expect(shown).to_have_attribute("title", words)
    expect(canvas.locator(".subject").first).to_have_text(f"Iterations of {loop}")
