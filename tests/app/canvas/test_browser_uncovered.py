"""In a real chromium: nothing that lies on the picture hides the box that runs next, nor what is
said of a loop; heads hide none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app.browsing import LONG, choose_in_menu, nest, open_address, open_sample, place

pytestmark = pytest.mark.browser
LYING_ON_CURRENT = """canvas => {
  const shown = globalThis[Symbol.for('loopscope.canvas')].canvases.get('canvas_graph');
  const { camera, stage, overlay } = shown;
  const area = shown.areaOfBox(overlay.current);
  if (!area) return [];
  const view = stage.getBoundingClientRect();
  const [left, top] = [view.left + camera.x + area.left * camera.k, view.top + camera.y + area.top * camera.k];
  const [right, bottom] = [left + area.width * camera.k, top + area.height * camera.k];
  return [...canvas.querySelectorAll('.sticky-header, .overview.on, .tools')].filter((one) => {
    const other = one.getBoundingClientRect();
    return other.width && left < other.right - 1 && other.left < right - 1 && top < other.bottom - 1 && other.top < bottom - 1;
  }).map((one) => one.className);
}"""
HEADS_ON_BOXES = """canvas => {
  const heads = [...canvas.querySelectorAll('.sticky-header')].map((one) => [one, one.getBoundingClientRect()]);
  const boxes = [...canvas.querySelectorAll('.box > .body')].map((one) => [one.parentElement, one.getBoundingClientRect()]);
  return heads.flatMap(([head, a]) => boxes.filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
    .map(([box]) => `${head.textContent} on ${box.textContent}`));
}"""
OUTSIDE_THEIR_FRAME = """() => {
  const { structure, geometry, parts } = globalThis[Symbol.for('loopscope.canvas')].canvases.get('canvas_graph');
  return Object.entries(structure.nodes).flatMap(([id, { cluster }]) => {
    const frame = geometry.clusters[cluster], shown = (parts.get(id)?.edgeLabels ?? []).filter((one) => one.group.classList.contains('on'));
    return shown.filter((one) => {
      const [, x, y] = /([-.\\d]+) ([-.\\d]+)/.exec(one.group.getAttribute('transform')).map(Number);
      const half = one.box.width.baseVal.value / 2;
      return frame && (x - half < frame.x || x + half > frame.x + frame.width || y + 17 > frame.y + frame.height);
    }).map((one) => `${one.text.textContent} of ${structure.nodes[id].address}`);
  });
}"""
READ_IN_ORDER = """canvas => {
  const { clusters } = globalThis[Symbol.for('loopscope.canvas')].canvases.get('canvas_graph').structure;
  const areas = new Map([...canvas.querySelectorAll('.sticky-header')].filter((one) => one.querySelector('b').textContent)
    .map((one) => [one.dataset.frame, one.getBoundingClientRect()]));
  const isAfter = (a, b) => a.top >= b.bottom || (a.top >= b.top - 1 && a.left >= b.right);
  return [...areas].filter(([id, area]) => {
    for (let outer = clusters[id].parent; outer; outer = clusters[outer]?.parent)
      if (areas.has(outer) && !isAfter(area, areas.get(outer))) return true;
  }).map(([id]) => clusters[id].name);
}"""
SHOWN = """canvas => [...canvas.querySelectorAll('.sticky-header, .head .frame-state')].filter((one) => {
  const { visibility, display } = getComputedStyle(one);
  return visibility === 'visible' && display !== 'none' && one.textContent.includes('iteration');
}).map((one) => one.getBoundingClientRect()).map((one) => [one.left, one.top, one.right, one.bottom])"""
SEEN_TO_THE_RIGHT = """(_, { frame, above, left }) => {
  const canvas = globalThis[Symbol.for('loopscope.canvas')].canvases.get('canvas_graph');
  const id = Object.keys(canvas.structure.clusters).find((id) => canvas.structure.clusters[id].address === frame);
  const { box } = canvas.parts.get(id);
  canvas.camera.set(left - box.x, above - box.y, 1);
  canvas.camera.finishMovement();
}"""
BRIEF = {"nest of 6": (3, 22), "collatz": (590, 15)}
"""The step that is gone to first, and how many are taken from there."""


@pytest.fixture
def still(browser: Browser) -> Iterator[Page]:
    """A narrow window whose picture moves at once."""
    context = browser.new_context(viewport={"width": 900, "height": 800}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def opened(page: Page, server: str, model: str, folder: Path) -> Locator:
    step = str(BRIEF[model][0])
    if model == "collatz":
        return open_sample(page, server, model, set="twenty_seven", step=step)
    return open_address(page, f"{server}/?model={nest(folder, 6)}&step={step}")


@pytest.mark.parametrize("model", BRIEF)
def test_nothing_lies_on_the_operation_that_runs_next(
    still: Page, server: str, tmp_path: Path, model: str
) -> None:
    canvas = opened(still, server, model, tmp_path)
    first, count = BRIEF[model]
    for step in range(first + 1, first + 1 + count):
        still.keyboard.press("ArrowRight")
        expect(place(still)).to_contain_text(f"step {step}", timeout=LONG)
        still.wait_for_timeout(60)
        assert canvas.evaluate(LYING_ON_CURRENT) == [], step
        assert canvas.evaluate(HEADS_ON_BOXES) == [], step
        assert canvas.evaluate(READ_IN_ORDER) == [], step


@pytest.mark.parametrize("sample", ["linear_attention", "count_primes"])
def test_values_stay_in_the_frame_of_their_box_in_unrolled_copies_too(
    still: Page, server: str, sample: str
) -> None:
    canvas = open_sample(still, server, sample, step="9999")
    expect(canvas.locator(".chip.on").first).to_be_visible(timeout=LONG)
    assert canvas.evaluate(OUTSIDE_THEIR_FRAME) == []
    choose_in_menu(canvas, "unroll")
    expect(canvas.locator(".frame.copy").nth(1)).to_be_attached(timeout=LONG)
    expect(canvas.locator(".chip.on").nth(9)).to_be_attached(timeout=LONG)
    assert canvas.evaluate(OUTSIDE_THEIR_FRAME) == []


def test_the_state_of_a_loop_is_beside_the_small_picture(
    still: Page, server: str, tmp_path: Path
) -> None:
    still.set_viewport_size({"width": 1280, "height": 800})
    canvas = open_address(still, f"{server}/?model={nest(tmp_path, 6)}&step=30")
    level = "main/loop_at_level_1/body/loop_at_level_2/body/loop_at_level_3"
    view = canvas.locator(".stage").bounding_box()
    assert view is not None
    for left in (300, 60, -560):
        for above in (60, 220, 235, 250):
            canvas.evaluate(SEEN_TO_THE_RIGHT, {"frame": level, "above": above, "left": left})
            small = canvas.locator(".overview.on").bounding_box()
            assert small is not None
            seen = [
                one
                for one in canvas.evaluate(SHOWN)
                if one[1] < view["y"] + view["height"] - 20
                and view["x"] < one[2]
                and one[0] < view["x"] + view["width"]
            ]
            assert seen
            for _, top, right, bottom in seen:
                assert (
                    right <= small["x"]
                    or bottom <= small["y"]
                    or top >= small["y"] + small["height"]
                ), (left, above)


def test_on_the_canvas_alone_heads_and_what_runs_next_are_beside_the_floating_bar(
    still: Page, server: str
) -> None:
    canvas = open_sample(still, server, "count_primes", set="up_to_30", step="398")
    still.keyboard.press("f")
    expect(canvas.locator(".sticky-header").first).to_be_visible()
    for step in range(399, 411):
        still.set_viewport_size({"width": (900, 1280, 1440)[step % 3], "height": 800})
        still.keyboard.press("ArrowRight")
        expect(place(still)).to_contain_text(f"step {step}", timeout=LONG)
        still.wait_for_timeout(60)
        bar = still.locator(".st-key-controls").bounding_box()
        assert bar is not None
        for lying in canvas.locator(".sticky-header, .box.current").all():
            area = lying.bounding_box()
            assert area is not None
            assert (
                area["y"] >= bar["y"] + bar["height"]
                or area["y"] + area["height"] <= bar["y"]
                or area["x"] > bar["x"] + bar["width"]
                or area["x"] + area["width"] < bar["x"]
            ), step
