"""Compare with another model, with values rounded, with a runtime: verdict, picture, both values."""

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
from loopscope_app.parts.inspector.node_page import patterns
from loopscope_app.state.view_choices import MODEL, ROUNDED, RUNTIME
from loopscope_samples import FOLDER
from tests.app.browsing import LONG, open_sample, place
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text

Visit = Callable[..., AppTest]


@pytest.fixture
def compared(opened: Visit, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Return a visit that compares a sample with a run of a kind."""
    for module in ("other_runs", "side_by_side"):
        monkeypatch.setattr(f"loopscope_app.actions.{module}.PATIENCE", 60.0)

    def visit(sample: str, kind: str, **widgets: str) -> AppTest:
        app = opened(model=f"sample:{sample}", step="9999", view="compare")
        app.segmented_control("compare_kind").set_value(kind).run()
        for key, text in widgets.items():
            app.text_input(key).set_value(text).run()
        app.button("compare_run").click().run()
        assert not app.exception
        return app

    return visit


def test_values_rounded_to_a_narrower_type(compared: Callable[..., AppTest]) -> None:
    app = compared("linear_attention", ROUNDED, compare_round_what="main/*/S")
    assert "<b>First difference: iteration 1 › S</b>" in page_text(app)
    assert "The outputs are at most" in page_text(app)
    rows = sent(app, "compare_differences")
    assert rows["titles"] == ["value", "iteration", "here", "there"]
    assert rows["cells"][0][:2] == ["S", "1"]
    app.segmented_control("compare_shown").set_value("By iteration").run()
    chart = sent(app, "drift")
    assert chart["lanes"][0]["name"] == "S"
    assert [block[2] for block in chart["lanes"][0]["blocks"]] == ["heat"] * 12
    assert chart["lanes"][0]["blocks"][0][5] == "iteration 0: equal"
    assert chart["lanes"][0]["blocks"][1][3] < 0, "beyond the tolerance"
    app.button("drift_largest").click().run()
    assert not app.exception
    assert app.segmented_control("compare_shown").value == "Both values"
    assert "of the largest magnitude apart" in page_text(app)


def test_a_pattern_that_names_nothing_is_an_error(compared: Callable[..., AppTest]) -> None:
    app = compared("linear_attention", ROUNDED, compare_round_what="main/nothing")
    assert "matches no float value" in app.error[0].value


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
    app = opened(model=str(written(tmp_path, "before", 1.5, 40.0)), step="9999", view="compare")
    app.segmented_control("compare_kind").set_value(MODEL).run()
    app.button("compare_run").click().run()
    assert "expected another model" in app.error[0].value
    app.text_input("compare_other_path").set_value(str(written(tmp_path, "after", 1.2, 80.0))).run()
    app.button("compare_run").click().run()
    assert not app.exception
    assert "The loop runs <b>" in page_text(app)
    names = [cells[0] for cells in sent(app, "compare_differences")["cells"]]
    assert "before (iterations)" in names
    tapes = sent(app, "compare_tapes")["lanes"]
    assert [lane["name"] for lane in tapes[:2]] == ["here", "after.xml"]
    assert len(tapes[0]["blocks"]) < len(tapes[1]["blocks"])
    matched = next(table.value for table in app.dataframe if "there" in table.value)
    assert ("before › before_grown", "after › after_grown") in set(
        zip(matched["here"], matched["there"], strict=True)
    )
    app.segmented_control("compare_shown").set_value("Structure").run()
    changes = sent(app, "structure_changes")
    assert ["before_grown", "Multiply", "input 1: other stored values"] in changes["cells"]
    assert changes["now"] is not None
    scale = sent(app, "compare_graph_overlay")["scale"]
    assert scale == ["Structure", "change", "added", "removed", "changed"]


def test_a_runtime_beside_every_iteration(compared: Callable[..., AppTest]) -> None:
    app = compared("swap", RUNTIME)
    assert "First difference: swap_each_round · iteration 1 › right</b>, 1 here, 2 there" in (
        page_text(app)
    )
    cells = sent(app, "compare_differences")["cells"]
    assert cells[0] == ["right", "1", "1", "2"]
    assert ["right_at_the_end (output)", "", "1", "2"] in cells
    course = sent(app, "compare_tapes")["lanes"][2]
    assert course["line"] != course["second_line"]
    run = app.session_state["loopscope"].run
    pair = next(
        number for number, pair in enumerate(run.drifted.drift.pairs) if pair.one.endswith("/right")
    )
    assert run.drifted.there(Spot(pair, 1)) != run.drifted.run.value(
        "main/swap_each_round[1]/body/right"
    )


def test_what_can_be_rounded_from_a_place() -> None:
    model = loopscope.read_model(FOLDER / "linear_attention" / "model.xml")
    found = dict(patterns(model, places(model)["main/for_each_token/body/S"]))
    assert found == {
        "main/for_each_token/body/S": "what is carried to S in each iteration",
        "main/for_each_token/body/*": "everything in for_each_token",
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
def test_a_cell_shows_both_values(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=sample:linear_attention&view=compare&with=precision")
    page.locator(".st-key-compare_run button").first.click(timeout=LONG)
    expect(page.get_by_text("The outputs are at most")).to_be_visible(timeout=LONG)
    page.get_by_role("radio", name="By iteration").click(force=True)
    picture = page.locator(".st-key-drift canvas")
    expect(picture).to_be_visible(timeout=LONG)
    page.wait_for_timeout(400)
    box = picture.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.98, box["y"] + 2 + 5 * 17 + 8)
    values = page.locator(".st-key-both_moments")
    expect(values).to_contain_text("for_each_token · iteration 11 › S", timeout=LONG)
    expect(values).to_contain_text("everything rounded to bf16", ignore_case=True)
    expect(values.locator("img.heat")).to_have_count(2)
    page.get_by_role("button", name="Open in Debug").click()
    expect(place(page)).to_contain_text("iteration 11", timeout=LONG)


@pytest.mark.browser
def test_a_rounding_chosen_at_a_node_opens_compare(page: Page, server: str) -> None:
    open_sample(
        page,
        server,
        "linear_attention",
        step="9999",
        node="main/for_each_token/body/S",
        tab="node",
    )
    page.locator(".st-key-node_menu button").first.click(timeout=LONG)
    page.get_by_role("combobox", name="What if this were rounded").click()
    page.get_by_role("option", name="the whole model").click()
    page.get_by_role("button", name="Round and compare").click()
    expect(page.get_by_text("The outputs are at most")).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-compare_round_what input")).to_have_value("*")
