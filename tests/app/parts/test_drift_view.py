"""Compare with another model, with values rounded, with a runtime: the verdict, the picture,
both sides of a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope import builder
from loopscope.comparison import Spot
from loopscope.transform.rounding import rounded
from loopscope_app.describe.node_index import places
from loopscope_app.parts.inspector.rounding_menu import patterns
from loopscope_app.state.compare_choice import MODEL, ROUNDED, RUNTIME
from loopscope_samples import FOLDER
from tests.app.browsing import open_sample, place
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text

Visit = Callable[..., AppTest]


@pytest.fixture
def compared(opened: Visit, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Compare of a sample with one of the choices, once it is done."""
    monkeypatch.setattr("loopscope_app.actions.other_runs.PATIENCE", 60.0)

    def visit(sample: str, choice: str, **widgets: str) -> AppTest:
        app = opened(model=f"sample:{sample}", step="9999", lens="compare")
        app.selectbox("compare_with").select(choice).run()
        for key, text in widgets.items():
            app.text_input(key).set_value(text).run()
        app.button("compare_run").click().run()
        assert not app.exception
        return app

    return visit


def test_values_rounded_to_a_narrower_type(compared: Callable[..., AppTest]) -> None:
    app = compared("linear_attention", ROUNDED, compare_round_what="main/*/S")
    assert "Begins in <code>for_each_token</code> at iteration 1 in <code>S</code>" in page_text(
        app
    )
    chart = sent(app, "drift")
    assert chart["lanes"][0]["name"] == "S"
    assert [block[2] for block in chart["lanes"][0]["blocks"]] == ["heat"] * 12
    assert chart["lanes"][0]["blocks"][0][5] == "iteration 0: equal"
    assert chart["lanes"][0]["blocks"][1][3] < 0, "beyond the tolerance"
    assert sent(app, "drift_lines")["rows"][0]["role"] == "begins here"


def test_a_pattern_that_names_nothing_is_said(compared: Callable[..., AppTest]) -> None:
    app = compared("linear_attention", ROUNDED, compare_round_what="main/nothing")
    assert "it names no value of floats" in app.error[0].value


def written(folder: Path, name: str, factor: float, least: float) -> Path:
    """A loop that multiplies until a bound is reached; models of other names have other names
    inside.
    """
    graph = builder.Graph(name)
    start = graph.parameter("x", "f32", [])
    last = builder.while_loop(
        lambda a: a < least,
        lambda a: [builder.ops.multiply(a, factor, name=f"{name}_grown")],
        [start],
        name=name,
    )[0]
    path = folder / f"{name}.xml"
    loopscope.write_model(graph.model({"y": last}), path)
    return path


def test_another_model(opened: Visit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("loopscope_app.actions.other_runs.PATIENCE", 60.0)
    app = opened(model=str(written(tmp_path, "before", 1.5, 40.0)), step="9999", lens="compare")
    app.selectbox("compare_with").select(MODEL).run()
    app.button("compare_run").click().run()
    assert "expected another model" in app.error[0].value
    app.text_input("compare_other_path").set_value(str(written(tmp_path, "after", 1.2, 80.0))).run()
    assert "The other model: <b>after.xml</b>" in page_text(app)
    app.button("compare_run").click().run()
    assert not app.exception
    roles = [row["role"] for row in sent(app, "drift_lines")["rows"]]
    assert roles[0] == "begins here"
    assert "other count" in roles
    matched = next(one.value for one in app.dataframe if "the other" in one.value)
    assert ("before › before_grown", "after › after_grown") in set(
        zip(matched["this"], matched["the other"], strict=True)
    )


def test_a_runtime_beside_every_iteration(compared: Callable[..., AppTest]) -> None:
    app = compared("swap", RUNTIME)
    assert sent(app, "against")["rows"]
    assert sent(app, "drift")["lanes"]
    run = app.session_state["loopscope"].run
    pair = next(
        number for number, one in enumerate(run.drifted.drift.pairs) if one.one.endswith("/right")
    )
    assert run.drifted.there(Spot(pair, 1)) != run.drifted.one.value(
        "main/swap_each_round[1]/body/right"
    )


def test_what_can_be_rounded_from_a_place() -> None:
    model = loopscope.read_model(FOLDER / "linear_attention" / "model.xml")
    found = dict(patterns(model, places(model)["main/for_each_token/body/S"]))
    assert found == {
        "main/for_each_token/body/S": "what is carried to S in each iteration",
        "main/for_each_token/body/*": "everything in for\\_each\\_token",
        "*": "the whole model",
    }
    weight = {
        pattern
        for at in places(model).values()
        for pattern, words in patterns(model, at)
        if "the weight" in words
    }
    for pattern in (*found, *weight):
        rounded(model, {pattern: "int4"})


@pytest.mark.browser
def test_a_click_opens_both_moments(page: Page, server: str) -> None:
    open_sample(page, server, "linear_attention", step="9999", node="main/for_each_token/body/S")
    page.locator(".st-key-dock").get_by_test_id("stPopoverButton").first.click()
    page.get_by_role("combobox", name="What if this were rounded").click()
    page.get_by_role("option", name="the whole model").click()
    page.get_by_role("button", name="Round and compare").click()
    expect(page.get_by_text("The outputs are at most")).to_be_visible(timeout=30_000)
    expect(page.locator(".st-key-compare_round_what input")).to_have_value("*")
    picture = page.locator(".st-key-drift canvas")
    picture.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = picture.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.98, box["y"] + 2 + 5 * 17 + 8)
    moments = page.locator(".st-key-both_moments")
    expect(moments).to_contain_text("for_each_token · iteration 11 › S")
    expect(moments).to_contain_text("everything rounded to bf16", ignore_case=True)
    expect(moments.locator("img.heat")).to_have_count(2)
    expect(place(page)).to_contain_text("iteration 11")
    page.locator(".st-key-drift_lines .line", has_text="begins here").click()
    expect(moments).to_contain_text("scaled_query")
