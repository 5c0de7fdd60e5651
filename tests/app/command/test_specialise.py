"""``loopscope specialise``: the model without what fixed inputs and runs decide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import parser

import loopscope
from loopscope.ir.address import nodes
from loopscope.native.run_once import Ended
from loopscope.peers import runtimes_load
from loopscope_app.cli import main
from tests.app.command.test_answers import conforms
from tests.engine.transform.test_specialise import RATES

SAMPLES = Path(__file__).parents[3] / "sample_models"
COLLATZ = str(SAMPLES / "collatz" / "model.xml")


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    header = '<ir_version: 10, opset_import: ["" : 18]>'
    (tmp_path / "rates.onnx").write_bytes(parser.parse_model(header + RATES).SerializeToString())
    return tmp_path / "rates.onnx"


@pytest.mark.oracle
def test_a_fixed_input_removes_its_ifs(
    rates: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.onnx"
    assert (
        main(["specialise", str(rates), "--set", "sr=16000", "--shape", "x=4", "-o", str(out)]) == 0
    )
    printed = capsys.readouterr().out
    assert "2 Ifs, 0 loops, 7 operations became 0 Ifs, 0 loops, 1 operation" in printed
    assert "valid while sr = 16000; x has the shape [4]" in printed
    assert "all outputs are equal, bit for bit, on 3 sets of inputs" in printed
    assert "ONNX Runtime" in printed
    assert "OpenVINO" in printed
    assert not [node for _, node in nodes(loopscope.read_model(out)) if node.bodies]


@pytest.mark.parametrize(("original", "fails"), [("bad.onnx", True), ("good.onnx", False)])
def test_a_runtime_that_refuses_the_original_too_is_told_apart(
    original: str, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(process: Path, package: str, file: str, **limits: object) -> Ended:
        return Ended(1, "", "unknown operation") if file == "bad.onnx" else Ended(0, "1", "")

    monkeypatch.setattr("loopscope.peers.separate_results.run_alone", loaded)
    answers = [*runtimes_load(Path("bad.onnx"), Path(original))]
    assert [each.original_fails for each in answers] == [fails, fails]
    assert ("neither" in answers[0].sentence) is fails
    assert not any(each.original_fails for each in runtimes_load(Path("good.onnx"), Path(original)))


def test_without_an_output_it_is_a_preview(
    rates: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["specialise", str(rates), "--set", "sr=8000", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    conforms(answer, "specialise")
    assert answer["conditions"] == ["sr = 8000"]
    assert (answer["before"]["ifs"], answer["after"]["ifs"]) == (2, 0)
    assert answer["runtimes"] == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rates.onnx"]


def test_a_sweep_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs.parquet"
    assert main(["sweep", COLLATZ, "--inputs", "number=4,32", "--out", str(runs)]) == 0
    assert main(["specialise", COLLATZ, "--as-sweep", str(runs)]) == 0
    printed = capsys.readouterr().out
    assert "main/while_not_one/body/if_even became its then branch" in printed
    assert "was true in all 2 runs (main/while_not_one/body/if_even)" in printed
    # Only the run with this value of the input counts.
    assert main(["specialise", COLLATZ, "--as-sweep", str(runs), "--set", "number=4"]) == 0
    assert "main/while_not_one runs 2 iterations without a condition" in capsys.readouterr().out


def test_a_run_decides_and_the_loop_is_unrolled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.xml"
    words = ["specialise", COLLATZ, "--as-run", "number=4", "--unroll", "2", "-o", str(out)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "main/while_not_one was unrolled into 2 iterations" in printed
    model = loopscope.read_model(out)
    assert not [node for _, node in nodes(model) if node.bodies]
    assert loopscope.run(model, {"number": 4}).outputs[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "sr"], "expected an input and one number, such as sr=16000"),
        (["--set", "sr=1,2"], "expected an input and one number"),
        (["--set", "sr=1.5"], "sr"),
        (["--shape", "x=a"], "expected an input and its lengths, such as input=1,576"),
        (["--shape", "z=1"], "'z' is not the name of one input"),
        (["--as-sweep", "missing.parquet"], "missing.parquet: it cannot be read as Parquet"),
        (["-o", "RATES"], "it was opened as the model, expected another path to write to"),
    ],
)
def test_what_does_not_fit_is_refused(
    words: list[str], message: str, rates: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rates.read_bytes()
    words = [str(rates) if word == "RATES" else word for word in words]
    assert main(["specialise", str(rates), *words]) == 2
    assert message in capsys.readouterr().err
    assert rates.read_bytes() == before


def test_a_file_that_is_no_sweep_is_refused(
    rates: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    other = tmp_path / "other.parquet"
    parquet.write_table(pa.table({"x": [1]}), other)
    assert main(["specialise", str(rates), "--as-sweep", str(other)]) == 2
    assert "expected the file of a sweep" in capsys.readouterr().err
