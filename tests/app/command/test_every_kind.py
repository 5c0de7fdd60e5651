"""``loopscope run`` on models whose values are no plain tensors: JSON whole or not at all, files
that can be read again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import loopscope
from loopscope.ir.model import Signature
from loopscope.ops.stored import packed, write
from loopscope.ops.values import NO_VALUE
from loopscope_app.cli import main
from loopscope_app.command.given_inputs import read_inputs
from loopscope_app.command.report import describe
from loopscope_app.describe import input_parsing as uploads

HEADER = '<ir_version: 9, opset_import: ["" : 21]> one (float[3, 2] x) => '
X = np.array([[1, 2], [3, 4], [5, np.nan]], np.float32)
MODELS = {
    "sequence": "(seq(float[M, 2]) y) { s = Constant <value_ints = [1, 2]> () y = SplitToSequence (x, s) }",
    "texts": '(string[2] y) { y = Constant <value_strings = ["one", "zwölf"]> () }',
    "optional": "(optional(float[3, 2]) y) { y = Optional <type = float[3, 2]> () }",
    "bf16": "(bfloat16[3, 2] y) { y = Cast <to = 16> (x) }",
    "e5m2": "(float8e5m2[3, 2] y) { y = Cast <to = 19> (x) }",
    "fnuz": "(float8e4m3fnuz[3, 2] y) { y = Cast <to = 18> (x) }",
    "i4": "(int4[3, 2] y) { y = Cast <to = 22> (x) }",
}
TOLD: dict[str, dict[str, Any]] = {
    "sequence": {
        "kind": "sequence",
        "length": 2,
        "value": [
            {"type": "f32", "shape": [1, 2], "value": [[1.0, 2.0]]},
            {"type": "f32", "shape": [2, 2], "value": [[3.0, 4.0], [5.0, "NaN"]]},
        ],
    },
    "texts": {"type": "string", "shape": [2], "value": ["one", "zwölf"]},
    "optional": {"kind": "nothing"},
    "bf16": {"type": "bf16", "shape": [3, 2], "value": [[1.0, 2.0], [3.0, 4.0], [5.0, "NaN"]]},
    "e5m2": {"type": "f8e5m2", "shape": [3, 2], "value": [[1.0, 2.0], [3.0, 4.0], [5.0, "NaN"]]},
    "fnuz": {
        "type": "float8_e4m3fnuz",
        "shape": [3, 2],
        "value": [[1.0, 2.0], [3.0, 4.0], [5.0, "NaN"]],
    },
    "i4": {"type": "i4", "shape": [3, 2], "value": [[1, 2], [3, 4], [5, 0]]},
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_run_tells_and_writes_an_output_of_any_kind(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(parser.parse_model(HEADER + MODELS[kind]).SerializeToString())
    write(tmp_path / "in.npz", packed({"x": X}))
    words = ["run", str(tmp_path / "m.onnx"), "--inputs", str(tmp_path / "in.npz")]
    assert main([*words, "--json", "--outputs", str(tmp_path / "out.npz")]) == 0
    told = json.loads(capsys.readouterr().out)["outputs"]
    assert [
        {key: value for key, value in one.items() if key not in ("name", "names")} for one in told
    ] == [TOLD[kind]]
    assert main(words) == 0
    assert "array(" not in capsys.readouterr().out

    model = loopscope.read_model(tmp_path / "m.onnx")
    (expected,) = loopscope.run(model, {"x": X}).outputs
    back = uploads.read_arrays("out.npz", (tmp_path / "out.npz").read_bytes())["y"]
    assert describe(model.outputs[0], back) == describe(model.outputs[0], expected)


def test_values_of_any_kind_go_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one run has written is given to another: a ragged sequence, and an optional that
    holds nothing.
    """
    text = """<ir_version: 9, opset_import: ["" : 18]> one (seq(float[M, 2]) s, optional(float[2]) o) => (float[N, 2] y, bool h)
        { y = ConcatFromSequence <axis = 0> (s) h = OptionalHasElement (o) }"""
    (tmp_path / "m.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    write(tmp_path / "in.npz", packed({"s": (X[:1], X[1:2]), "o": NO_VALUE}))
    assert (
        main(["run", str(tmp_path / "m.onnx"), "--inputs", str(tmp_path / "in.npz"), "--json"]) == 0
    )
    assert [one["value"] for one in json.loads(capsys.readouterr().out)["outputs"]] == [
        [[1, 2], [3, 4]],
        False,
    ]
    assert main(["compare", str(tmp_path / "m.onnx"), "--inputs", str(tmp_path / "in.npz")]) == 0
    model = loopscope.read_model(tmp_path / "m.onnx")
    by_position = {0: (X[:1],), 1: None}
    assert loopscope.run(model, by_position).outputs[0].tolist() == [[1, 2]]
    with pytest.raises(
        loopscope.InputError,
        match=r"input 's': expected a list or tuple of arrays, got nothing",
    ):
        loopscope.run(model, {"s": NO_VALUE, "o": NO_VALUE})


def test_a_map_that_a_classifier_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zipped = helper.make_node(
        "ZipMap", ["x"], ["m"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]
    )
    of_map = helper.make_sequence_type_proto(
        helper.make_map_type_proto(
            TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        )
    )
    scores = helper.make_tensor_value_info("x", TensorProto.FLOAT, [100, 2])
    graph = helper.make_graph([zipped], "maps", [scores], [helper.make_value_info("m", of_map)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    (tmp_path / "m.onnx").write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    )
    np.savez(tmp_path / "in.npz", x=np.full((100, 2), 0.25, np.float32))
    assert (
        main(["run", str(tmp_path / "m.onnx"), "--inputs", str(tmp_path / "in.npz"), "--json"]) == 0
    )
    (told,) = json.loads(capsys.readouterr().out)["outputs"]
    assert (told["kind"], told["length"], len(told["first"]), len(told["last"])) == (
        "sequence",
        100,
        8,
        8,
    )
    quarter = {"type": "f32", "shape": [], "value": 0.25}
    assert told["first"][0] == {
        "kind": "map",
        "length": 2,
        "value": [["no", quarter], ["yes", quarter]],
    }


def test_json_is_written_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(
        parser.parse_model(HEADER + MODELS["texts"]).SerializeToString()
    )
    np.savez(tmp_path / "in.npz", x=X)

    def broken(signature: Signature, value: object) -> dict[str, Any]:
        raise RuntimeError(f"{signature.name} {value}")

    monkeypatch.setattr("loopscope_app.command.report.describe", broken)
    with pytest.raises(RuntimeError):
        main(["run", str(tmp_path / "m.onnx"), "--inputs", str(tmp_path / "in.npz"), "--json"])
    assert capsys.readouterr().out == ""


def test_int2_is_told_as_numpy_calls_it() -> None:
    signature = loopscope.read_model(
        parser.parse_model(HEADER + MODELS["i4"]).SerializeToString()
    ).outputs[0]
    told = describe(signature, np.array([-2, 1], ml_dtypes.int2))
    assert (told["type"], told["value"]) == ("int2", [-2, 1])
    assert describe(signature, np.full(1000, 1, ml_dtypes.int2))["summary"]["max"] == 1


def test_a_description_that_is_none_names_the_file(tmp_path: Path) -> None:
    model = loopscope.read_model(parser.parse_model(HEADER + MODELS["i4"]).SerializeToString())
    stored: dict[str, Any] = {"loopscope.forms": np.array("{")}
    np.savez(tmp_path / "in.npz", **stored)
    with pytest.raises(
        loopscope.InputError,
        match=r"in\.npz: its entry 'loopscope\.forms' is expected to be a JSON object",
    ):
        read_inputs(str(tmp_path / "in.npz"), model)
    with pytest.raises(
        loopscope.InputError,
        match=r"^in\.npz: its entry 'loopscope\.forms' is expected to be a JSON object",
    ):
        uploads.read_arrays("in.npz", (tmp_path / "in.npz").read_bytes())
