"""``loopscope cut``, ``loopscope reproduce`` and ``loopscope check --fix``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import loopscope
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE
from loopscope_app.cli import main
from loopscope_app.command.loop_tests.expectations import Expectation
from loopscope_app.command.loop_tests.failing_test import as_toml
from loopscope_app.command.loop_tests.file import read_tests
from tests.app.command.test_answers import conforms
from tests.engine.transform.test_repair import do_while_of_onnx
from tests.source_files import ROOT

COLLATZ = str(ROOT / "sample_models" / "collatz" / "model.xml")
SWAP = str(ROOT / "sample_models" / "swap" / "model.xml")
SWAP_INPUTS = "first=1 second=2 rounds=6"


def script_of(folder: Path) -> int:
    ended = subprocess.run(
        [sys.executable, str(folder / "run.py")], capture_output=True, text=True, check=False
    )
    return ended.returncode


@pytest.mark.oracle
def test_a_body_is_written_with_its_values_of_one_iteration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "part"
    words = ["cut", COLLATZ, "main/while_not_one/body", "--iteration", "4", "--inputs", "number=27"]
    assert main([*words, "-o", str(folder)]) == 0
    assert capsys.readouterr().out == (
        f"{folder}: 18 nodes of main/while_not_one[4]/body, 4 inputs, 4 outputs with recorded "
        f"values\n  python {folder}/run.py compares a runtime with the recorded values\n"
    )
    assert script_of(folder) == 0
    assert main([*words, "-o", str(folder), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    conforms(answer, "cut")
    assert answer["place"] == "main/while_not_one[4]/body"
    assert answer["inputs"] == ["iteration", "steps", "highest", "number"]
    assert {Path(file).name for file in answer["files"]} == {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected an ADDRESS, or --from and --to"),
        (["main", "--from", "a"], "expected an ADDRESS, or --from and --to"),
        (["nothing"], "the model has no node or graph 'nothing'"),
        (["main/while_not_one/body", "--iteration", "900"], "iteration 900"),
        (["--from", "start_at_all", "--to", "no_limit"], "no path leads from"),
    ],
    ids=str,
)
def test_what_cannot_be_cut_out_is_one_sentence(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "part"
    assert main(["cut", COLLATZ, *words, "--inputs", "number=27", "-o", str(folder)]) == 2
    assert message in capsys.readouterr().err
    assert not folder.exists()


def test_the_folder_of_the_model_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loopscope.write_model(loopscope.read_model(COLLATZ), tmp_path / "model.xml")
    file = str(tmp_path / "model.xml")
    for words in (["cut", file, "main"], ["reproduce", file, "--nan"]):
        assert main([*words, "--inputs", "number=7", "-o", str(tmp_path)]) == 2
        assert "is the opened model: expected another folder" in capsys.readouterr().err


@pytest.mark.oracle
def test_a_difference_is_reproduced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "fault"
    words = ["reproduce", SWAP, "--inputs", SWAP_INPUTS, "--differs", "openvino", "--json"]
    assert main([*words, "-o", str(folder)]) == 0
    answer = json.loads(capsys.readouterr().out)
    conforms(answer, "reproduce")
    assert (answer["operations"], answer["operations_before"]) == (1, 2)
    assert "by the definition" in answer["fault"]
    assert script_of(folder) == 1


def loops_toml(folder: Path, line: str) -> str:
    path = folder / "loops.toml"
    path.write_text(f"[[test]]\nmodel = '{COLLATZ}'\ninputs = 'number=3'\n{line}\n")
    return str(path)


def test_a_failing_test_is_reproduced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "fault"
    tests = loops_toml(tmp_path, "branch.'main/while_not_one/body/if_even' = 'else'")
    words = ["reproduce", COLLATZ, "--inputs", "number=3", "--test", tests, "--json"]
    assert main([*words, "-o", str(folder)]) == 0
    answer = json.loads(capsys.readouterr().out)
    conforms(answer, "reproduce")
    assert answer["operations"] <= 4
    assert answer["fault"].startswith("Expected `branches of main/if_even: else`, but `")
    assert main(["test", str(folder)]) == 1


@pytest.mark.parametrize(
    "line",
    [
        "iterations.'a\"b' = 7",
        "iterations.'a' = '>= 3 and < 9'",
        "ended.'a' = ['condition', 'trip_count']",
        "branch.'a' = 'ET...'",
        "branch.'a' = 'then >= 20%'",
        "drift = { against = 'onnxruntime', at_most = 1e-3 }",
        "drift = { round = 'main/*=bf16', at_most = 0.1 }",
        "check = 'no LS906'",
        "finite = true",
    ],
)
def test_an_expectation_is_written_as_it_is_read(line: str, tmp_path: Path) -> None:
    def expectations(text: str) -> tuple[Expectation, ...]:
        path = tmp_path / "loops.toml"
        path.write_text(text)
        (test,) = read_tests(path)
        return test.expectations

    (expected,) = expectations(f"[[test]]\nmodel = 'm'\n{line}\n")
    assert expectations(as_toml(expected, "m", "")) == (expected,)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("iterations.'while_not_one' = 7", "the model meets every expectation"),
        ("same_control_flow_as = '" + SWAP + "'", "there is no failure to reproduce"),
        ("drift = { against = '" + SWAP + "', at_most = 0.1 }", "no failure to reproduce"),
    ],
)
def test_a_test_that_shows_no_failure_is_one_sentence(
    line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", COLLATZ, "--inputs", "number=3", "--test", loops_toml(tmp_path, line)]
    assert main([*words, "-o", str(tmp_path / "fault")]) == 2
    assert message in capsys.readouterr().err


def test_a_file_of_tests_about_another_model_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", SWAP, "--inputs", SWAP_INPUTS, "-o", str(tmp_path / "fault")]
    assert main([*words, "--test", loops_toml(tmp_path, "finite = true")]) == 2
    assert "no test is about" in capsys.readouterr().err


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--differs", "openvino"], "computes the same outputs"),
        (["--differs", "onnxruntime"], "ONNX Runtime runs ONNX models only"),
        (["--nan"], "no output contains NaN"),
        (["--fails"], "there is no failure to reproduce"),
    ],
    ids=str,
)
def test_a_model_without_the_fault_is_one_sentence(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["reproduce", COLLATZ, "--inputs", "number=7", *words, "-o", str(tmp_path / "x")]
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.oracle
def test_a_fix_is_shown_compared_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "fixed.xml"
    assert main(["check", SWAP, "--fix", str(target), "--inputs", SWAP_INPUTS]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "LS906 swap_each_round: An Identity is put between 'left' and 'right'."
    assert printed[1].startswith("  reason: OpenVINO's CPU overwrites")
    assert printed[2].startswith("Before, 2 of 3 outputs differ from the definition in OpenVINO")
    assert printed[3] == f"{target} is written. The opened model is unchanged."
    repaired = loopscope.read_model(target)
    assert "LS906" not in {each.code for each in check(repaired, CATALOGUE).diagnostics}
    assert main(["check", str(target), "--fix", str(tmp_path / "again.xml")]) == 0
    assert "nothing is written" in capsys.readouterr().out
    assert not (tmp_path / "again.xml").exists()


@pytest.mark.oracle
def test_a_fix_as_json_names_the_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, target = tmp_path / "model.onnx", tmp_path / "fixed.onnx"
    loopscope.write_model(do_while_of_onnx(), model)
    words: list[Any] = ["check", model, "--fix", target, "--inputs", "x=20 limit=9", "--json"]
    assert main(list(map(str, words))) == 0
    answer = json.loads(capsys.readouterr().out)
    conforms(answer, "repairs")
    assert [(each["code"], each["refused"]) for each in answer["repairs"]] == [("LS931", "")]
    assert (answer["comparison"]["after"], answer["comparison"]["changed"]) == (0, 1)
    assert answer["written"] == str(target)


def test_a_fix_never_overwrites_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.onnx"
    loopscope.write_model(do_while_of_onnx(), model)
    before = model.read_bytes()
    assert main(["check", str(model), "--fix", str(model)]) == 2
    assert "is the opened model: --fix expects another file" in capsys.readouterr().err
    assert model.read_bytes() == before
