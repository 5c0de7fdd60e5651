"""Uploads without a browser: every kind of file opens or says in one sentence what to do
instead.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from onnx import parser
from streamlit.testing.v1 import AppTest

from loopscope.checks.diagnostic import Report
from loopscope.errors import InputError, ReadError
from loopscope_app.describe.input_parsing import read_arrays
from loopscope_app.state import uploads
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.open_model import Opened, open_sample
from loopscope_samples import FOLDER
from tests.app.components import in_drawer, tabs
from tests.engine.checks.samples import TWO_RANKS
from tests.engine.read.archives import many
from tests.engine.read.onnx_models import CASES

Visit = Callable[..., AppTest]


def zipped(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


IR = {name: (FOLDER / "decoder" / name).read_bytes() for name in ("model.xml", "model.bin")}
XML, BIN = IR.values()
ONNX = CASES[0].model().SerializeToString()


def _damaged(archive: bytes) -> bytes:
    """With other bytes in the middle of what is compressed."""
    middle = archive.index(b"model.xml") + 500
    return archive[:middle] + bytes(200) + archive[middle + 200 :]


def upload(app: AppTest, files: Mapping[str, bytes]) -> AppTest:
    app.file_uploader("opener_upload").set_value(
        [(name, data, "application/octet-stream") for name, data in files.items()]
    ).run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    "files",
    [
        IR,
        {"model.onnx": ONNX},
        {"both.zip": zipped(IR)},
        {
            "deep.zip": zipped(
                {
                    "a/b/model.xml": XML,
                    "a/b/model.bin": BIN,
                    "__MACOSX/a/b/model.xml": b"x",
                    "readme.txt": b"hello",
                }
            )
        },
        {"one.zip": zipped({"model.onnx": ONNX})},
        {"model.zip": zipped({"model.xml": XML}), "model.bin": BIN},
    ],
)
def test_a_model_opens(opened: Visit, files: dict[str, bytes]) -> None:
    app = upload(opened(), files)
    assert not app.error
    assert any(button.key == "transport_step" for button in app.button)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"model.xml": XML}, "upload it and model.bin together"),
        ({"broken.xml": XML[:900], "model.bin": BIN}, "not well-formed XML"),
        ({"page.xml": b"<html/>"}, "this is a web page"),
        ({"empty.xml": b""}, "empty file"),
        ({"noise.onnx": b"\0\1noise" * 99}, "binary data of an unknown kind"),
        ({"one.xml": XML, "other.xml": XML}, "2 models, 'one.xml', 'other.xml'"),
        ({**IR, "other.bin": BIN}, "2 files of weights"),
        ({"broken.zip": b"PK\3\4noise"}, "cannot be unpacked"),
        ({"damaged.zip": _damaged(zipped(IR))}, "cannot be unpacked"),
        ({"long.zip": many(200_000)}, "cannot be unpacked"),
        ({"escape.zip": zipped({"../saved_model.pb": b"x"})}, "leads out of the archive"),
        ({"nothing.zip": zipped({"readme.txt": b"hello"})}, "no model in it"),
        ({"two.zip": zipped({"a.xml": XML, "b.xml": XML})}, "2 models"),
        ({"lone.zip": zipped({"model.xml": XML})}, "upload it and model.bin together"),
    ],
)
def test_a_broken_upload_is_a_sentence(opened: Visit, files: dict[str, bytes], told: str) -> None:
    app = upload(opened(), files)
    assert told in app.error[0].value.replace("\\", "")
    assert "\n" not in app.error[0].value


def test_a_problem_names_the_file_that_was_uploaded(opened: Visit) -> None:
    app = upload(
        opened(), {"mine.xml": XML.replace(b'type="TopK"', b'type="TopQ"'), "mine.bin": BIN}
    )
    line = next(number for number, text in enumerate(XML.splitlines(), 1) if b'type="TopK"' in text)
    assert any(f"mine.xml:{line}" in text for text in _texts(app))
    assert app.button("header_problems").label == "1"
    assert not any(button.key == "header_generated" for button in app.button)


def test_a_model_without_anything_in_it_says_so(opened: Visit) -> None:
    app = upload(opened(), {"hollow.xml": b'<net name="hollow" version="11"><layers/></net>'})
    app.button("drawer_close").click().run()
    assert any("The model has no outputs." in text for text in _texts(app))


def test_notes_are_no_problems_to_be_counted(opened: Visit) -> None:
    app = upload(opened(), IR)
    assert app.session_state["loopscope"].model.opened.report.notes
    assert not any(button.key == "header_problems" for button in app.button)


def test_problems_of_a_runtime_are_told_where_it_is_chosen(opened: Visit) -> None:
    app = upload(opened(), {"model.onnx": parser.parse_model(TWO_RANKS).SerializeToString()})
    app = in_drawer(app, "Problems")
    assert any("No problems found." in text for text in _texts(app))
    choices: list[Any] = list(
        app.get("button_group")
    )  # AppTest has no type for the segmented control
    choice = next(one for one in choices if "findings about" in one.label)
    choice.set_value(["OpenVINO"]).run()
    assert app.run().button("header_problems").label == "2"
    assert any("at 2 places" in text for text in _texts(app))
    app.button("problem_show_LS607_1").click().run()
    assert app.session_state["loopscope"].canvas.selected == "main/If_1"


def test_inputs_that_nobody_has_given_are_said_to_be_made_up(opened: Visit) -> None:
    app = upload(opened(), IR)
    app.button("header_generated").click().run()
    assert tabs(app, "dock_tab").value == "Setup"
    app.button("inputs_run").click().run()
    assert not any(button.key == "header_generated" for button in app.button)


def test_weights_alone_ask_for_their_model(opened: Visit) -> None:
    app = upload(opened(), {"model.bin": BIN})
    assert "add the .xml" in app.info[0].value.replace("\\", "")
    app = upload(app, IR)
    assert not app.error
    assert not app.info


@pytest.mark.parametrize("name", ["empty.xml", "noise.onnx", "broken.xml", "n" * 300 + ".xml"])
@pytest.mark.parametrize("data", [b"", b"\0\1noise", XML[:900], XML])
def test_a_refusal_names_the_file_in_a_bearable_length(
    opened: Visit, name: str, data: bytes
) -> None:
    told = upload(opened(), {name: data}).error[0].value.replace("\\", "")
    assert told.startswith(name if len(name) < 60 else name[:57] + "...")
    assert len(told) < 400


@dataclass(frozen=True)
class Given:
    """A file in an uploader."""

    name: str
    number: int = 0

    @property
    def file_id(self) -> str:
        return f"{self.name} {self.number}"

    def getvalue(self) -> bytes:
        return self.name.encode()


@pytest.mark.parametrize(
    ("moments", "counts"),
    [
        ("a.xml | a.xml a.bin", "a.xml a.bin"),
        ("a.bin | a.bin a.xml", "a.bin a.xml"),
        ("broken.xml | broken.xml a.xml a.bin", "a.xml a.bin"),
        ("broken.xml broken.bin | broken.xml broken.bin a.onnx", "a.onnx"),
        ("a.xml | a.xml b.xml | a.xml b.xml b.bin", "b.xml b.bin"),
        ("a.xml wrong.bin | a.xml wrong.bin a.bin", "a.xml a.bin"),
        ("a.xml b.xml", "a.xml b.xml"),
        ("a.xml a.bin | a.xml", "a.xml"),
        ("a.xml | a.xml b.onnx | a.xml", ""),
        ("a.xml | a.xml b.onnx | b.onnx", "b.onnx"),
    ],
)
def test_what_comes_later_counts(moments: str, counts: str) -> None:
    given, found = uploads.Uploads(), ""
    for moment in moments.split(" | "):
        found = " ".join(name for name, _ in given.latest([Given(name) for name in moment.split()]))
    assert found == counts


def test_a_file_that_comes_again_counts_again() -> None:
    given = uploads.Uploads()
    given.latest([Given("a.xml")])
    given.latest([Given("a.xml"), Given("b.xml")])
    assert given.latest([Given("b.xml"), Given("a.xml", 1)]) == [("a.xml", b"a.xml")]


def test_an_archive_that_grows_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_UNPACKED", 1 << 20)
    with pytest.raises(ReadError, match="unpacks to more than"):
        uploads.model_among([("bomb.zip", zipped({"model.xml": bytes(2 << 20)}))])


def test_a_name_in_an_archive_is_only_a_name(opened: Visit) -> None:
    app = upload(
        opened(), {"odd.zip": zipped({"/a/../../model.xml": XML, "C:\\x\\..\\model.bin": BIN})}
    )
    assert not app.error
    assert any(button.key == "transport_step" for button in app.button)


def test_inputs_from_an_archive_with_a_long_directory_are_refused() -> None:
    with pytest.raises(InputError, match="not a file of plain arrays"):
        read_arrays("inputs.npz", many(200_000))


def test_what_one_session_opens_no_other_sees(opened: Visit) -> None:
    one = upload(opened(), {"secret.onnx": ONNX})
    other = opened(model="sample:collatz")
    other.button("transport_step").click().run()
    one.run()
    assert any("secret.onnx" in text for text in _texts(one))
    assert not any("secret.onnx" in text for text in _texts(other))
    third = opened(model="sample:collatz")
    steps = [app.session_state["loopscope"].run.debugger.cursor.step for app in (other, third)]
    assert steps == [1, 0]
    assert (
        other.session_state["loopscope"].run.debugger
        is not third.session_state["loopscope"].run.debugger
    )


def _texts(app: AppTest) -> list[str]:
    return [str(element.value) for element in (*app.markdown, *app.get("html")) if element.value]


def test_a_server_refuses_a_path_that_somebody_sends_all_the_same(
    opened: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened()
    monkeypatch.setattr(LAUNCH, "server", True)
    app.text_input("opener_path").set_value(str(FOLDER / "if_add" / "model.xml")).run()
    assert "samples and uploads only" in app.error[0].value
    assert app.session_state["loopscope"].model.opened is None


@pytest.mark.parametrize(
    ("title", "graph", "name"),
    [
        ("model.xml", "main", "model"),
        ("my net (2).onnx", "main/loop_7/body", "my_net_2_loop_7_body"),
        ("größe.xml", "main/a%2Fb/then", "größe_a_2Fb_then"),
        ("../.xml", "main", "xml"),
        ("?:<>.xml", "main", "model"),
        ("n" * 300, "main", "n" * 80),
    ],
)
def test_files_that_are_taken_away_are_called_after_the_model(
    title: str, graph: str, name: str
) -> None:
    made = Opened("", title, open_sample("swap").model, Report(()), {})
    assert made.file_name(graph) == name
    assert open_sample("swap").file_name() == "swap"
