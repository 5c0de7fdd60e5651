"""The schedule in Performance: what is drawn, what its sliders change, and where a click goes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from loopscope.explain import dependences, schedule
from loopscope_app.parts.run_views.schedule_view import MOST_LANES, picture_of
from loopscope_app.parts.widgets import lanes
from tests.app.browsing import LONG, open_sample
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text
from tests.engine.explain.runs import finished

Visit = Callable[..., AppTest]


def looked(opened: Visit, sample: str, step: str = "9999") -> AppTest:
    app = opened(model=f"sample:{sample}", step=step, view="performance", timeline="schedule")
    assert not app.exception
    return app


def test_a_lane_for_each_operation_and_a_block_for_each_iteration(opened: Visit) -> None:
    app = looked(opened, "counter_ahead")
    drawn = sent(app, "schedule")
    assert [lane["name"] for lane in drawn["lanes"]] == ["count", "add_to_x", "keep_going"]
    assert [block[3] for block in drawn["lanes"][0]["blocks"]] == list(range(20))
    assert [block[1] - block[0] for block in drawn["lanes"][1]["blocks"]] == [5] * 20
    assert drawn["extent"] == 100
    assert "100 ticks</b> for 60 operations of 20 iterations" in page_text(app)
    assert "i</code> gets up to 9 iterations ahead" in page_text(app)


def test_the_sliders_schedule_anew(opened: Visit) -> None:
    app = looked(opened, "counter_ahead")
    app.slider("schedule_workers").set_value(1).run()
    assert sent(app, "schedule")["extent"] == 140
    app.slider("schedule_workers").set_value(2).run()
    assert app.slider("schedule_window_10").value == 10
    app.slider("schedule_window_10").set_value(3).run()
    assert "gets up to 2 iterations ahead" in page_text(app)
    app.slider("schedule_window_10").set_value(20).run()
    app.slider("schedule_ticks_1_5").set_value(50).run()
    assert sent(app, "schedule")["extent"] == 1000
    assert "ends before" in page_text(app)


def test_operations_of_a_lane_that_overlap_share_its_height() -> None:
    found = dependences(finished("records_scan"), "main/each_row")
    drawn = picture_of(found, schedule(found, 10, 3, lambda _: 4), ())
    for lane, cells in zip(drawn.chart.lanes, drawn.cells, strict=True):
        for block in lane.blocks:
            begin, end = int(block[0]), int(block[1])
            assert block[6:] in {
                (part, len(cells[begin]))
                for part, place in enumerate(cells[begin])
                if place is not None
            }
            assert all(len(cells[tick]) == len(cells[begin]) for tick in range(begin, end))


def test_before_the_loop_runs_there_is_nothing_to_schedule(opened: Visit) -> None:
    assert "Once a loop runs" in page_text(looked(opened, "counter_ahead", step="0"))
    assert "This model has no loop" in page_text(looked(opened, "if_add"))


def test_the_cursor_is_at_the_tick_of_its_operation(opened: Visit) -> None:
    app = looked(opened, "counter_ahead", step="4")
    assert sent(app, "schedule_cursor")["at"] == 0


def test_what_runs_at_one_tick_of_a_lane_shares_its_height() -> None:
    found = dependences(finished("records_scan"), "main/each_row")
    drawn = picture_of(found, schedule(found, 10, None), ())
    blocks = drawn.chart.lanes[0].blocks
    assert [(block[0], block[3], *block[6:]) for block in blocks] == [
        (0.0, number, number, 5) for number in range(5)
    ]
    assert [place and place[1] for place in drawn.cells[0][0]] == list(range(5))


def test_of_a_body_with_very_many_operations_the_first_have_lanes() -> None:
    found = dependences(finished("keras_gru"), "main/network_1%2Fgru_1%2Fwhile")
    drawn = picture_of(found, schedule(found, 10, 4), ())
    assert len(drawn.chart.lanes) + drawn.hidden == 31
    assert drawn.hidden == max(0, 31 - MOST_LANES)


@pytest.mark.parametrize(
    ("down", "read"),
    [(0.25, 0.25), (0, 0.0), (1, 0.0), (-1, 0.0), ("x", 0.0), (None, 0.0), (float("nan"), 0.0)],
)
def test_where_in_a_lane_a_click_was_is_not_trusted(down: object, read: float) -> None:
    chart = lanes.Chart("one lane", "tick", 10, [lanes.Lane("one", [])])
    pick = lanes.read_pick({"lane": 0, "at": 2, "down": down}, chart)
    assert pick is not None
    assert pick.down == read


@pytest.mark.browser
def test_a_click_goes_to_an_operation_of_an_iteration_and_workers_change_the_picture(
    page: Page, server: str
) -> None:
    canvas = open_sample(page, server, "counter_ahead", step="9999", view="performance")
    page.get_by_role("radio", name="Schedule").click(force=True)
    words = page.locator(".headline")
    expect(words).to_contain_text("100 ticks for 60 operations", timeout=LONG)
    expect(words).to_contain_text("i gets up to 9 iterations ahead of x, never behind")
    page.wait_for_url(re.compile("timeline=schedule"))
    workers = page.locator(".st-key-schedule_workers input").first
    workers.focus()
    page.keyboard.press("ArrowLeft")
    expect(words).to_contain_text("140 ticks", timeout=LONG)
    lanes_drawn = page.locator(".st-key-schedule canvas")
    page.wait_for_timeout(300)
    box = lanes_drawn.bounding_box()
    assert box is not None
    page.mouse.click(
        box["x"] + box["width"] - 3, box["y"] + 2 + 21 * 2.5
    )  # the last block of the last lane
    expect(page.locator(".st-key-view_canvas")).to_contain_text("iteration 19", timeout=LONG)
    expect(canvas.locator(".box.selected")).to_have_attribute(
        "data-address", re.compile("keep_going"), timeout=LONG
    )
