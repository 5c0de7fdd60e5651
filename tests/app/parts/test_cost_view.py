"""Performance, Cost: the table of operations, and colours by a cost on the canvas."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from tests.app.browsing import LONG, open_sample
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text

SAMPLE = "lstm_melody"


def test_costs_are_a_table_and_colours(opened: Callable[..., AppTest]) -> None:
    app = opened(model=f"sample:{SAMPLE}", step="9999", view="performance", timeline="cost")
    assert "MACs so far" in page_text(app)
    rows = sent(app, "cost_rows")
    assert rows["titles"][2] == "MACs in all"
    dearest = rows["cells"][0]
    assert dearest[:2] == ["memory", "LSTMCell"]
    assert int(dearest[2]) == 112 * int(dearest[3])
    app.button_group("node_colours_cost").select("MACs").run()
    overlay = app.session_state["loopscope"].canvas.pictured[1]
    assert overlay.scale[:2] == ["MACs", "number"]
    assert max(tint[1] for tint in overlay.tints.values()) == 8
    app.button_group("node_colours_cost").unselect("MACs").run()
    assert not app.session_state["loopscope"].canvas.pictured[1].tints


def test_the_page_of_a_node_shows_its_weights(opened: Callable[..., AppTest]) -> None:
    app = opened(model=f"sample:{SAMPLE}", node="main/while_it_sings/body/memory", tab="node")
    words = page_text(app)
    assert words.count('alt="histogram"') == 3
    downloads = [one.proto.id for one in app.get("download_button")]
    assert sum("weight_download" in name for name in downloads) == 3


@pytest.mark.browser
def test_a_click_on_a_cost_shows_its_operation(page: Page, server: str) -> None:
    canvas = open_sample(page, server, SAMPLE, step="9999", view="performance", timeline="cost")
    page.get_by_role("radio", name="MACs").click()
    expect(canvas.locator(".scale")).to_contain_text("MACs", timeout=LONG)
    page.locator(".st-key-cost_rows tbody tr").first.click()
    expect(canvas.locator(".box.selected")).to_have_count(1)
