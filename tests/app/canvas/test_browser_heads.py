"""In a real chromium: what lies on the picture. Heads of frames that are larger than the view
stay in sight; words move nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.browsing import LONG, choose_in_menu, nest, open_address, open_sample

pytestmark = pytest.mark.browser
LOOP, DIVISORS = "main/for_each_candidate", "main/for_each_candidate/body/try_each_divisor"
BESIDE = """({ frame, zoom, part, above }) => {
  const canvas = globalThis[Symbol.for('loopscope.canvas')].canvases.get('canvas_graph');
  const id = Object.keys(canvas.structure.clusters).find((id) => canvas.structure.clusters[id].address === frame);
  const { box } = canvas.parts.get(id);
  canvas.camera.set(-(box.x + box.width * part) * zoom, above - (box.y + 26) * zoom, zoom);
  canvas.camera.finishMovement();
  return id;
}"""


def boxes(stuck: Locator) -> list[list[float]]:
    found: list[list[float]] = stuck.evaluate_all(
        "all => all.map(e => e.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
    )
    return found


def beside(canvas: Locator, frame: str, *, zoom: float, part: float, above: float) -> None:
    """The view's left border cuts the frame at this part of its width; the frame's top lies so
    many pixels below the view's.
    """
    canvas.evaluate(
        f"(_, given) => ({BESIDE})(given)",
        {"frame": frame, "zoom": zoom, "part": part, "above": above},
    )


def test_a_head_out_of_sight_sticks_to_the_visible_part_of_its_frame(
    page: Page, server: str
) -> None:
    canvas = open_sample(page, server, "count_primes", set="up_to_30", step="400")
    view = canvas.locator(".stage").bounding_box()
    tools = canvas.locator(".tools").first.bounding_box()
    assert view is not None
    assert tools is not None
    for zoom in (1.0, 2.0, 3.0):
        for part in (0.1, 0.4):
            for above in (-60.0, -400.0):
                beside(canvas, DIVISORS, zoom=zoom, part=part, above=above)
                stuck = canvas.locator(".sticky-header")
                expect(stuck.filter(has_text="try_each_divisor")).to_contain_text(
                    "iteration 1, the last of 2"
                )
                found = boxes(stuck)
                for left, top, right, bottom in found:
                    assert view["x"] <= left < right <= view["x"] + view["width"]
                    assert view["y"] <= top < bottom <= view["y"] + view["height"]
                    assert right <= tools["x"] or top >= tools["y"] + tools["height"]
                for one in found:
                    assert not any(one is not other and overlap(one, other) for other in found)


def overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def test_where_the_head_is_in_sight_nothing_sticks_and_a_click_leads_to_it(
    page: Page, server: str
) -> None:
    canvas = open_sample(page, server, "count_primes", set="up_to_30", step="400")
    beside(canvas, DIVISORS, zoom=1.5, part=0.2, above=-200.0)
    stuck = canvas.locator(".sticky-header", has_text="try_each_divisor")
    expect(stuck).to_have_count(1)
    choose_in_menu(canvas, "follow")
    page.keyboard.press("Home")  # its words follow the run, also where nothing moves
    expect(stuck).not_to_contain_text("iteration")
    stuck.click()
    expect(
        canvas.locator(".sticky-header b", has_text="Loop")
        .locator("..")
        .filter(has_text="try_each_divisor")
    ).to_have_count(0)
    frame, view = (
        canvas.locator(f'.frame[data-address="{DIVISORS}"]').bounding_box(),
        canvas.bounding_box(),
    )
    assert frame is not None
    assert view is not None
    assert (frame["x"] > view["x"], frame["y"] > view["y"]) == (True, True)


DOUBLED = """canvas => {
  const stuck = [...canvas.querySelectorAll('.sticky-header')].filter((e) => e.querySelector('b').textContent)
    .map((e) => ({ id: e.dataset.frame, area: e.getBoundingClientRect() }));
  const heads = [...canvas.querySelectorAll('.head')];
  const seen = heads.filter((e) => getComputedStyle(e.querySelector('.frame-title')).visibility === 'visible');
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return seen.flatMap((head) => {
    const area = head.querySelector('.frame-title').getBoundingClientRect();
    return stuck.filter((one) => one.id === head.dataset.frame || meet(one.area, area)).map((one) => [head.dataset.frame, one.id]);
  });
}"""


@pytest.mark.parametrize("depth", [6, 40])
def test_in_a_deep_nest_no_head_is_there_twice_or_below_another(
    page: Page, server: str, tmp_path: Path, depth: int
) -> None:
    canvas = open_address(page, f"{server}/?model={nest(tmp_path, depth)}&step=60")
    expect(canvas.locator(".head").first).to_be_attached(timeout=LONG)
    for zoom in (0.7, 1.0, 1.3, 1.9):
        for part in (-0.1, 0.05, 0.3):
            for above in (-90.0, -20.0, 40.0):
                beside(
                    canvas,
                    "main/loop_at_level_1/body/loop_at_level_2/body/loop_at_level_3",
                    zoom=zoom,
                    part=part,
                    above=above,
                )
                assert canvas.evaluate(DOUBLED) == [], (zoom, part, above)


def test_the_state_alone_sticks_where_the_title_is_in_sight(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "count_primes", set="up_to_30", step="400")
    beside(canvas, LOOP, zoom=1.6, part=-0.02, above=60.0)
    stuck = canvas.locator(".sticky-header", has_text="iteration 19 of 29")
    expect(stuck).to_have_count(1)
    expect(stuck).to_have_text("iteration 19 of 29")
    own = canvas.locator(".head.loop", has_text="for_each_candidate").locator(".frame-state")
    expect(own).to_have_css("visibility", "hidden")  # nothing of it peeps out
    beside(canvas, LOOP, zoom=0.5, part=-0.02, above=60.0)
    expect(own).to_have_css("visibility", "visible")


@pytest.mark.parametrize("width", [1280, 1920])
def test_what_is_set_by_hand_is_said_without_moving_the_picture(
    page: Page, server: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800 if width == 1280 else 1080})
    canvas = open_sample(page, server, "collatz", step="24", tab="node")
    before = canvas.bounding_box()
    page.get_by_role("button", name="What if …").click()
    page.get_by_role("button", name="Run from here").click()
    said = page.locator(".st-key-what_if")
    expect(said).to_contain_text("instead of", timeout=LONG)
    assert canvas.bounding_box() == before
    # No head of a frame hides below it.
    line = said.bounding_box()
    assert line is not None
    for part in (0.1, 0.3):
        beside(canvas, "main/while_not_one", zoom=1.5, part=part, above=-100.0)
        expect(canvas.locator(".sticky-header").first).to_be_visible()
        for left, top, _, _ in boxes(canvas.locator(".sticky-header")):
            assert top >= line["y"] + line["height"] or left >= line["x"] + line["width"]
    page.locator(".st-key-what_if_undo_0 button").first.click()
    expect(said).to_have_count(0)
    assert canvas.bounding_box() == before


@pytest.mark.parametrize(
    "sample", ["keras_gru", "for_loop_with_condition", "gcd", "diverging_training"]
)
def test_no_box_is_under_the_tools_at_first(page: Page, server: str, sample: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    canvas = open_sample(page, server, sample)
    page.wait_for_timeout(600)  # what follows the current operation has come to rest
    tools = canvas.locator(".tools").first.bounding_box()
    assert tools is not None
    for left, top, right, bottom in boxes(canvas.locator(".box")):
        assert (
            right < tools["x"]
            or left > tools["x"] + tools["width"]
            or top > tools["y"] + tools["height"]
            or bottom < tools["y"]
        )
