"""Where a run here fails, a comparison says what the runtime of the model does with the same
inputs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import loopscope
from loopscope.peers import runtime_alone
from loopscope_app import cli

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def test_a_runtime_that_fails_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{HEAD} main (float[N] x, float[M] y) => (float[K] z) {{ z = Add (x, y) }}"
    onnx.save(onnx.parser.parse_model(text), str(tmp_path / "model.onnx"))
    np.savez(tmp_path / "in.npz", x=np.ones(2, np.float32), y=np.ones(3, np.float32))
    assert (
        cli.main(["compare", str(tmp_path / "model.onnx"), "--inputs", str(tmp_path / "in.npz")])
        == 2
    )
    said = " ".join(capsys.readouterr().err.split())
    assert "Add-14 failed" in said
    assert said.count("ONNX Runtime does not run the model with these inputs either: ") == 1
    assert said.count("does not run the model") == 1


def test_a_runtime_that_does_not_fail() -> None:
    text = f"""{HEAD} main (int64 n, float[2] x) => (float[2] z) {{
      yes = Constant <value = bool {{1}}> ()
      z = Loop (n, yes, x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) {{ c2 = Identity (c) s2 = Add (s, s) }}>
    }}"""
    document = onnx.parser.parse_model(text).SerializeToString()
    inputs = {"n": np.int64(20), "x": np.zeros(2, np.float32)}
    debugger = loopscope.Debugger(
        loopscope.read_model(document), inputs, limits=loopscope.Limits(iterations=5)
    )
    debugger.run()
    assert debugger.state != "finished"
    found = runtime_alone(debugger, inputs, document=document)
    assert found.startswith("ONNX Runtime 1.")
    assert found.endswith("runs the model with these inputs: it gives 'z' [2].")
