"""``--open`` on the commands that run a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.ops.stored import write
from loopscope_app.cli import main
from tests.engine.transform.test_open_as_loop import SIZE, X, document

STEPS = len(X["x"])
GATE = "main/first[2]/body/forget_gate"


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> list[str]:
    """A model with two LSTMs of ONNX as a file, and its inputs."""
    (tmp_path / "lstms.onnx").write_bytes(document("first", "second"))
    write(tmp_path / "in.npz", X)
    return [str(tmp_path / "lstms.onnx"), "--inputs", str(tmp_path / "in.npz")]


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_run_and_why_count_the_steps(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "no loops" in output(capsys, "why", *files)
    text = output(capsys, "run", *files, "--open", "first")
    assert f"main/first: {STEPS} iterations" in text
    assert "main/second" not in text
    text = output(capsys, "why", *files, "--open", "all")
    assert text.splitlines() == [
        f"main/{name}: Ran all {STEPS} iterations: the trip count was reached."
        for name in ("first", "second")
    ]


def test_value_and_matrix_show_the_gates(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model, *options = files
    text = output(
        capsys, "value", model, "first[2]/body/forget_gate", *options, "--open", "first", "--json"
    )
    assert json.loads(text)["shape"] == [1, 1, SIZE]
    text = output(capsys, "matrix", model, "second", *options, "--open", "second")
    assert text.startswith(f"main/second: {STEPS} iterations")
    assert "forget_gate (value)" in text
    assert "cell (carried)" in text


def test_drift_says_where_the_error_of_a_rounded_state_begins(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(
        capsys,
        "drift",
        *files,
        "--open",
        "first",
        "--round",
        "main/first/body/cell=bf16",
        "--tolerance",
        "1e-5",
    )
    assert text.startswith("Begins in `first` at iteration 1 in `cell`")


@pytest.mark.oracle
def test_drift_from_the_runtime_compares_steps(
    files: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    model, *options = files
    text = output(
        capsys, "drift", model, "onnxruntime", *options, "--open", "all", "--out", str(table)
    )
    assert text.startswith("All ")
    rows = table.read_text(encoding="utf-8")
    assert f"main/first[{STEPS - 1}]/body/" in rows or "main/first/body/" in rows


def test_the_other_model_may_have_the_loop_itself(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model, *options = files
    text = output(capsys, "drift", model, model, *options, "--open", "first")
    assert text.startswith("All ")


def test_precision_and_sweep_and_gradients(
    files: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, *options = files
    text = output(capsys, "precision", *files, "--to", "bf16", "--open", "first")
    assert "main/first/body/cell" in text
    text = output(
        capsys,
        "gradients",
        model,
        *("--of", "first out", "--with-respect-to", "x", "--open", "first"),
        *options,
    )
    assert "gradient of `cell`" in text
    many = tmp_path / "many.npz"
    np.savez(many, x=np.stack([X["x"], X["x"] * 2]))
    text = output(capsys, "sweep", model, "--inputs", str(many), "--open", "first", "--json")
    assert "first" in json.loads(text)["columns"] or "main/first" in text
    page = tmp_path / "page.html"
    text = output(capsys, "page", *files, "--open", "first", "--at", GATE, "-o", str(page))
    assert "opens at step" in text


def test_a_saved_run_remembers_what_is_open(
    files: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved = str(tmp_path / "run.loopscope")
    output(capsys, "run", *files, "--open", "second", "--save", saved)
    assert "main/second: Ran all" in output(capsys, "why", saved)
    debugger = loopscope.load(saved)
    assert debugger.model.unopened is not None
    assert main(["why", saved, "--open", "first"]) == 2
    assert "--open applies to a model only" in capsys.readouterr().err


def test_a_name_that_no_operator_has(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *files, "--open", "third"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("loopscope: ")
    assert "third" in error
