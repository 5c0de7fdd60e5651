"""Inputs of ONNX operations that do not fit: each is told in a sentence that says what was
expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import loopscope
from loopscope.debug.result import RunStopped

_BYTES = np.array([1, 2], np.uint8)


def _f(*lengths: int) -> np.ndarray:
    return np.ones(lengths, np.float32)


def _b(*lengths: int) -> np.ndarray:
    return np.ones(lengths, np.uint8)


def _i(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int64)


def _one(number: int) -> np.ndarray:
    return np.array(number, np.int64)


def _run(type: str, inputs: list[np.ndarray], attributes: dict[str, Any], version: int) -> None:
    names = [f"x{index}" for index in range(len(inputs))]
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), None)
        for name, one in zip(names, inputs, strict=True)
    ]
    outputs = ["y", "z"] if type == "TopK" else ["y"]
    node = helper.make_node(type, names, outputs, **attributes)
    graph = helper.make_graph(
        [node], "one", values, [onnx.ValueInfoProto(name=name) for name in outputs]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=9)
    loopscope.run(loopscope.read_model(model.SerializeToString()), inputs)


REFUSED = [
    (
        "BatchNormalization",
        15,
        [_f(2, 3, 4), _f(2), _f(3), _f(3), _f(3)],
        {},
        r"input 1 has shape \[2\], expected \[3\] for data of",
    ),
    ("BatchNormalization", 15, [_f(), _f(1), _f(1), _f(1), _f(1)], {}, "the data is a scalar"),
    (
        "BatchNormalization",
        9,
        [_f(2, 3), _f(2), _f(3), _f(3), _f(3)],
        {},
        r"shapes \[2,3\] and \[2\] cannot be broadcast together",
    ),
    (
        "InstanceNormalization",
        18,
        [_f(2, 3, 4), _f(3), _f(2)],
        {},
        r"input 2 has shape \[2\], expected \[3\]",
    ),
    (
        "InstanceNormalization",
        18,
        [_f(2), _f(2), _f(2)],
        {},
        r"the data has shape \[2\], expected \[N, C",
    ),
    ("GatherND", 18, [_f(2, 3), _i(5)], {}, "index 5 is out of range for axis 0 of length 2"),
    ("GatherND", 18, [_f(2, 3), _i([-3])], {}, "index -3 is out of range for axis 0 of length 2"),
    (
        "GatherND",
        18,
        [_f(2, 3), _i(0, 0, 0)],
        {},
        "the indices hold 3 coordinates each, the data has 2 axes",
    ),
    ("GatherND", 18, [_f(2, 3), _one(0)], {}, "expected at least one dimension each"),
    (
        "GatherND",
        18,
        [_f(2, 3), _i([0], [1], [0])],
        {"batch_dims": 1},
        "batch_dims is 1 for data of shape",
    ),
    (
        "ScatterND",
        18,
        [_f(2, 3), _i([5]), _f(1, 3)],
        {},
        "index 5 is out of range for axis 0 of length 2",
    ),
    (
        "ScatterND",
        18,
        [_f(2, 3), _i([0]), _f(1, 2)],
        {},
        r"the updates have shape \[1, 2\], expected \[1, 3\]",
    ),
    (
        "ScatterND",
        18,
        [_f(2, 3), _i([0]), _f(2, 3)],
        {"reduction": "add"},
        r"the updates have shape \[2, 3\], expected \[1, 3\]",
    ),
    ("ScatterElements", 18, [_f(2, 3), _i([0]), _f(1, 2)], {}, "expected equal ones of its rank"),
    ("CumSum", 18, [_f(2, 3), _i(0, 1)], {}, r"an axis of shape \[2\]"),
    ("CumSum", 18, [_f(), _one(0)], {}, r"data of shape \[\]"),
    ("CumSum", 18, [_f(2, 3), _one(2)], {}, "axis 2 is out of range for rank 2"),
    ("ArgMax", 18, [_f(2, 3)], {"axis": 2}, "axis 2 is out of range for rank 2"),
    ("ArgMin", 18, [_f(0, 3)], {"axis": 0}, "an axis without elements has no minimum"),
    ("TopK", 18, [_f(2, 3), _i(1, 2)], {}, r"K has shape \[2\], expected one number"),
    ("TopK", 1, [_f(2, 3)], {"k": 5}, "index 3 is out of range for an axis of length 3"),
    (
        "BitShift",
        18,
        [_BYTES, _BYTES],
        {"direction": "UP"},
        "direction is 'UP', expected LEFT or RIGHT",
    ),
    (
        "BitShift",
        18,
        [_BYTES, np.ones(3, np.uint8)],
        {"direction": "LEFT"},
        r"shapes \[2\] and \[3\] cannot be broadcast together",
    ),
    ("PRelu", 7, [_f(2, 3), _f(4)], {}, r"shapes \[2,3\] and \[4\] cannot be broadcast together"),
    (
        "Slice",
        1,
        [_f(2, 3)],
        {"starts": [0], "ends": [1], "axes": [5]},
        "axis 5 is out of range for rank 2",
    ),
    ("Slice", 1, [_f(2, 3)], {"starts": [0], "ends": [1, 2]}, "have different lengths"),
    (
        "GridSample",
        20,
        [_f(1, 1, 2, 2, 2), _f(1, 2, 2, 2, 2)],
        {},
        r"\[N, C, D, H, W\] and \[N, D', H', W', 3\]",
    ),
    (
        "GridSample",
        16,
        [_f(1, 1, 2, 2), _f(2, 2, 2, 2)],
        {},
        r"a grid of shape \[2, 2, 2, 2\]: expected",
    ),
    ("Tile", 18, [_f(2, 3), _i(1)], {}, "expected a number for each of 2 axes"),
    ("EyeLike", 18, [_f(2)], {}, "expected a matrix"),
    ("Trilu", 18, [_f(2)], {}, "expected matrices"),
    (
        "ReverseSequence",
        18,
        [_f(2, 3), _i(5, 5)],
        {},
        r"the lengths are \[5, 5\], expected 3 of at most 2",
    ),
    (
        "ReverseSequence",
        18,
        [_f(2, 3), _i(1, 1, 3)],
        {},
        r"the lengths are \[1, 1, 3\], expected 3 of at most 2",
    ),
    ("RoiAlign", 18, [_f(1, 1, 4, 4), _f(1, 4), _i(5)], {}, "a region is of image 5, there are 1"),
    (
        "RoiAlign",
        18,
        [_f(1, 1, 4, 4), _f(1, 3), _i(0)],
        {},
        r"expected \[N, C, H, W\], \[n, 4\] and \[n\]",
    ),
    ("DepthToSpace", 18, [_f(1, 3, 2, 2)], {"blocksize": 2}, "expected .* with C a multiple of 4"),
    (
        "SpaceToDepth",
        18,
        [_f(1, 1, 3, 3)],
        {"blocksize": 2},
        "expected .* with H and W multiples of 2",
    ),
    ("Gather", 18, [_f(2, 3), _i(5)], {}, r"index 5 is out of range for an axis of length 2"),
    (
        "MatMul",
        18,
        [_f(2, 3), _f(2, 3)],
        {},
        "a matrix product over lengths 3 and 2, expected equal ones",
    ),
    (
        "Concat",
        18,
        [_f(2, 3), _f(3, 2)],
        {"axis": 0},
        "inputs 0 and 1 have lengths 3 and 2 along axis 1, expected equal ones",
    ),
    (
        "LayerNormalization",
        17,
        [_f(2, 3), _f(2)],
        {},
        r"shapes \[2,3\] and \[2\] cannot be broadcast together",
    ),
    (
        "Concat",
        18,
        [_f(2), _f()],
        {"axis": 0},
        "the inputs have ranks 1, 0, expected equal ones of at least 1",
    ),
    (
        "Concat",
        3,
        [_f(2), _f()],
        {"axis": 0},
        "the inputs have ranks 1, 0, expected equal ones of at least 1",
    ),
    ("Scatter", 9, [_f(2, 3), _i([0]), _f(1, 2)], {}, "expected equal ones of its rank"),
    ("Det", 22, [_f(2, 3)], {}, r"shape \[2, 3\], expected square matrices"),
    ("CumProd", 26, [_f(2, 3), _i(0, 1)], {}, r"an axis of shape \[2\]"),
    (
        "Einsum",
        12,
        [_f(2, 3), _f(4, 2)],
        {"equation": "ij,jk->ik"},
        "label 'j' stands for lengths 3 and 4",
    ),
    ("Einsum", 12, [_f(2, 3)], {"equation": "ij,jk->ik"}, "is for 2 inputs, there are 1"),
    ("Einsum", 12, [_f(2)], {"equation": "ij->i"}, "'ij' does not fit an input of rank 1"),
    (
        "ImageDecoder",
        20,
        [_BYTES],
        {},
        "the 2 bytes are not an image, expected a file such as PNG or JPEG as u8",
    ),
    (
        "ImageDecoder",
        20,
        [_BYTES],
        {"pixel_format": "CMYK"},
        "pixel_format is 'CMYK', expected RGB, BGR or Grayscale",
    ),
    (
        "ConvInteger",
        10,
        [_b(2, 3), _b(2, 3)],
        {},
        r"data of shape \[2, 3\] and filters of shape \[2, 3\]: expected \[N, C",
    ),
    (
        "ConvInteger",
        10,
        [_b(1, 2, 4), _b(3, 2, 2), _b(), _b(2)],
        {},
        r"of the filters have shape \[2\], expected one number or 3",
    ),
    (
        "ConvInteger",
        10,
        [_b(1, 3, 4), _b(3, 2, 2)],
        {},
        "the data has 3 channels, the filters expect 2",
    ),
    (
        "Col2Im",
        18,
        [_f(1, 6, 5), _i(5, 5), _i(1, 5)],
        {},
        r"\[1, 6, 5\], expected \[N, a multiple of 5, 5\] for these blocks",
    ),
    (
        "Col2Im",
        18,
        [_f(1, 5, 7), _i(5, 5), _i(1, 5)],
        {},
        r"\[1, 5, 7\], expected \[N, a multiple of 5, 5\] for these blocks",
    ),
    (
        "Col2Im",
        18,
        [_f(5, 5), _i(5, 5), _i(1, 5)],
        {},
        r"data of shape \[5, 5\], the image \[5, 5\] and the block \[1, 5\], expected",
    ),
    (
        "Col2Im",
        18,
        [_f(1, 5, 5), _i(5, 5), _i(1, 5)],
        {"strides": [1]},
        r"strides \[1\], .* expected 2, 2 and 4 numbers",
    ),
    (
        "Attention",
        23,
        [_f(1, 2, 4, 8), _f(2, 6, 8), _f(1, 2, 6, 8)],
        {},
        "Q, K and V have shapes .* expected .batch, heads, length",
    ),
    (
        "Attention",
        23,
        [_f(1, 3, 4, 8), _f(1, 2, 6, 8), _f(1, 2, 6, 8)],
        {},
        "the heads of K dividing those of Q",
    ),
    (
        "Attention",
        23,
        [_f(1, 2, 4, 8), _f(1, 2, 6, 7), _f(1, 2, 6, 8)],
        {},
        "Q and K of equal size",
    ),
    (
        "Attention",
        23,
        [_f(1, 4, 8), _f(1, 6, 8), _f(1, 6, 8)],
        {},
        "q_num_heads is 0 and kv_num_heads 0, expected divisors",
    ),
    (
        "GroupNormalization",
        18,
        [_f(2, 3, 4), _f(2), _f(2)],
        {"num_groups": 2},
        r"24 elements cannot take the shape \[2,2,1,4\]",
    ),
]


@pytest.mark.parametrize(("type", "version", "inputs", "attributes", "told"), REFUSED)
def test_what_does_not_fit_is_told(
    type: str, version: int, inputs: list[np.ndarray], attributes: dict[str, Any], told: str
) -> None:
    with pytest.raises(RunStopped, match=f"{type}-[0-9]+ failed: .*{told}"):
        _run(type, inputs, attributes, version)
