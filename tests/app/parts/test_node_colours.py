"""Others' data about nodes in the app: from the command, from an upload, by iteration while it
plays, and away again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from loopscope_app.cli import main
from loopscope_app.state.launch import LAUNCH
from loopscope_samples import sample
from tests.app.browsing import open_sample

LOOP = "main/while_not_one"


def said(app: AppTest) -> str:
    return "".join(one.value for one in (*app.info, *app.error))


def test_the_command_names_a_file(
    opened: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = sample("collatz")
    assert found is not None
    file = tmp_path / "cost.json"
    monkeypatch.setattr(LAUNCH, "model", str(found.model))
    monkeypatch.setattr(LAUNCH, "overlay", str(file))
    file.write_text(json.dumps({"floor_mod": 1, "equal": 3, "nowhere": 2}))
    app = opened()
    overlay = app.session_state["loopscope"].canvas.pictured[1]
    assert sorted(tint[1] for tint in overlay.tints.values()) == [1, 8]
    assert overlay.scale == ["cost", "number", "1", "3"]
    assert "1 key of cost.json names nothing in this model, such as 'nowhere'" in said(app)
    file.write_text("[]")
    assert "the node data is not a JSON object" in said(opened())
    file.unlink()
    assert "No such file" in said(opened())


@pytest.mark.parametrize(
    "words", [["--overlay", "x.json"], ["{model}", "--overlay", "nowhere.json"]]
)
def test_a_file_must_be_there_and_belong_to_a_model(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = sample("collatz")
    assert found is not None
    assert main([word.format(model=found.model) for word in words]) == 2
    told = capsys.readouterr().err
    assert "--overlay needs a model" in told or "nowhere.json: No such file" in told


@pytest.mark.browser
def test_an_upload_colours_boxes_by_iteration_and_goes_away(
    page: Page, server: str, tmp_path: Path
) -> None:
    file = tmp_path / "<b>cost.json"
    by_iteration = {f"{LOOP}[{k}]/body/floor_mod": {"value": float(k)} for k in range(7)}
    file.write_text(json.dumps({"main": {"results": by_iteration | {"equal": {"value": 6.0}}}}))
    canvas = open_sample(page, server, "collatz", step="9999", lens="export")
    page.locator(".st-key-node_colours button").first.click()
    page.locator(
        ".st-key-node_colours_upload input[type=file], input[type=file]"
    ).last.set_input_files(file)
    scale = canvas.locator(".scale")
    expect(scale).to_contain_text("<b>cost")
    expect(scale).to_contain_text("06")  # from 0 to 6
    expect(canvas.locator(".box.number-8")).to_have_count(2)  # the last iteration has the largest
    page.keyboard.press("Escape")
    expect(page.locator(".st-key-node_colours_off")).not_to_be_visible()
    page.locator(".st-key-transport_restart button").first.click()
    box = canvas.locator(f".box[data-address='{LOOP}/body/floor_mod']")
    expect(canvas.locator(".box.number-8")).to_have_count(1)
    for _ in range(2):  # into the loop
        page.keyboard.press("ArrowRight")
    expect(canvas.locator(".box.number-1")).to_have_count(1)
    page.keyboard.press("Shift+ArrowRight")
    expect(canvas.locator(".box.number-2")).to_have_count(1)
    box.hover(force=True)
    expect(canvas.locator(".tooltip")).to_contain_text("<b>cost: 1")
    page.locator(".st-key-node_colours button").first.click()
    page.locator(".st-key-node_colours_off button").first.click()
    expect(scale).not_to_be_visible()
    expect(canvas.locator(".box.tint")).to_have_count(0)
