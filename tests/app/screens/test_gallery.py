"""The first screen: every sample is offered, opens, and can be left again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.state.launch import LAUNCH
from sample_models import FOLDER, samples

PAGES = Path(__file__).parents[2] / "engine" / "read" / "files" / "pages"
Visit = Callable[..., AppTest]


def test_every_sample_has_a_card(opened: Visit) -> None:
    app = opened()
    assert {button.key for button in app.button if str(button.key).startswith("open_")} == {f"open_{one.name}" for one in samples()}


@pytest.mark.parametrize("name", [one.name for one in samples()])
def test_every_sample_opens_and_runs(opened: Visit, name: str) -> None:
    app = opened(model=f"sample:{name}")
    app.button("transport_run").click().run()
    assert not app.exception
    assert not app.error


def test_a_card_opens_its_sample_and_the_way_back_closes_it(opened: Visit) -> None:
    app = opened()
    app.button("open_collatz").click().run()
    assert app.query_params["model"] == "sample:collatz"
    app.button("header_close").click().run()
    assert not app.exception
    assert any(button.key == "open_collatz" for button in app.button)


def test_a_path_opens_a_model(opened: Visit) -> None:
    app = opened()
    app.text_input("opener_path").set_value(str(FOLDER / "if_add" / "model.xml")).run()
    assert app.query_params["model"] == str(FOLDER / "if_add" / "model.xml")


def test_a_wrong_path_is_a_sentence(opened: Visit) -> None:
    app = opened()
    app.text_input("opener_path").set_value("/nowhere/model.xml").run()
    assert not app.exception
    assert "there is no such file" in app.error[0].value


def test_a_server_offers_no_paths(opened: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LAUNCH, "server", True)
    assert not opened().text_input
    refused = opened(model=str(FOLDER / "if_add" / "model.xml"))
    assert "samples and uploads only" in refused.error[0].value


def test_an_upload_opens_a_model(opened: Visit) -> None:
    app = opened()
    folder = FOLDER / "if_add"
    files = [(name, (folder / name).read_bytes(), "application/octet-stream") for name in ("model.xml", "model.bin")]
    app.file_uploader("opener_upload").set_value(files).run()
    assert not app.exception
    assert not app.error
    assert any(button.key == "transport_step" for button in app.button)


def test_an_unknown_sample_in_a_link_is_a_sentence(opened: Visit) -> None:
    assert "no sample named" in opened(model="sample:nothing").error[0].value


def test_a_pasted_layer_opens_as_a_model(opened: Visit) -> None:
    app = opened()
    app.button("opener_text_open").click().run()
    assert "the text field is empty" in app.info[0].value
    app.text_area("opener_text").set_value((PAGES / "if_8.xml").read_text()).run()
    app.button("opener_text_open").click().run()
    assert not app.exception
    assert not app.error
    app.button("transport_run").click().run()
    assert not app.error


def test_a_pasted_text_that_is_no_layer_is_a_sentence(opened: Visit) -> None:
    app = opened()
    app.text_area("opener_text").set_value("<layer>\n<input></layer>").run()
    app.button("opener_text_open").click().run()
    assert not app.exception
    assert "pasted.xml, line 2: this is not well-formed XML" in app.error[0].value.replace("\\:", ":")
