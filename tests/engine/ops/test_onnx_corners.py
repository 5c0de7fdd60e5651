"""Corners of ONNX operations that random nodes beside ONNX Runtime found: rare types, lengths of
1, infinities, empty texts.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.engine.ops.test_onnx_own import Case, feeds, one_node, ran, reals, whole

CASES: dict[str, Case] = {
    "affine grid of f64": (
        "AffineGrid",
        20,
        [np.array([[[1, 0.5, 0.1], [0, 2, 0.3]]]), whole(1, 2, 3, 4)],
        {},
        1,
    ),
    "affine grid of a volume": (
        "AffineGrid",
        20,
        [reals(2, 3, 4), whole(2, 1, 2, 3, 49)],
        {"align_corners": 1},
        1,
    ),
    "affine grid of one row": (
        "AffineGrid",
        20,
        [reals(1, 2, 3), whole(1, 1, 1, 3)],
        {"align_corners": 1},
        1,
    ),
    "the limits of finite numbers": (
        "Clip",
        13,
        [np.array([-np.inf, 1, np.inf], np.float32)],
        {},
        1,
    ),
    "a bound of one element": (
        "Clip",
        13,
        [np.array(2.5, np.float32), np.ones(1, np.float32)],
        {},
        1,
    ),
    "products along one number in brackets": (
        "CumProd",
        26,
        [reals(2, 3), whole(-1)],
        {"reverse": 1, "exclusive": 1},
        1,
    ),
    "determinants of f16": ("Det", 11, [np.array([[[1, 2], [3, 5]]], np.float16)], {}, 1),
    **{
        f"{type} of {length.tolist()}, {attributes}": (type, 17, [length], attributes, 1)
        for type in ("BlackmanWindow", "HammingWindow", "HannWindow")
        for length, attributes in (
            (whole(5), {}),
            (np.array(6, np.int32), {"periodic": 0}),
            (whole(2), {"output_datatype": 11}),
            (whole(0), {}),
        )
    },
    "a volume of one element, reflected": (
        "GridSample",
        20,
        [reals(1, 2, 3, 1, 2), reals(1, 2, 2, 2, 3)],
        {"padding_mode": "reflection", "align_corners": 1},
        1,
    ),
    "statistics of f64 in f32": (
        "LayerNormalization",
        17,
        [reals(2, 3).astype(np.float64), np.ones(3)],
        {},
        3,
    ),
    "bytes that are 0": (
        "MaxPool",
        12,
        [np.array([[[0, 5, 0, 0, 3]]], np.uint8)],
        {"kernel_shape": [1]},
        2,
    ),
    "bytes that are 0, padded": (
        "MaxPool",
        12,
        [np.array([[[0, 0, 0, -128, 3]]], np.int8)],
        {"kernel_shape": [2], "pads": [1, 1]},
        2,
    ),
    "pads of opset 2 that cut off": (
        "Pad",
        2,
        [reals(4, 3)],
        {"pads": [1, -1, -2, 2], "value": 0.5},
        1,
    ),
    "pads of opset 2 from the edge": (
        "Pad",
        2,
        [reals(4, 3)],
        {"pads": [1, 0, 2, 2], "mode": "edge"},
        1,
    ),
    "whole numbers to negative powers": (
        "Pow",
        15,
        [whole(1, -1, 2, 3, -1), whole(-1, -3, -1, 2, -2)],
        {},
        1,
    ),
    "one text in pieces": ("StringSplit", 20, [np.array("a b", object)], {}, 2),
    "pieces of empty texts": (
        "StringSplit",
        20,
        [np.array([["", "a,,b"], [",", "a"]], object)],
        {"delimiter": ","},
        2,
    ),
    "pieces up to a number": (
        "StringSplit",
        20,
        [np.array([" a b  c ", "  "], object)],
        {"maxsplit": 1},
        2,
    ),
    "pieces of no texts": ("StringSplit", 20, [np.zeros((2, 0), object)], {}, 2),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    type, opset, inputs, attributes, outputs = case
    session = onnxruntime.InferenceSession(one_node(type, opset, inputs, attributes, outputs))
    for one, other in zip(ran(case), session.run(None, feeds(inputs)), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype == object:
            assert one.tolist() == other.tolist()
        else:
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
