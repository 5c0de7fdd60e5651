"""No sentence that carries a result is cut, however long the names of a model are: names lose
their middle, and keep their end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from onnx import parser
from openvino import opset13

from loopscope_app.cli import main

LONG = "a" * 5000


@pytest.fixture
def model(tmp_path: Path) -> Path:
    text = f"""<ir_version: 9, opset_import: ["" : 18]> one (float[2] {LONG}_in) => (float[2] {LONG}_out)
        {{ [{LONG}_log_end] {LONG}_v = Log ({LONG}_in) [{LONG}_sum] {LONG}_out = Add ({LONG}_v, {LONG}_v) }}"""
    (tmp_path / "m.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    stored: dict[str, Any] = {f"{LONG}_in": np.array([-1, 1], np.float32)}
    np.savez(tmp_path / "in.npz", **stored)
    return tmp_path / "m.onnx"


def test_the_first_nan_is_told_to_the_end(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(model), "--inputs", str(model.parent / "in.npz"), "--first-nan"]) == 0
    (told,) = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("The first NaN")
    ]
    assert told.startswith("The first NaN is computed by aaa")
    assert told.endswith(".")
    assert "…" not in told


def test_compare_tells_its_sentence_to_the_end(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(model), "--inputs", str(model.parent / "in.npz")]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("2 places inside.")


def test_a_failure_is_told_to_the_end(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored: dict[str, Any] = {f"{LONG}_odd": np.array([1, 1], np.float32)}
    np.savez(model.parent / "odd.npz", **stored)
    assert main(["run", str(model), "--inputs", str(model.parent / "odd.npz")]) == 2
    told = capsys.readouterr().err
    assert "the model's inputs are" in told
    assert told.endswith("f32[2]\n")
    assert main(["run", str(model)]) == 2
    told = capsys.readouterr().err
    assert "aaa_in'" in told, "the end of a name tells most"
    assert "f32[2]; expected --inputs" in told


def test_an_f16_model_agrees_with_openvino_and_compare_exits_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As ``openvino.save_model`` writes it: constants in f16, computed in f32."""
    dice = np.random.default_rng(0)
    x = opset13.parameter([2, 8], np.float32, name="x")
    hidden = opset13.tanh(
        opset13.matmul(
            x, opset13.constant(dice.normal(size=(8, 16)).astype(np.float32)), False, False
        )
    )
    scores = opset13.matmul(
        hidden, opset13.constant(dice.normal(size=(16, 4)).astype(np.float32)), False, False
    )
    written = openvino.Model([opset13.result(opset13.softmax(scores, 1))], [x], "small")
    openvino.save_model(written, str(tmp_path / "m.xml"), compress_to_fp16=True)
    assert 'precision="FP16"' in (tmp_path / "m.xml").read_text(encoding="utf-8")
    np.savez(tmp_path / "in.npz", x=dice.normal(size=(2, 8)).astype(np.float32))
    words = ["compare", str(tmp_path / "m.xml"), "--inputs", str(tmp_path / "in.npz")]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("All outputs agree with OpenVINO")
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["agrees"], told["outputs_agree"]) == (True, True)
    code = main([*words, "--tolerance", "0", "--json"])
    assert code == (0 if json.loads(capsys.readouterr().out)["outputs_agree"] else 1)
