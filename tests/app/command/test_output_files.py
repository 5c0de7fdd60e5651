"""What cannot be written is said before the run, in one sentence, by every command that writes a
file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import loopscope
from loopscope_app.cli import main

COLLATZ = "sample_models/collatz/model.xml"
ATTENTION = "sample_models/linear_attention/model.xml"
COMMANDS = {
    "run": ([COLLATZ, "--inputs", "number=3", "--outputs"], "o.npz"),
    "run --save": ([COLLATZ, "--inputs", "number=3", "--save"], "o.loopscope"),
    "value": ([COLLATZ, "steps", "--inputs", "number=3", "-o"], "o.npy"),
    "page": ([COLLATZ, "--inputs", "number=3", "-o"], "o.html"),
    "drift": ([ATTENTION, "--inputs", "random", "--round", "*=bf16", "--out"], "o.parquet"),
    "gradients": ([ATTENTION, "--of", "attention", "--with-respect-to", "query", "-o"], "o.xml"),
    "convert": ([COLLATZ], "o.xml"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_refused_before_the_model_runs(
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loopscope, "Debugger", None)
    monkeypatch.setattr(loopscope, "gradients", None)
    words, name = COMMANDS[command]
    begin = [command.split()[0], *words]
    (tmp_path / name).mkdir()
    assert main([*begin, str(tmp_path / name)]) == 2
    assert capsys.readouterr().err.endswith(
        f"{tmp_path / name}: expected a file to write to, got a folder\n"
    )
    assert main([*begin, str(tmp_path / "no" / name)]) == 2
    assert capsys.readouterr().err.endswith(
        f"{tmp_path / 'no' / name}: cannot be written, the folder '{tmp_path / 'no'}' does not exist\n"
    )


def test_an_empty_path_is_not_this_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", ""]) == 2
    assert (
        capsys.readouterr().err
        == "loopscope: the path of the model is empty: expected that of a file\n"
    )


def test_a_device_that_models_are_not_compared_with_is_no_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["drift", COLLATZ, "openvino:GPU", "--inputs", "number=3"]) == 2
    said = "openvino:GPU is not a runtime that drift compares with: expected openvino:CPU, onnxruntime or a model file"
    assert said in capsys.readouterr().err


def test_a_matrix_of_an_if_says_which_loops_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", COLLATZ, "if_even", "--inputs", "number=3"]) == 2
    assert (
        "if_even is of type If, and not a loop; the loops are 'main/while_not_one'"
        in capsys.readouterr().err
    )
