"""``--watch`` opens a changed file again at the same moment and view."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from loopscope.ir import graphs
from loopscope.read import WeightsFile
from loopscope_app.cli import main
from loopscope_app.state import model_in_use
from loopscope_app.state.launch import LAUNCH
from loopscope_samples import FOLDER
from tests.app.components import sent

Visit = Callable[..., AppTest]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a sample that is watched."""
    for path in (FOLDER / "collatz").glob("model.*"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(LAUNCH, "model", str(tmp_path / "model.xml"))
    monkeypatch.setattr(LAUNCH, "watch", True)
    monkeypatch.setattr(WeightsFile, "maps", False)
    monkeypatch.setattr(model_in_use, "REST", 0.0)
    return tmp_path / "model.xml"


def write(model: Path, text: str) -> None:
    """Write the description with another size, as an exporter does."""
    model.write_text(text, encoding="utf-8")


def look(app: AppTest) -> None:
    """Draw the page, with the look at the file that its timer repeats."""
    app.run()
    assert not app.exception, app.exception


def shown(app: AppTest) -> dict[str, str]:
    moment: dict[str, str] = sent(app, "address_bar")["moment"]
    return moment


def test_a_changed_file_is_shown_at_the_same_moment_and_view(opened: Visit, model: Path) -> None:
    app = opened(step="20", node="main/while_not_one/body/floor_mod", panel="breakpoints")
    before, text = shown(app), model.read_text("utf-8")
    assert (before["step"], before["node"]) == ("20", "main/while_not_one/body/floor_mod")
    write(model, text.replace('name="next_steps"', 'name="more_steps_than_before"'))
    look(app)
    session = app.session_state["loopscope"]
    nodes = [
        node.name for place in graphs(session.model.opened.model) for node in place.graph.nodes
    ]
    assert "more_steps_than_before" in nodes
    assert shown(app) == before
    assert session.message is None


def test_a_half_written_file_leaves_the_last_state_and_one_sentence(
    opened: Visit, model: Path
) -> None:
    app = opened(step="20")
    before, text = shown(app), model.read_text("utf-8")
    write(model, text[: len(text) // 2])
    look(app)
    session = app.session_state["loopscope"]
    assert session.message is not None
    assert session.message.text.startswith("the file changed and cannot be read, so its last state")
    assert "\n" not in session.message.text
    assert shown(app) == before
    model.unlink()  # a writer that replaces the file
    look(app)
    assert shown(app) == before
    write(model, text + "\n")
    look(app)
    assert session.message is None
    assert shown(app) == before


def test_shortened_weights_are_a_sentence_and_not_the_end_of_the_process(
    opened: Visit, model: Path
) -> None:
    app = opened(step="20")
    before = shown(app)
    model.with_suffix(".bin").write_bytes(b"")
    look(app)
    session = app.session_state["loopscope"]
    assert session.message is not None
    assert "weights" in session.message.text
    assert shown(app) == before
    session.run.at_rest.seek(0)


def test_a_file_that_still_changes_is_not_opened(
    opened: Visit, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_in_use, "REST", 60.0)
    app = opened()
    first = app.session_state["loopscope"].model.opened
    write(model, model.read_text("utf-8") + " ")
    look(app)
    assert app.session_state["loopscope"].model.opened is first


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--watch"], "--watch needs a model: expected MODEL before it"),
        (["m.xml", "--watch", "--server"], "--watch applies to a file of this machine"),
        (["https://h.example/m.onnx", "--watch"], "--watch applies to a file of this machine"),
    ],
)
def test_what_cannot_be_watched(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert sentence in capsys.readouterr().err
