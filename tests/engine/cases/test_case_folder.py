"""The folder of a part runs without Loopscope and finds what a runtime computes differently."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope.cases import Case, cut_folder, recorded_case, write_case
from loopscope.errors import WriteError
from loopscope.ir.model import Model
from loopscope.ops.stored import stored_arrays
from tests.source_files import ROOT

pytestmark = pytest.mark.filterwarnings("ignore")
SAMPLES = ROOT / "sample_models"
HOSTILE = 'x\'](http://a)<b>`|\\n\\"""; import os'
SEQUENCES = """<ir_version: 8, opset_import: ["" : 17]>
main (float[2] x) => (float[4] y) {
  parts = SequenceConstruct (x, x)
  more = SequenceInsert (parts, x)
  y = ConcatFromSequence <axis = 0> (parts)
}"""
NARROW = """<ir_version: 9, opset_import: ["" : 19]>
main (float[3] x) => (float[3] y) {
  narrow = Cast <to = 16> (x)
  again = Identity (narrow)
  y = Cast <to = 1> (again)
}"""


def of_onnx(text: str) -> Model:
    return loopscope.read_model(parser.parse_model(text).SerializeToString())


def finished(model: Model, inputs: Any) -> loopscope.Debugger:
    run = loopscope.Debugger(model, inputs)
    run.run()
    return run


def ended(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of a folder without the folders of Loopscope."""
    return subprocess.run(
        [sys.executable, str(folder / "run.py")],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": ""},
    )


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("model", "inputs", "address"),
    [
        (SAMPLES / "collatz" / "model.xml", [27], "while_not_one[4]/body"),
        (SAMPLES / "collatz" / "model.xml", [27], "main/while_not_one[4]/body/if_even/then"),
        (SEQUENCES, [[1.0, 2.0]], "main/ConcatFromSequence_2"),
        (SEQUENCES, [[1.0, 2.0]], "main/SequenceInsert_1"),
        (NARROW, [[1.0, 2.5, np.nan]], "main/Identity_1"),
    ],
    ids=["body", "branch", "from a sequence", "to a sequence", "bf16"],
)
def test_the_script_agrees_with_what_was_recorded(
    model: Any, inputs: list[Any], address: str, tmp_path: Path
) -> None:
    read = of_onnx(model) if isinstance(model, str) else loopscope.read_model(model)
    files = cut_folder(recorded_case(finished(read, inputs), address), tmp_path, read)
    assert all(file.exists() for file in files)
    result = ended(tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "agrees" in result.stdout


@pytest.mark.oracle
def test_the_script_reports_another_value_and_another_shape(tmp_path: Path) -> None:
    model = of_onnx(NARROW.replace("float[3] x", "float[N] x").replace("float[3] y", "float[N] y"))
    inputs = {"x": np.array([1, 2, 3], np.float32)}
    for expected, words in (
        (
            np.array([1, 2, 4], np.float32),
            "1 of 3 elements differ, the first at [2]: expected 4.0, got 3.0",
        ),
        (np.array([1, 2], np.float32), "expected shape [2], got [3]"),
    ):
        write_case(Case(model, inputs, {"y": expected}), tmp_path, title="Wrong")
        result = ended(tmp_path)
        assert result.returncode == 1
        assert words in result.stdout


def test_names_of_a_model_are_no_code_and_no_markup(tmp_path: Path) -> None:
    graph = loopscope.builder.Graph("hostile")
    x = graph.parameter(HOSTILE, "f32", [2])
    model = graph.model({"y": x * 2.0})
    folder = tmp_path / "case"
    run = finished(model, [[1.0, 2.0]])
    cut_folder(recorded_case(run, "main"), folder, model)
    assert "import os" not in (folder / "run.py").read_text()
    lines = [line for line in (folder / "README.md").read_text().splitlines() if "http" in line]
    assert len(lines) == 1
    assert lines[0].count("`") == 2 + 2 * lines[0].count("| `[")
    assert list(stored_arrays(folder / "inputs.npz")) == [HOSTILE]


def test_the_opened_model_is_never_overwritten(tmp_path: Path) -> None:
    for name in ("model.xml", "model.bin"):
        (tmp_path / name).write_bytes((SAMPLES / "collatz" / name).read_bytes())
    model = loopscope.read_model(tmp_path / "model.xml")
    case = recorded_case(finished(model, [7]), "main/while_not_one/body")
    before = (tmp_path / "model.xml").read_bytes()
    with pytest.raises(WriteError, match="is the opened model: expected another folder"):
        cut_folder(case, tmp_path, model)
    assert (tmp_path / "model.xml").read_bytes() == before
    with pytest.raises(WriteError, match="is a file: expected a folder"):
        cut_folder(case, tmp_path / "model.xml", model)


def test_outputs_after_a_failure_are_absent(tmp_path: Path) -> None:
    text = NARROW.replace("again = Identity (narrow)", "again = Gather (narrow, places)").replace(
        "=> (float[3] y) {", "=> (float[1] y) <int64[1] places = {9}> {"
    )
    model = of_onnx(text)
    case = recorded_case(finished(model, [[1.0, 2.0, 3.0]]), "main")
    assert case.expected == {}
    assert "Gather" in case.missing or "9" in case.missing
    cut_folder(case, tmp_path, model)
    assert "no expected value" in (tmp_path / "README.md").read_text()
