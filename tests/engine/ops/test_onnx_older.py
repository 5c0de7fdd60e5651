"""Old versions of ONNX operations mean what they meant: as ONNX Runtime has them where it still
does, as numpy writes them otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, ValueInfoProto, helper

import loopscope
from loopscope.checks.check import check
from loopscope.checks.diagnostic import Report
from loopscope.debug.result import RunStopped
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.onnx_catalogue import ONNX

F = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.array([1, 2, 4], np.float32)
IMAGE = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4) % 7
ONES = np.ones(3, np.float32)
REGIONS = np.array([[0, 0, 0, 3, 3], [0, 1, 1, 2, 3], [0, 2, 0, 9, 9]], np.float32)
BYTES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
TEXTS = np.array(["cat", "hat", "dog", "at"], dtype=object)


def model(
    type: str,
    opset: int,
    inputs: Sequence[np.ndarray],
    outputs: int = 1,
    domain: str = "",
    **attributes: Any,
) -> bytes:
    """One node of an opset."""
    names = [f"x{number}" for number in range(len(inputs))]
    made = [f"y{number}" for number in range(outputs)]
    kinds = [
        TensorProto.STRING if one.dtype == object else helper.np_dtype_to_tensor_dtype(one.dtype)
        for one in inputs
    ]
    graph = helper.make_graph(
        [helper.make_node(type, names, made, domain=domain, **attributes)],
        "one",
        [
            helper.make_tensor_value_info(name, kind, one.shape)
            for name, kind, one in zip(names, kinds, inputs, strict=True)
        ],
        [ValueInfoProto(name=name) for name in made],
    )
    opsets = [
        helper.make_opsetid(domain, opset),
        *([helper.make_opsetid("", 17)] if domain else []),
    ]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return data


def ran(data: bytes, inputs: Sequence[np.ndarray]) -> tuple[Any, ...]:
    return loopscope.run(
        loopscope.read_model(data), {f"x{number}": one for number, one in enumerate(inputs)}
    ).outputs


AS_THE_RUNTIME: dict[str, tuple[str, int, list[np.ndarray], dict[str, Any]]] = {
    "softmax over all later axes": ("Softmax", 11, [F], {"axis": 1}),
    "softmax of opset 7": ("Softmax", 7, [F], {"axis": 0}),
    "log softmax over all later axes": ("LogSoftmax", 12, [F], {"axis": 1}),
    "hardmax over all later axes": ("Hardmax", 11, [F], {"axis": 1}),
    "hardmax, axis from the end": ("Hardmax", 11, [F], {"axis": -2}),
    "batch normalization of 7": (
        "BatchNormalization",
        7,
        [F, ROW, ONES, ROW, ROW],
        {"epsilon": 0.01},
    ),
    "batch normalization of 9": (
        "BatchNormalization",
        9,
        [F, ROW, ONES, ROW, ROW],
        {"momentum": 0.5},
    ),
    "dequantize of 10": (
        "DequantizeLinear",
        10,
        [BYTES, np.array(0.5, np.float32), np.array(3, np.uint8)],
        {},
    ),
    "dequantize of 13 by channels": (
        "DequantizeLinear",
        13,
        [BYTES, ROW, np.array([1, 2, 3], np.uint8)],
        {"axis": 1},
    ),
    "unsqueeze in any order": ("Unsqueeze", 11, [F], {"axes": [4, 0]}),
    "upsample to the nearest": ("Upsample", 7, [IMAGE], {"scales": [1.0, 1.0, 2.0, 1.5]}),
    "upsample linearly": (
        "Upsample",
        7,
        [IMAGE],
        {"scales": [1.0, 1.0, 2.5, 2.0], "mode": "linear"},
    ),
    "upsample by an input": (
        "Upsample",
        9,
        [IMAGE, np.array([1, 1, 3, 2], np.float32)],
        {"mode": "linear"},
    ),
    "resize to the nearest": ("Resize", 10, [IMAGE, np.array([1, 1, 0.5, 3], np.float32)], {}),
    "resize linearly": (
        "Resize",
        10,
        [IMAGE, np.array([1, 1, 0.5, 1.5], np.float32)],
        {"mode": "linear"},
    ),
    "grid sample of 16": (
        "GridSample",
        16,
        [IMAGE, np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 2, 2, 2)],
        {"mode": "bilinear"},
    ),
    "roi align of 10": (
        "RoiAlign",
        10,
        [IMAGE, REGIONS[:, 1:], np.zeros(3, np.int64)],
        {"output_height": 2, "output_width": 2},
    ),
    "pooled regions": ("MaxRoiPool", 7, [IMAGE, REGIONS], {"pooled_shape": [2, 3]}),
    "pooled regions, scaled": (
        "MaxRoiPool",
        7,
        [IMAGE, REGIONS],
        {"pooled_shape": [3, 1], "spatial_scale": 0.5},
    ),
    "gru": (
        "GRU",
        7,
        [F, np.ones((1, 6, 4), np.float32) / 8, np.ones((1, 6, 2), np.float32) / 4],
        {"hidden_size": 2},
    ),
    "rnn": (
        "RNN",
        7,
        [F, np.ones((1, 2, 4), np.float32) / 8, np.ones((1, 2, 2), np.float32) / 4],
        {"hidden_size": 2},
    ),
    "texts that match": ("RegexFullMatch", 20, [TEXTS], {"pattern": "[ch]at"}),
    "texts that match, in RE2's syntax": (
        "RegexFullMatch",
        20,
        [TEXTS],
        {"pattern": r"\pL{2,3}|(?P<pet>dog)"},
    ),
    "thresholded relu of 7": ("ThresholdedRelu", 7, [F], {"alpha": 5.0}),
    "thresholded relu of 1": ("ThresholdedRelu", 1, [F], {}),
    "affine": ("Affine", 7, [F], {"alpha": 2.0, "beta": -1.0}),
    "scale": ("Scale", 7, [F], {"scale": 3.0}),
    "scaled tanh": ("ScaledTanh", 7, [F], {"alpha": 2.0, "beta": 0.1}),
    "parametric softplus": ("ParametricSoftplus", 7, [F], {"alpha": 2.0, "beta": 0.1}),
    "image scaler": ("ImageScaler", 7, [IMAGE], {"scale": 0.5, "bias": [1.0, -2.0]}),
    "crop": ("Crop", 7, [IMAGE], {"border": [1, 0, 1, 2]}),
    "crop of a size": ("Crop", 7, [IMAGE], {"border": [1, 0, 1, 2], "scale": [2, 3]}),
    "normalization of 7": ("MeanVarianceNormalization", 7, [IMAGE], {}),
    "normalization across channels": (
        "MeanVarianceNormalization",
        7,
        [IMAGE],
        {"across_channels": 1},
    ),
    "normalization of the mean": (
        "MeanVarianceNormalization",
        7,
        [IMAGE],
        {"normalize_variance": 0},
    ),
    "normalization of 9": ("MeanVarianceNormalization", 9, [IMAGE], {}),
    "normalization of axes": ("MeanVarianceNormalization", 13, [IMAGE], {"axes": [1, -1]}),
    "constants": (
        "Constant",
        9,
        [],
        {"value": helper.make_tensor("c", TensorProto.FLOAT, [2], [1, 2])},
    ),
}


@pytest.mark.parametrize(
    ("type", "opset", "inputs", "attributes"), AS_THE_RUNTIME.values(), ids=AS_THE_RUNTIME.keys()
)
def test_as_onnx_runtime_has_them(
    type: str, opset: int, inputs: list[np.ndarray], attributes: dict[str, Any]
) -> None:
    data = model(type, opset, inputs, **attributes)
    expected = onnxruntime.InferenceSession(data).run(
        None, {f"x{number}": one for number, one in enumerate(inputs)}
    )
    for mine, theirs in zip(ran(data, inputs), expected, strict=True):
        assert mine.shape == theirs.shape
        # Single precision, summed in another order.
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [11, 12])
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize(
    "lengths", [[1, 2, 8, 8], [1, 2, 3, 7], [1, 2, 4, 4], [1, 2, 2, 9], [1, 2, 1, 5]]
)
@pytest.mark.parametrize("scaled", [False, True])
def test_nearest_pixels_as_tensorflow_had_them(
    opset: int, rounding: str, lengths: list[int], scaled: bool
) -> None:
    """Resize 11 and 12 with tf_half_pixel_for_nn."""
    none = np.zeros(0, np.float32)
    scales = (np.array(lengths) / IMAGE.shape).astype(np.float32)
    inputs = [IMAGE, none, scales] if scaled else [IMAGE, none, none, np.array(lengths)]
    attributes: dict[str, Any] = {
        "mode": "nearest",
        "nearest_mode": rounding,
        "coordinate_transformation_mode": "tf_half_pixel_for_nn",
    }
    data = model("Resize", opset, inputs, **attributes)
    (expected,) = onnxruntime.InferenceSession(data).run(
        None, {f"x{number}": one for number, one in enumerate(inputs)}
    )
    np.testing.assert_array_equal(ran(data, inputs)[0], expected)


BEFORE: dict[str, tuple[str, int, list[np.ndarray], dict[str, Any], list[np.ndarray]]] = {
    # Versions that no runtime has kept: type, opset, inputs, attributes, outputs
    "add along an axis": ("Add", 6, [F, ROW], {"broadcast": 1, "axis": 1}, [F + ROW[:, None]]),
    "multiply along the last": (
        "Mul",
        1,
        [F, F[0, 0]],
        {"broadcast": 1, "consumed_inputs": [0, 0]},
        [F * F[0, 0]],
    ),
    "subtract along two axes": (
        "Sub",
        6,
        [F, F[0, :, :1].reshape(3, 1)],
        {"broadcast": 1, "axis": 1},
        [F - F[0, :, :1]],
    ),
    "divide by one number": ("Div", 6, [F, ROW[1:2]], {"broadcast": 1}, [F / 2]),
    "a power along an axis": (
        "Pow",
        1,
        [F, ROW],
        {"broadcast": 1, "axis": -2},
        [F ** ROW[:, None]],
    ),
    "less along an axis": ("Less", 1, [F, ROW], {"broadcast": 1, "axis": 1}, [ROW[:, None] > F]),
    "and": ("And", 1, [F > 3, F < 9], {}, [(F > 3) & (F < 9)]),
    "sum": ("Sum", 1, [F, F], {"consumed_inputs": [0, 0]}, [F + F]),
    "clip": ("Clip", 1, [F], {"min": 2.0, "max": 5.0}, [F.clip(2, 5)]),
    "reshape": ("Reshape", 1, [F], {"shape": [0, -1]}, [F.reshape(2, 12)]),
    "split by lengths": ("Split", 1, [F], {"axis": 1, "split": [1, 2]}, [F[:, :1], F[:, 1:]]),
    "split by an input": (
        "Split",
        1,
        [F, np.array([3, 1], np.int64)],
        {"axis": 2},
        [F[..., :3], F[..., 3:]],
    ),
    "split evenly": ("Split", 1, [F], {"axis": 0}, [F[:1], F[1:]]),
    "concat along 1": ("Concat", 1, [F, F], {}, [np.concatenate([F, F], 1)]),
    "cast by name": ("Cast", 1, [F], {"to": "INT64"}, [F.astype(np.int64)]),
    "tile along an axis": (
        "Tile",
        1,
        [F, np.array([2]), np.array([1])],
        {},
        [np.tile(F, (1, 2, 1))],
    ),
    "gemm": (
        "Gemm",
        1,
        [F[0], F[1], ROW],
        {"transB": 1, "broadcast": 1, "beta": 2.0},
        [F[0] @ F[1].T + 2 * ROW],
    ),
    "dropout": ("Dropout", 6, [F], {"is_test": 1}, [F, np.ones_like(F)]),
    "batch normalization by places": (
        "BatchNormalization",
        6,
        [F, F[0], F[1], F[0], F[1]],
        {"is_test": 1, "spatial": 0, "epsilon": 0.0},
        [(F - F[0]) / np.sqrt(F[1]) * F[0] + F[1]],
    ),
    "upsample by two scales": (
        "Upsample",
        1,
        [IMAGE],
        {"height_scale": 2.0, "width_scale": 1.0},
        [IMAGE.repeat(2, axis=2)],
    ),
}


@pytest.mark.parametrize(
    ("type", "opset", "inputs", "attributes", "outputs"), BEFORE.values(), ids=BEFORE.keys()
)
def test_before_opset_7(
    type: str,
    opset: int,
    inputs: list[np.ndarray],
    attributes: dict[str, Any],
    outputs: list[np.ndarray],
) -> None:
    found = ran(model(type, opset, inputs, len(outputs), **attributes), inputs)
    for mine, expected in zip(found, outputs, strict=True):
        assert mine.dtype == expected.dtype
        np.testing.assert_allclose(mine, expected, rtol=1e-6)


@pytest.mark.parametrize("opset", [7, 9, 10, 12, 13, 22])
def test_the_mask_of_a_dropout_that_drops_nothing_is_the_runtimes(opset: int) -> None:
    data = model("Dropout", opset, [F], 2)
    theirs = onnxruntime.InferenceSession(data).run(None, {"x0": F})
    for mine, other in zip(ran(data, [F]), theirs, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_array_equal(mine, other)


REFUSED: dict[str, tuple[bytes, list[np.ndarray], str]] = {
    "dropout that trains": (model("Dropout", 6, [F]), [F], "with is_test 0 it trains"),
    "batch normalization that trains": (
        model("BatchNormalization", 9, [F, ONES, ONES, ONES, ONES], 5),
        [F, ONES, ONES, ONES, ONES],
        "with 5 outputs it trains",
    ),
    "a region of no tensor": (
        model("MaxRoiPool", 7, [IMAGE, REGIONS + 1], pooled_shape=[1, 1]),
        [IMAGE, REGIONS + 1],
        "batch of 1",
    ),
    "a region of many cells": (
        model("MaxRoiPool", 7, [IMAGE, REGIONS], pooled_shape=[10**6, 10**6]),
        [IMAGE, REGIONS],
        "more than the limit",
    ),
    "a huge picture": (
        model("Upsample", 7, [IMAGE], scales=[1.0, 1.0, 1e9, 1e9]),
        [IMAGE],
        "more than the limit",
    ),
    "a scale of nothing": (
        model("Upsample", 7, [IMAGE], scales=[1.0, 1.0, float("nan"), 1.0]),
        [IMAGE],
        "numbers above 0",
    ),
    "many tiles": (
        model("Tile", 1, [F, np.array([10**12]), np.array([0])]),
        [F, np.array([10**12]), np.array([0])],
        "more than the limit",
    ),
    "parts that do not fit": (
        model("Split", 1, [F], 2, axis=1, split=[1, 1]),
        [F],
        "do not make up the 3 of axis 1",
    ),
    "an unknown type": (model("Cast", 1, [F], to="COMPLEX"), [F], "expected one of"),
    "no pattern of RE2": (
        model("RegexFullMatch", 20, [TEXTS], pattern=r"(a)\1"),
        [TEXTS],
        "not valid in RE2: invalid escape sequence",
    ),
    "a pattern of endless repetition": (
        model("RegexFullMatch", 20, [TEXTS], pattern="(" * 2000 + "a" + "){1000}" * 2000),
        [TEXTS],
        "RE2",
    ),
}


@pytest.mark.parametrize(("data", "inputs", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_says_why(data: bytes, inputs: list[np.ndarray], message: str) -> None:
    with pytest.raises(RunStopped, match=message) as caught:
        ran(data, inputs)
    assert len(str(caught.value)) < 500


@pytest.mark.timeout(10)
@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+$b", "(.*)(.*)(.*)(.*)(.*)x"])
def test_a_hostile_pattern_takes_no_longer_than_the_text_is_long(pattern: str) -> None:
    text = np.array(["a" * 200_000], dtype=object)
    assert ran(model("RegexFullMatch", 20, [text], pattern=pattern), [text])[0].tolist() == [False]


def test_maps() -> None:
    (rows,) = ran(
        model("ZipMap", 1, [F[0, :, :2]], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]),
        [F[0, :, :2]],
    )
    assert isinstance(rows, tuple)
    assert all(isinstance(row, MappingProxyType) for row in rows)
    assert [dict(row) for row in rows] == [
        {"no": 0, "yes": 1},
        {"no": 4, "yes": 5},
        {"no": 8, "yes": 9},
    ]


CATEGORIES: dict[str, Any] = {
    "cats_strings": ["cat", "dog"],
    "cats_int64s": [7, 9],
    "default_int64": -1,
    "default_string": "?",
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [(TEXTS, [7, -1, 9, -1]), (np.array([9, 7, 1]), ["dog", "cat", "?"])],
    ids=["to numbers", "to texts"],
)
def test_categories(given: np.ndarray, expected: list[object]) -> None:
    assert (
        ran(model("CategoryMapper", 1, [given], domain="ai.onnx.ml", **CATEGORIES), [given])[
            0
        ].tolist()
        == expected
    )


@pytest.mark.parametrize(
    ("form", "expected"),
    [({}, [[4, 5]]), ({"map_form": "SPARSE", "max_map": 5}, [[0, 4, 0, 5, 0]])],
    ids=["dense", "sparse"],
)
def test_a_map_becomes_a_tensor(form: dict[str, Any], expected: list[list[float]]) -> None:
    """Of the second row: made by ZipMap, as no input of a model here is a map."""
    text = helper.make_graph(
        [
            helper.make_node(
                "ZipMap", ["x"], ["rows"], domain="ai.onnx.ml", classlabels_int64s=[1, 3]
            ),
            helper.make_node("Constant", [], ["one"], value_int=1),
            helper.make_node("SequenceAt", ["rows", "one"], ["row"]),
            helper.make_node("CastMap", ["row"], ["y"], domain="ai.onnx.ml", **form),
        ],
        "maps",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 2])],
        [ValueInfoProto(name="y")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    made = onnx.ModelProto.FromString(
        helper.make_model(text, opset_imports=opsets).SerializeToString()
    )
    result = loopscope.run(loopscope.read_model(made.SerializeToString()), {"x": F[0, :, :2]})
    np.testing.assert_array_equal(result.outputs[0], np.array(expected, np.float32))


def report(type: str, opset: int, domain: str = "") -> Report:
    return check(loopscope.read_model(model(type, opset, [F], domain=domain)), CATALOGUE)


@pytest.mark.parametrize(
    ("type", "opset", "domain", "code", "words"),
    [
        (
            "LongformerAttention",
            1,
            "com.microsoft",
            "LS301",
            "Operation 'LongformerAttention' (com.microsoft 1) is unknown",
        ),
        ("Gelu", 19, "", "LS302", "'ai.onnx 19' does not have the operation 'Gelu'"),
        (
            "Gradient",
            1,
            "ai.onnx.preview.training",
            "LS301",
            "Operation 'Gradient' (ai.onnx.preview.training 1) is unknown",
        ),
        ("Anything", 1, "my.own", "LS301", "Operation 'Anything' (my.own 1) is unknown"),
    ],
)
def test_what_cannot_be_run_is_named_with_its_domain(
    type: str, opset: int, domain: str, code: str, words: str
) -> None:
    (found,) = report(type, opset, domain).errors
    assert found.code == code
    assert words in found.message


@pytest.mark.parametrize(
    ("type", "domain", "advice"),
    [
        ("LongformerAttention", "com.microsoft", "belongs to ONNX Runtime"),
        ("Conv", "com.microsoft.nchwc", "again with ORT_ENABLE_EXTENDED"),
    ],
)
def test_operations_of_onnx_runtime_come_with_advice(type: str, domain: str, advice: str) -> None:
    (found,) = report(type, 1, domain).errors
    assert advice in found.advice


def test_every_version_of_every_operation_is_there() -> None:
    """Of ONNX itself and of its machine learning domain, also those that ONNX has withdrawn."""
    schemas = [
        one for one in onnx.defs.get_all_schemas_with_history() if one.domain in ("", "ai.onnx.ml")
    ]
    assert len(schemas) > 400
    missing = [
        (one.name, one.since_version)
        for one in schemas
        if ONNX.find(one.name, f"{one.domain or 'ai.onnx'} {one.since_version}") is None
    ]
    assert missing == []
    experimental = ONNX.find("ThresholdedRelu", "ai.onnx 9")
    assert experimental is not None
    assert experimental.opsets == (1, 9)
    assert ONNX.find("ImageScaler", "ai.onnx 10") is None
