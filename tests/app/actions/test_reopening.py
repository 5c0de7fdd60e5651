"""A saved run opens in the app at its moment, with all that was set, and tells when this machine
computes something else.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope.explain import iteration_matrix
from loopscope.ops import NOT_KEPT
from loopscope.run_file import saving
from loopscope_app.describe.lane_chart import matrix_chart
from loopscope_samples import sample
from tests.app.components import sent, tabs
from tests.engine.run_file.test_without_weights import dense

Visit = Callable[..., AppTest]
UNROLLED = {"unroll": '[["main/for_each_word",1,2]]', "timeline": "schedule"}


def saved(folder: Path, breakpoints: int = 25) -> Path:
    found = sample("decoder")
    assert found is not None
    inputs = next(iter(found.sets)).arrays()
    before = loopscope.Debugger(loopscope.read_model(found.model), inputs)
    before.run()
    place = "main/for_each_word[2]/body/next_word"
    debugger = loopscope.Debugger(
        before.model,
        inputs,
        seed=3,
        changes={place: before.value("main/for_each_word[1]/body/next_word")},
    )
    debugger.run()
    for number in range(breakpoints):
        debugger.breakpoints.add(
            "main/for_each_word[4]/body/next_word", f"iteration > {number}", on=number > 0
        )
    debugger.watches.add("iteration + 1")
    debugger.seek(20)
    loopscope.save(debugger, folder / "decoder.loopscope", look=UNROLLED)
    return folder / "decoder.loopscope"


def page_text(app: AppTest) -> str:
    return " ".join(str(one.proto.body) for one in app.get("html"))


def test_everything_comes_back(opened: Visit, tmp_path: Path) -> None:
    app = opened(model=str(saved(tmp_path)), panel="breakpoints")
    told = sent(app, "address_bar")["moment"]
    assert told["step"] == "20"
    assert json.loads(told["unroll"]) == [["main/for_each_word", 1, 2]]
    assert told["timeline"] == "schedule"
    assert list(json.loads(told["whatif"])) == ["main/for_each_word[2]/body/next_word"]
    assert json.loads(told["watches"]) == ["iteration + 1"]
    tabs(app, "dock_tab").set_value("Setup").run()
    assert len(app.checkbox) == 25, "a file has room for more than a link"
    assert [one.value for one in app.checkbox][:2] == [False, True]
    assert not app.info
    assert not app.error


def test_a_difference_is_told(opened: Visit, tmp_path: Path) -> None:
    file = saved(tmp_path, breakpoints=0)
    with zipfile.ZipFile(file) as archive:
        contents = {
            name: archive.read(name)
            for name in archive.namelist()
            if not name.startswith("recording")
        }
    data = json.loads(contents["run.json"])
    data["files"] = {name: digest for name, digest in data["files"].items() if name in contents}
    data["control_flow"][0][1] = 99
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {**contents, "run.json": json.dumps(data).encode()}.items():
            archive.writestr(name, content)
    app = opened(model=str(file))
    assert "99 times" in " ".join(one.value for one in app.info)


def test_a_file_that_is_none_is_refused_in_a_sentence(opened: Visit, tmp_path: Path) -> None:
    (tmp_path / "x.loopscope").write_bytes(b"PK\x03\x04 nothing")
    app = opened(model=str(tmp_path / "x.loopscope"))
    assert "it cannot be opened as a saved run" in " ".join(one.value for one in app.error)


def test_a_file_without_weights_opens_at_its_moment_and_says_what_is_not_kept(
    opened: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    debugger = dense()
    debugger.seek(30)
    loopscope.save(debugger, tmp_path / "dense.loopscope", weights=False)
    app = opened(model=str(tmp_path / "dense.loopscope"))
    assert sent(app, "address_bar")["moment"]["step"] == "30"
    app = opened(
        model=str(tmp_path / "dense.loopscope"), node="main/layers/body/shifted", step="29"
    )
    assert sent(app, "address_bar")["moment"]["step"] == "29"
    assert "not kept" in page_text(app)
    assert not app.error


def test_without_weights_nothing_is_called_equal_that_could_not_be_computed(
    opened: Visit, tmp_path: Path
) -> None:
    loopscope.save(dense(), tmp_path / "dense.loopscope", weights=False)
    app = opened(model=str(tmp_path / "dense.loopscope"))
    app.segmented_control("view_bar").set_value("compare").run()
    app.selectbox("compare_with").select("random seed 0").run()
    text = page_text(app)
    assert "The other run did not finish: " in text
    assert "not kept: it depends on weights" in text
    assert "values are equal" not in text


def test_what_is_not_kept_has_no_shape_in_a_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    loopscope.save(dense(), tmp_path / "dense.loopscope", weights=False)
    found = iteration_matrix(loopscope.load(tmp_path / "dense.loopscope"), "main/layers")
    assert any(
        cell is not None and cell.value is NOT_KEPT for row in found.rows for cell in row.cells
    )
    assert not [lane.name for lane in matrix_chart(found)[0].lanes if lane.name == "shape"], (
        "every value keeps its shape"
    )
