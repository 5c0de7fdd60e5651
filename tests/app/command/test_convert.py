"""``loopscope convert`` writes what can be opened, and says why it does not write the rest;
``--inputs`` brings a model's inputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import InputError
from loopscope.ir.equal import difference
from loopscope_app.cli import main
from loopscope_app.state.open_model import open_path, with_inputs


@pytest.fixture
def halving(tmp_path: Path) -> Path:
    graph = builder.Graph("halve")
    x = graph.parameter("x", "f32", [])
    model = graph.model(builder.while_loop(lambda v: v > 1, lambda v: v / 2, [x])[0])
    loopscope.write_model(model, tmp_path / "halve.xml")
    return tmp_path / "halve.xml"


def test_a_model_is_written_as_it_was_read(
    halving: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.xml"
    assert main(["convert", str(halving), str(out)]) == 0
    assert "out.bin contain 'halve' as OpenVINO IR 11" in capsys.readouterr().out
    assert difference(loopscope.read_model(halving), loopscope.read_model(out)) == ""


def test_what_cannot_be_written_is_said(
    halving: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(halving), str(tmp_path / "out.txt")]) == 2
    assert "expected one that ends with .xml" in capsys.readouterr().err
    assert main(["convert", str(halving), str(halving)]) == 2
    assert "it was opened as the model, expected another path" in capsys.readouterr().err
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])], "one", [value], [result]
    )
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)]),
        tmp_path / "one.onnx",
    )
    assert main(["convert", str(tmp_path / "one.onnx"), str(tmp_path / "out.xml")]) == 2
    assert "an ONNX model cannot be written as OpenVINO IR" in capsys.readouterr().err
    assert not (tmp_path / "out.xml").exists()
    assert main(["convert", str(tmp_path / "one.onnx"), str(tmp_path / "two.onnx")]) == 0
    assert "two.onnx contains 'one' as ONNX" in capsys.readouterr().out
    assert (
        difference(
            loopscope.read_model(tmp_path / "one.onnx"), loopscope.read_model(tmp_path / "two.onnx")
        )
        == ""
    )


def test_inputs_that_the_command_brings_come_first(
    halving: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_position: dict[str, Any] = {"0": np.float64(100)}
    np.savez(tmp_path / "mine.npz", **by_position)
    opened = with_inputs(open_path(str(halving)), str(tmp_path / "mine.npz"))
    first, array = next(iter(opened.sets.items()))
    assert (first, array["x"].dtype.name, array["x"].item()) == ("mine", "float32", 100)
    np.savez(tmp_path / "wrong.npz", y=np.float32(1))
    with pytest.raises(InputError, match="the file contains 'y': expected the inputs 'x'"):
        with_inputs(opened, str(tmp_path / "wrong.npz"))
    assert main(["--inputs", str(tmp_path / "mine.npz"), "--no-browser"]) == 2
    assert "--inputs needs a model" in capsys.readouterr().err
    assert main([str(halving), "--inputs", str(tmp_path / "none.npz"), "--no-browser"]) == 2
