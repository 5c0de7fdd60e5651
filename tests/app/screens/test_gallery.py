"""The first screen: every sample is offered, opens, and can be left again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from loopscope_app.parts import gallery
from loopscope_app.state.launch import LAUNCH
from loopscope_samples import FOLDER, SECTIONS, sample_traces, samples
from tests.app.browsing import LONG
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text

PAGES = Path(__file__).parents[2] / "engine" / "read" / "files" / "pages"
Visit = Callable[..., AppTest]


def test_every_sample_has_a_card(opened: Visit) -> None:
    app = opened()
    assert {button.key for button in app.button if str(button.key).startswith("open_")} == {
        f"open_{name}"
        for name in [
            *(one.name for one in samples()),
            *(trace.name for trace in sample_traces()),
        ]
    }


@pytest.mark.parametrize("name", [one.name for one in samples()])
def test_every_sample_opens_and_runs(opened: Visit, name: str) -> None:
    app = opened(model=f"sample:{name}")
    app.button("transport_run").click().run()
    assert not app.exception
    assert not app.error


def test_a_sample_trace_opens_at_its_end_and_knows_what_to_compare_it_with(opened: Visit) -> None:
    for trace in sample_traces():
        app = opened(model=f"sample:{trace.name}")
        assert not app.exception
        assert not app.error
        other = app.session_state["loopscope"].model.other
        assert other.link == f"sample:{trace.other}"


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


@pytest.mark.parametrize("path", ["/nowhere/model.xml", "a" * 5000, "~no_such_user/model.xml"])
def test_a_wrong_path_is_a_sentence(opened: Visit, path: str) -> None:
    app = opened()
    app.text_input("opener_path").set_value(path).run()
    assert not app.exception
    assert "there is no such file" in app.error[0].value


@pytest.mark.parametrize(
    "path", ['"', "'", '""', "  ", ".", "/", '"."', "circle.xml", "circle.xml/model.xml"]
)
@pytest.mark.parametrize("by", ["address", "field"])
def test_a_path_of_no_file_is_a_sentence(
    opened: Visit, path: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "circle.xml").symlink_to("circle.xml")
    monkeypatch.chdir(tmp_path)
    if by == "address":
        app = opened(model=path)
    else:
        app = opened()
        app.text_input("opener_path").set_value(path).run()
    assert not app.exception
    said = " ".join(one.value for one in app.error)
    assert "went wrong" not in said
    assert re.search("path of the model is empty|this is a folder|there is no such file", said) or (
        by == "field" and not path.strip()
    )


def test_a_server_shows_no_folders(opened: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    path = FOLDER / "gcd" / "model.xml"
    monkeypatch.setattr(LAUNCH, "server", True)
    monkeypatch.setattr(LAUNCH, "model", str(path))
    app = opened()
    assert app.query_params["model"] == "model.xml"
    assert not app.error
    assert str(path.parent) not in page_text(app)
    again = opened(model="model.xml", step="3")
    assert not again.error
    refused = opened(model=str(path))
    assert "samples and uploads only" in refused.error[0].value
    monkeypatch.setattr(LAUNCH, "model", str(path.with_name("missing.xml")))
    assert opened().error[0].value.replace("\\", "") == "missing.xml: there is no such file"


def test_a_server_offers_no_paths(opened: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LAUNCH, "server", True)
    assert not opened().text_input
    refused = opened(model=str(FOLDER / "if_add" / "model.xml"))
    assert "samples and uploads only" in refused.error[0].value


def test_an_upload_opens_a_model(opened: Visit) -> None:
    app = opened()
    folder = FOLDER / "if_add"
    files = [
        (name, (folder / name).read_bytes(), "application/octet-stream")
        for name in ("model.xml", "model.bin")
    ]
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
    assert "pasted.xml, line 2: this is not well-formed XML" in app.error[0].value.replace(
        "\\:", ":"
    )


def recent_titles(app: AppTest) -> list[str]:
    return [row["title"] for row in sent(app, "recent")["rows"]]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has not opened anything."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_what_was_opened_is_offered_again(opened: Visit, fresh: Path) -> None:
    assert not [button for button in opened().button if button.key == "recent_forget"]
    app = opened()
    app.text_input("opener_path").set_value(str(FOLDER / "if_add" / "model.xml")).run()
    assert not app.error
    opened(model=str(FOLDER / "gcd" / "model.xml"))
    app = opened()
    assert recent_titles(app) == ["gcd/model.xml", "if_add/model.xml"]
    app.button("recent_forget").click().run()
    assert not [button for button in app.button if button.key == "recent_forget"]


def test_a_server_remembers_nothing_and_shows_nothing(
    opened: Visit, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(model=str(FOLDER / "if_add" / "model.xml"))
    assert (fresh / "loopscope").exists()
    monkeypatch.setattr(LAUNCH, "server", True)
    assert not [button for button in opened().button if button.key == "recent_forget"]
    written = (fresh / "loopscope" / "recent.json").read_bytes()
    monkeypatch.setattr(LAUNCH, "model", str(FOLDER / "gcd" / "model.xml"))
    assert not opened().error
    assert (fresh / "loopscope" / "recent.json").read_bytes() == written


def test_a_choice_leaves_the_samples_that_have_it(opened: Visit) -> None:
    app = opened()
    app.selectbox("gallery_source").select("ONNX").run()
    shown = {str(button.key) for button in app.button if str(button.key).startswith("open_")}
    assert shown == {f"open_{one.name}" for one in samples() if one.source == "ONNX"}
    app.selectbox("gallery_teaches").select("training").run()
    assert "No sample matches this filter." in " ".join(
        str(one.proto.body) for one in app.get("html")
    )
    app.button("gallery_all").click().run()
    cards = [button for button in app.button if str(button.key).startswith("open_")]
    assert len(cards) == len(samples()) + len(sample_traces())


@pytest.mark.parametrize(
    "data", [None, 3, {"text": 3, "emptied": 0}, {"text": "x"}, {"text": "x", "emptied": 1}]
)
def test_what_the_browser_sends_is_looked_at(data: object) -> None:
    assert gallery.read_words(data, 0) == ""


@pytest.mark.browser
def test_typing_searches_and_show_all_empties_the_field(page: Page, server: str) -> None:
    page.goto(server)
    field = page.get_by_label("Search the samples")
    field.press_sequentially("mamba", delay=30)
    expect(page.get_by_text(f"2 of {len(samples())} samples")).to_be_visible(timeout=LONG)
    expect(field).to_have_value("mamba")
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_text("Why 7, and not 12?", exact=True)).to_be_visible(timeout=LONG)
    expect(field).to_have_value("")
    field.fill("collatz")
    page.get_by_role("button", name="Open Why 7, and not 12?").click()
    expect(page.locator(".st-key-canvas_graph .box").first).to_be_visible(timeout=LONG)


DROP = """([text, inside]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], "dropped.onnx"));
  const at = document.querySelector(inside);
  const event = (name) => new DragEvent(name, { dataTransfer: files, bubbles: true, cancelable: true, composed: true });
  at.dispatchEvent(event("dragover"));
  const seen = [...document.querySelectorAll("*")].some((one) => one.shadowRoot?.querySelector(".loopscope-drop.shown"))
    || document.querySelector(".loopscope-drop.shown") !== null;
  at.dispatchEvent(event("drop"));
  return seen;
}"""


@pytest.mark.browser
def test_a_file_opens_that_is_dropped_anywhere(page: Page, server: str) -> None:
    page.goto(server)
    expect(page.get_by_role("button", name="Open Why 7, and not 12?")).to_be_visible(timeout=LONG)
    layer = (PAGES / "if_8.xml").read_text()
    # The page listens a little after its first words are there: the drop is done again until it is
    # seen.
    page.wait_for_function(
        DROP.replace("dropped.onnx", "dropped.xml"),
        arg=[layer, ".ls h1"],
        polling=500,
        timeout=LONG,
    )
    expect(page.locator(".st-key-canvas_graph .box").first).to_be_visible(timeout=LONG)
    expect(page.get_by_text("dropped.xml").first).to_be_visible()


def test_the_cards_have_sections_and_sizes(opened: Visit) -> None:
    text = page_text(opened())
    places = [text.find(f'<div class="section">{section}</div>') for section in SECTIONS]
    assert places == sorted(places)
    assert places[0] >= 0
    assert "12 operations, 1 loop, 1 If · PyTorch" in text


@pytest.mark.browser
def test_a_file_that_is_dropped_beside_an_open_model_is_opened_after_a_question(
    page: Page, server: str
) -> None:
    page.goto(f"{server}/?model=sample:collatz")
    expect(page.locator(".st-key-canvas_graph .box").first).to_be_visible(timeout=LONG)
    question = page.get_by_role("dialog", name="Open the dropped file")
    layer = (PAGES / "if_8.xml").read_text()

    def drop(name: str) -> None:
        page.wait_for_function(
            DROP.replace("dropped.onnx", name),
            arg=[layer, ".st-key-canvas_graph"],
            polling=500,
            timeout=LONG,
        )

    drop("notes.txt")
    expect(page.get_by_text("notes.txt is not a model")).to_be_visible(timeout=LONG)
    drop("dropped.xml")
    expect(question.get_by_text("Open dropped.xml?")).to_be_visible(timeout=LONG)
    expect(question.get_by_role("button", name="Open")).to_be_focused()
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    expect(page.get_by_text("Why 7, and not 12?").first).to_be_visible()
    drop("dropped.xml")
    page.keyboard.press("Enter")
    expect(page.get_by_text("dropped.xml").first).to_be_visible(timeout=LONG)
