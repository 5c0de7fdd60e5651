"""Where a runtime runs a loop another number of times, the run with the device's precision is
rounding_suggestion.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from loopscope.peers import against, drift_from_runtime
from loopscope_app import cli
from loopscope_app.command import compare, drift
from loopscope_app.command.compare import rounding_suggestion
from tests.benchmarks import loop_models
from tests.engine.read.onnx_models import read

COMPARING = {
    "compare": (compare, "against", against),
    "drift": (drift, "drift_from_runtime", drift_from_runtime),
}


def store(inputs: Sequence[Any], path: Path) -> None:
    named: dict[str, Any] = {str(number): value for number, value in enumerate(inputs)}
    np.savez(path, **named)


@pytest.mark.parametrize("command", COMPARING)
def test_another_count_in_the_runtime(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The runtime is given a file with another trip count, as if it had computed one."""
    case, path = loop_models.scalars(9), tmp_path / "model.onnx"
    onnx.save(case.onnx(9), str(path))
    store(case.inputs, tmp_path / "in.npz")
    module, name, compared = COMPARING[command]

    def longer(*given: Any, **named: Any) -> Any:
        onnx.save(case.onnx(12), str(path))
        return compared(*given, **named)

    monkeypatch.setattr(module, name, longer)
    words = [
        command,
        str(path),
        *(["onnxruntime"] if command == "drift" else []),
        "--inputs",
        str(tmp_path / "in.npz"),
    ]
    cli.main(words)
    told = capsys.readouterr().out
    assert "To run it here with the device's precision (f16, bf16): loopscope drift" in told
    again = told.rpartition("loopscope ")[2].strip()
    onnx.save(case.onnx(9), str(path))
    assert cli.main(shlex.split(again)) == 0


def test_no_offer_where_all_counts_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case, path = loop_models.scalars(9), tmp_path / "model.onnx"
    onnx.save(case.onnx(9), str(path))
    store(case.inputs, tmp_path / "in.npz")
    assert cli.main(["compare", str(path), "--inputs", str(tmp_path / "in.npz")]) == 0
    assert "precision" not in capsys.readouterr().out


def test_only_what_finishes_is_offered() -> None:
    """In f16 the number is infinite, and what is gathered by it lies outside; in bf16 it is 0."""
    text = """
    (float[3] x) => (float[1] y, float[1] also) {
      large = Constant <value_floats = [70000.0]> ()
      less = Constant <value_floats = [69998.0]> ()
      also = Sub (large, less)
      index = Cast <to = 7> (also)
      y = Gather (x, index)
    }"""
    inputs: dict[str | int, object] = {"x": np.array([1, 2, 3], np.float32)}
    model = read(f"narrow {text}")
    (line,) = rounding_suggestion("m.onnx", "in.npz", model, inputs, 10)
    assert "(bf16): loopscope drift m.onnx --inputs in.npz --round '*=bf16'" in line
    wider = text.replace(
        "less = Constant <value_floats = [69998.0]> ()", "less = Constant <value_floats = [1.0]> ()"
    )
    failing = wider.replace(
        "index = Cast <to = 7> (also)",
        "k = Cast <to = 7> (also) m = Constant <value_ints = [69998]> () index = Sub (k, m)",
    )
    model = read(f"failing {failing}")
    assert rounding_suggestion("m.onnx", "", model, inputs, 10) == []
