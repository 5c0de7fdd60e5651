"""The views Compare, Many runs, Gradients and Performance in a real browser: all in the window,
state kept, and the address opens the same view.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Page, expect

from tests.app.browsing import LONG, place, settled

pytestmark = pytest.mark.browser

WIDTH, HEIGHT = 1280, 800
CANVAS = ".canvas .box"
VIEWS: dict[str, tuple[str, Sequence[str]]] = {
    "compare": (
        "sample:collatz",
        (
            ".st-key-compare_bar",
            ".headline",
            ".st-key-compare_tapes canvas",
            ".st-key-compare_differences",
            ".st-key-compare_graph",
            ".st-key-compare_open button",
        ),
    ),
    "many": (
        "sample:collatz",
        (
            ".st-key-many_bar",
            ".headline",
            ".st-key-many_threshold",
            "[class*='st-key-many_chart_']",
            ".st-key-many_table_bar",
            "[class*='st-key-many_table_'] canvas",
        ),
    ),
    "gradients": (
        "sample:vanishing_gradient",
        (
            ".st-key-gradient_bar",
            ".headline",
            ".st-key-adjoints canvas",
            ".walked_back",
            ".st-key-gradient_table",
            ".st-key-view_canvas",
        ),
    ),
    "performance": (
        "sample:decoder",
        (
            ".st-key-performance_bar",
            ".st-key-whole_run canvas",
            ".st-key-fates_ask button",
            ".st-key-view_canvas",
        ),
    ),
}
"""The model of each view, and its parts that are in the window together."""


def open_view(page: Page, server: str, view: str, **address: str) -> None:
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    model, parts = VIEWS[view]
    words = "".join(f"&{key}={text}" for key, text in address.items())
    page.goto(f"{server}/?model={model}&view={view}&step=9999{words}")
    for part in parts:
        expect(page.locator(part).first).to_be_visible(timeout=LONG)


def in_the_window(page: Page, view: str) -> None:
    for part in VIEWS[view][1]:
        box = page.locator(part).first.bounding_box()
        assert box is not None, part
        assert box["x"] >= 0, part
        assert box["x"] + box["width"] <= WIDTH, part
        assert box["y"] + box["height"] <= HEIGHT, part
    heights = page.locator("[data-testid=stMain]").evaluate(
        "element => [element.scrollHeight, element.clientHeight]"
    )
    assert heights[0] <= heights[1] + 1


@pytest.mark.parametrize(
    ("view", "address", "part"),
    [
        ("compare", {"other": "twenty_seven"}, "and 111 times there"),
        ("many", {"runs": "number%3D6..40"}, "35 runs in"),
        ("gradients", {}, "The gradient vanishes: 1 at iteration 30"),
        ("performance", {}, "ticks for"),
    ],
)
def test_an_address_opens_all_of_the_view_and_back_returns(
    page: Page, server: str, view: str, address: dict[str, str], part: str
) -> None:
    open_view(page, server, view, **address)
    settled(page)
    in_the_window(page, view)
    button = page.locator(".st-key-view_canvas_open").first
    if button.is_visible():  # no head of a loop is below it
        area = button.bounding_box()
        assert area is not None
        for head in page.locator(".sticky-headers > *").all():
            lies = head.bounding_box()
            assert (
                lies is None
                or lies["y"] >= area["y"] + area["height"]
                or lies["x"] >= area["x"] + area["width"]
            )
    content = page.locator(".st-key-view_page")
    if view == "performance":
        content.get_by_role("radio", name="Schedule").click()
    expect(content).to_contain_text(part, timeout=LONG)
    expect(page).to_have_url(re.compile(f"view={view}"))
    if view == "performance":
        expect(page).to_have_url(re.compile("timeline=schedule"))
    page.reload()
    expect(content).to_contain_text(part, timeout=LONG)
    settled(page)
    page.get_by_role("radio", name="Debug").click(force=True)
    expect(place(page)).to_be_visible(timeout=LONG)
    expect(page).not_to_have_url(re.compile(f"view={view}"))
    page.go_back()
    expect(content).to_contain_text(part, timeout=LONG)


def test_why_7_and_not_12_takes_two_actions(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=sample:collatz")
    expect(place(page)).to_be_visible(timeout=LONG)
    page.get_by_role("radio", name="Compare").click(force=True)
    headline = page.locator(".headline")
    expect(headline).to_contain_text("The loop runs 7 times here and 12 times there", timeout=LONG)
    page.get_by_role("cell", name="if_even (branch)").click()
    expect(page.locator(".st-key-compare_graph .box.selected")).to_have_attribute(
        "data-address", re.compile("if_even"), timeout=LONG
    )
    page.get_by_role("button", name="Open in Debug").click()
    expect(place(page)).to_contain_text("iteration 2", timeout=LONG)


def test_two_canvases_have_one_selection(page: Page, server: str) -> None:
    open_view(page, server, "compare", other="seventeen")
    page.get_by_role("radio", name="Side by side").click(force=True, timeout=LONG)
    there = page.locator(".st-key-compare_graph_there")
    expect(there.locator(".box.selected")).to_have_attribute(
        "data-address", "main/while_not_one/body/number", timeout=LONG
    )
    settled(page)
    there.locator(".box[data-address='main/while_not_one/body/floor_mod']").dispatch_event("click")
    sides = page.locator(".st-key-compare_graph .box.selected"), there.locator(".box.selected")
    for side in sides:
        expect(side).to_have_attribute(
            "data-address", "main/while_not_one/body/floor_mod", timeout=LONG
        )
    page.get_by_role("cell", name="keep_going").click()
    for side in sides:
        expect(side).to_have_attribute(
            "data-address", "main/while_not_one/body/keep_going", timeout=LONG
        )


def test_views_keep_their_state(page: Page, server: str) -> None:
    open_view(page, server, "compare", other="twenty_seven")
    page.get_by_role("cell", name="if_even (branch)").click()
    marked = page.locator(".st-key-compare_differences tr.now")
    expect(marked).to_contain_text("if_even (branch)", timeout=LONG)
    page.get_by_role("radio", name="Performance").click(force=True)
    page.get_by_role("radio", name="Schedule").click(force=True, timeout=LONG)
    expect(page.locator(".headline")).to_contain_text("ticks for", timeout=LONG)
    page.get_by_role("radio", name="Compare").click(force=True)
    expect(page.locator(".headline")).to_contain_text("and 111 times there", timeout=LONG)
    expect(marked).to_contain_text("if_even (branch)")
    page.get_by_role("radio", name="Performance").click(force=True)
    expect(page.locator(".headline")).to_contain_text("ticks for", timeout=LONG)


def test_a_difference_in_the_runtime_opens_in_debug(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=sample:swap&view=compare&with=runtime&step=9999")
    page.locator(".st-key-compare_run button").first.click(timeout=LONG)
    headline = page.locator(".headline")
    expect(headline).to_contain_text(
        "First difference: swap_each_round · iteration 1 › right, 1 here, 2 there", timeout=LONG
    )
    expect(page.locator(".st-key-compare_graph .box.selected")).to_have_attribute(
        "data-address", "main/swap_each_round/body/right"
    )
    page.get_by_role("button", name="Open in Debug").click()
    expect(place(page)).to_contain_text("iteration 1", timeout=LONG)
    expect(page.locator(".st-key-canvas_graph .box.selected")).to_have_attribute(
        "data-address", "main/swap_each_round/body/right", timeout=LONG
    )


def test_the_fate_of_each_loop_is_one_click_away(page: Page, server: str) -> None:
    open_view(page, server, "performance")
    page.locator(".st-key-fates_ask button").first.click()
    line = page.locator(".st-key-fates .line").first
    expect(line).to_contain_text("for_each_word", timeout=60_000)
    expect(line).to_contain_text("kept")
