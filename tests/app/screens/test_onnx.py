"""ONNX models in the app: every panel shows them, sequences too; so do the commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from loopscope_app.cli import main
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
def test_every_panel_shows_it(opened: Visit, tmp_path: Path, name: str) -> None:
    app = opened(model=str(_written(tmp_path, name)))
    for panel in ("Inspect", "Inputs", "Breakpoints", "Problems"):
        app.segmented_control("debugger_panel").set_value(panel).run()
        assert not app.exception, app.exception


@pytest.mark.parametrize("view", ["Value", "Ports", "Attributes"])
@pytest.mark.parametrize(
    "node",
    [
        "main/SequenceInsert_3",
        "main/SequenceMap_4",
        "main/SequenceMap_4/body/v",
        "main/ConcatFromSequence_5",
    ],
)
def test_sequences_are_shown(opened: Visit, tmp_path: Path, node: str, view: str) -> None:
    assert "SequenceMap" in SEQUENCE
    app = opened(model=str(_written(tmp_path, "sequences")), node=node, step="99")
    app.segmented_control("inspector_view").set_value(view).run()
    assert not app.exception, app.exception


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
    app = opened(model=str(path), node=f"main/{type}_0", step="999999")
    text = " ".join(str(one.proto.body) for one in app.get("html"))
    assert "has not begun" not in text
    assert "its iterations are listed here" not in text
    assert "<b>Result</b>" in text
