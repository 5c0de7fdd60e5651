"""Values that are no numeric tensors, compared with ONNX Runtime: sequences, maps, optionals,
texts; what is left out is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import loopscope
from loopscope.ops.values import NO_VALUE
from loopscope.peers import against
from loopscope.peers.comparing import apart, not_compared
from loopscope.peers.npz_protocol import Unread, read, write
from loopscope.peers.report import ComparisonReport, ValueDifference

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
HEADER = '<ir_version: 9, opset_import: ["" : 18]> one (float[3, 2] x) => '
MODELS: Mapping[str, str] = {
    "sequence": "(seq(float[M, 2]) y) { y = SplitToSequence (x) }",
    "ragged sequence": "(seq(float[M, 2]) y) { s = Constant <value_ints = [1, 2]> () y = SplitToSequence (x, s) }",
    "empty sequence": "(seq(float[M, 2]) y) { y = SequenceEmpty () }",
    "texts": '(string[2] y) { y = Constant <value_strings = ["one", "zwölf"]> () }',
}


def compared(data: bytes, inputs: Any) -> ComparisonReport:
    debugger = loopscope.Debugger(loopscope.read_model(data), inputs)
    debugger.run()
    return against(debugger, inputs, document=data)


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS.keys())
def test_onnx_runtime_gives_the_same_value(text: str) -> None:
    report = compared(parser.parse_model(HEADER + text).SerializeToString(), {"x": X})
    assert report.agrees, report.sentence
    assert report.sentence.startswith("All outputs agree with ONNX Runtime")


def test_a_map_and_texts_that_go_in_are_compared() -> None:
    node = helper.make_node(
        "LabelEncoder",
        ["x"],
        ["n"],
        domain="ai.onnx.ml",
        keys_strings=["a", "b"],
        values_int64s=[5, 6],
        default_int64=7,
    )
    scores = helper.make_node(
        "Constant",
        [],
        ["s"],
        value=helper.make_tensor("s", TensorProto.FLOAT, [1, 2], [0.25, 0.75]),
    )
    zipped = helper.make_node(
        "ZipMap", ["s"], ["m"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]
    )
    of_map = helper.make_sequence_type_proto(
        helper.make_map_type_proto(
            TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        )
    )
    graph = helper.make_graph(
        [node, scores, zipped],
        "maps",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [3])],
        [
            helper.make_tensor_value_info("n", TensorProto.INT64, [3]),
            helper.make_value_info("m", of_map),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    report = compared(data, {"x": np.array(["b", "?", "a"], dtype=object)})
    assert report.agrees, report.sentence
    assert not report.outputs_left_out, report.sentence


FOUR_BITS = '<ir_version: 10, opset_import: ["" : 21]> one (float[3, 2] x) => '


def test_an_output_of_packed_elements_is_left_out_and_the_others_are_compared() -> None:
    """ONNX Runtime runs the model; its Python package hands four bits out in no form."""
    text = "(float[3, 2] z, int4[3, 2] y) { y = Cast <to = 22> (x) z = Neg (x) }"
    report = compared(parser.parse_model(FOUR_BITS + text).SerializeToString(), {"x": X})
    assert report.agrees, report.sentence
    assert set(report.outputs_left_out) == {"y"}
    assert "'y' (" in report.sentence
    assert "int4" in report.outputs_left_out["y"]


def test_a_model_that_gives_packed_elements_alone_cannot_be_compared() -> None:
    text = "(int4[3, 2] y) { y = Cast <to = 22> (x) }"
    with pytest.raises(
        loopscope.EngineError,
        match=r"no output can be compared: 'y' is not, since .* tensor\(int4\)",
    ):
        compared(parser.parse_model(FOUR_BITS + text).SerializeToString(), {"x": X})


def test_an_optional_inside_keeps_nothing_else_from_being_compared() -> None:
    text = "(float[3, 2] y) { o = Optional (x) h = OptionalGetElement (o) y = Neg (h) }"
    report = compared(parser.parse_model(HEADER + text).SerializeToString(), {"x": X})
    assert report.agrees, report.sentence
    assert report.values == 2, report.sentence


APART: Mapping[str, tuple[Any, Any, tuple[str, str] | None]] = {
    "the same": ((X, X[:1]), (X.copy(), X[:1].copy()), None),
    "lengths": ((X,), (X, X), ("a sequence of 1 value", "a sequence of 2 values")),
    "an element": ((X, X), (X, X + 1), ("1 at [0,0] in element 1", "2 at [0,0] in element 1")),
    "a shape": ((X,), (X[:1],), ("shape [3,2] in element 0", "shape [1,2] in element 0")),
    "keys": (MappingProxyType({1: X}), MappingProxyType({2: X}), ("a key 1", "no key 1")),
    "a map's value": (
        MappingProxyType({"a": np.float32(1)}),
        MappingProxyType({"a": np.float32(2)}),
        ("1 in key 'a'", "2 in key 'a'"),
    ),
    "an optional": (NO_VALUE, X, ("nothing", "a tensor")),
    "narrow floats": (
        X.astype(ml_dtypes.bfloat16),
        (X * 2).astype(ml_dtypes.bfloat16),
        ("1 at [0,0]", "2 at [0,0]"),
    ),
    "narrow floats that are close": (
        X.astype(ml_dtypes.bfloat16),
        (X * 1.01).astype(ml_dtypes.bfloat16),
        None,
    ),
    "texts": (np.array(["a", "b"], object), np.array(["a", "c"], object), ("b at [1]", "c at [1]")),
}


@pytest.mark.parametrize(("here", "there", "told"), APART.values(), ids=APART.keys())
def test_how_two_values_differ(here: Any, there: Any, told: tuple[str, str] | None) -> None:
    assert apart(here, there, 1e-3) == told
    assert not not_compared(here, there)


def test_what_was_left_out_is_named_and_nothing_says_that_all_agree() -> None:
    assert (
        not_compared((X, X), (X, Unread("SparseTensor")))
        == "the runtime's value is of the kind SparseTensor"
    )
    report = ComparisonReport(
        "ORT 1", (), None, outputs_left_out={"y" * 100 + "/end": "its element type is int2"}
    )
    assert report.sentence.startswith(
        "The outputs that were compared agree with ORT 1. Not compared: 'yyy"
    )
    assert report.sentence.endswith("/end' (its element type is int2).")


def test_a_long_name_is_shortened_in_its_middle_and_the_sentence_is_whole() -> None:
    report = ComparisonReport(
        "ORT 1", (), ValueDifference("main/" + "a/" * 600 + "body/Add_7:1", 3, "1", "2")
    )
    assert "…" in report.sentence
    assert (
        "body · Add_7 · output 1 is the first value that differs: 2 in ORT 1, 1 here. The outputs of the model agree."
        in report.sentence
    )
    assert (report.agrees, report.outputs_agree) == (False, True)


def test_values_of_every_kind_travel_without_pickle(tmp_path: Path) -> None:
    texts = np.array([["a\0", ""], ["ü", "x"]], dtype=object)
    write(tmp_path / "in.npz", [X, (X, X[:0]), NO_VALUE, texts])
    with np.load(tmp_path / "in.npz", allow_pickle=False) as stored:
        content = {name: stored[name] for name in stored.files}
    np.savez(tmp_path / "out.npz", names=np.array(["a", "b", "c", "d"]), **content)
    back = read(tmp_path / "out.npz")
    assert apart((X, (X, X[:0]), NO_VALUE, texts), tuple(back.values()), 0) is None
    assert back["d"].tolist() == texts.tolist()


def test_a_sequence_inside_is_called_what_it_is() -> None:
    text = "(float[3, 2] y) { s = SplitToSequence (x) y = ConcatFromSequence <axis = 0> (s) }"
    report = compared(parser.parse_model(HEADER + text).SerializeToString(), {"x": X})
    assert report.agrees, report.sentence
    assert report.left_out == {"that is not a tensor": 1}


NARROW: Mapping[str, int] = {
    "BFLOAT16": 16,
    "FLOAT8E4M3FN": 17,
    "FLOAT8E4M3FNUZ": 18,
    "FLOAT8E5M2": 19,
    "FLOAT8E5M2FNUZ": 20,
}


@pytest.mark.parametrize("kind", NARROW.values(), ids=NARROW.keys())
def test_narrow_floats_go_in_and_come_out(kind: int) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["y"]),
        helper.make_node("Cast", ["x"], ["z"], to=TensorProto.FLOAT),
    ]
    ends = [
        helper.make_tensor_value_info(name, number, None)
        for name, number in (("y", kind), ("z", TensorProto.FLOAT))
    ]
    graph = helper.make_graph(
        nodes, "narrow", [helper.make_tensor_value_info("x", kind, [3, 2])], ends
    )
    data = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11
    ).SerializeToString()
    report = compared(data, {"x": X.astype(helper.tensor_dtype_to_np_dtype(kind))})
    assert report.agrees, report.sentence
    assert not report.outputs_left_out, report.sentence
