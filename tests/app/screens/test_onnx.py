"""ONNX models in the app: every tab and drawer shows them, sequences too; so do the commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from loopscope_app.cli import main
from loopscope_app.state.view_choices import DOCK, DRAWER
from tests.app.components import in_drawer, sent, tabs
from tests.app.screens.test_debugger import page_text
from tests.engine.read.onnx_models import CASES, SEQUENCE
from tests.engine.read.test_beams import one_search
from tests.engine.read.test_searches import search

Visit = Callable[..., AppTest]
_CASES = {case.name: case for case in CASES}


def _written(folder: Path, name: str) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(_CASES[name].model().SerializeToString())
    return path


@pytest.mark.parametrize(
    "name", ["nested ifs True True", "loop 5 True", "scan", "functions", "sequences"]
)
def test_every_tab_and_drawer_shows_it(opened: Visit, tmp_path: Path, name: str) -> None:
    app = opened(model=str(_written(tmp_path, name)))
    for tab in DOCK.options:
        tabs(app, "dock_tab").set_value(tab).run()
        assert not app.exception, app.exception
    for drawer in DRAWER.options:
        assert not in_drawer(app, drawer).exception, app.exception


@pytest.mark.parametrize("origin", ["", "shown"])
@pytest.mark.parametrize(
    "node",
    [
        "main/SequenceInsert_3",
        "main/SequenceMap_4",
        "main/SequenceMap_4/body/v",
        "main/ConcatFromSequence_5",
    ],
)
def test_sequences_are_shown(opened: Visit, tmp_path: Path, node: str, origin: str) -> None:
    assert "SequenceMap" in SEQUENCE
    app = opened(
        model=str(_written(tmp_path, "sequences")),
        node=node,
        step="99",
        tab="node",
        origin=origin,
    )
    assert tabs(app, "dock_tab").value == "Node"
    assert f"<span>{node.rpartition('/')[2]}</span></h2>" in page_text(app)


def test_loopscope_runs_and_checks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = _CASES["loop 5 True"]
    path = _written(tmp_path, case.name)
    stored: dict[str, Any] = dict(case.inputs)
    np.savez(tmp_path / "in.npz", **stored)
    assert (
        main(
            [
                "run",
                str(path),
                "--inputs",
                str(tmp_path / "in.npz"),
                "--outputs",
                str(tmp_path / "out.npz"),
            ]
        )
        == 0
    )
    assert "5" in capsys.readouterr().out
    with np.load(tmp_path / "out.npz") as stored:
        assert stored["last"].tolist() == [6, 7, 8]
        assert stored["all"].shape == (5, 3)
    assert main(["check", str(path)]) == 0
    assert main(["check", str(path), "--json"]) == 0


@pytest.mark.parametrize("type", ["GreedySearch", "BeamSearch"])
def test_the_loop_in_a_function_is_the_one_whose_iterations_are_listed(
    opened: Visit, tmp_path: Path, type: str
) -> None:
    """The search is a function, whose body runs once."""
    path = tmp_path / "search.onnx"
    path.write_bytes(search() if type == "GreedySearch" else one_search()[0])
    app = opened(model=str(path), node=f"main/{type}_0", step="999999", tab="iterations")
    text = page_text(app)
    assert "has not begun" not in text
    assert "its iterations are listed here" not in text
    rows = sent(app, "loop_table")["cells"]
    assert f"</b> ran all {len(rows)} iterations" in text
    assert rows[-1][-1] == "no: trip count"
