"""ONNX operations that are computed here and not by the onnx package: attributes, ranks and
types, against ONNX Runtime.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ValueInfoProto, helper
from PIL import Image

import loopscope
from loopscope.errors import EngineError

_DICE = np.random.default_rng(5)
Inputs = list[np.ndarray | None]
Case = tuple[str, int, Inputs, dict[str, Any], int]


def reals(*shape: int, scale: float = 1) -> np.ndarray:
    return (_DICE.normal(size=shape) * scale).astype(np.float32)


def whole(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def one_node(
    type: str,
    opset: int,
    inputs: Sequence[np.ndarray | None],
    attributes: dict[str, Any],
    outputs: int,
) -> bytes:
    """Inputs that are None are left out; they have no static shapes."""
    names = ["" if one is None else f"x{number}" for number, one in enumerate(inputs)]
    made = [f"y{number}" for number in range(outputs)]
    kinds = {
        name: helper.np_dtype_to_tensor_dtype(one.dtype)
        for name, one in zip(names, inputs, strict=True)
        if one is not None
    }
    ranks = {name: one.ndim for name, one in zip(names, inputs, strict=True) if one is not None}
    graph = helper.make_graph(
        [helper.make_node(type, names, made, **attributes)],
        "one",
        [
            helper.make_tensor_value_info(name, kind, [None] * ranks[name])
            for name, kind in kinds.items()
        ],
        [ValueInfoProto(name=name) for name in made],
    )
    data: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    ).SerializeToString()
    return data


def feeds(inputs: Sequence[np.ndarray | None]) -> dict[str, np.ndarray]:
    return {f"x{number}": one for number, one in enumerate(inputs) if one is not None}


def ran(case: Case) -> tuple[Any, ...]:
    type, opset, inputs, attributes, outputs = case
    return loopscope.run(
        loopscope.read_model(one_node(type, opset, inputs, attributes, outputs)), feeds(inputs)
    ).outputs


LINE, IMAGE, VOLUME = reals(2, 4, 9), reals(1, 4, 7, 6), reals(1, 2, 5, 4, 6)
NARROW = {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 2, 1]}
BOXES = np.array([[[0, 0, 2, 2], [0, 0, 2.1, 2], [1, 1, 3, 3], [4, 4, 5, 5]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.7, -0.5], [0.1, 0.2, 0.3, 0.4]]], np.float32)
KINDS = np.array([[3, 1], [2, 3], [3, 1]], np.int64)
GRID = reals(1, 3, 5, 2, scale=1.3)


def _layer(
    gates: int, directions: int = 1, steps: int = 4, batch: int = 3, size: int = 2
) -> Inputs:
    """X, W, R, B and lengths."""
    weights = [
        reals(directions, gates * size, 3),
        reals(directions, gates * size, size),
        reals(directions, 2 * gates * size),
    ]
    return [reals(steps, batch, 3), *weights, np.array([2, 4, 1], np.int32)]


BYTES = _DICE.integers(0, 256, (1, 4, 9), np.uint8)

_DEFORMED = [
    reals(2, 4, 6, 5),
    reals(6, 2, 3, 2),
    reals(2, 24, 3, 6, scale=2),
    reals(6),
    reals(2, 12, 3, 6),
]
_DEFORMED[2][0, 0, 0, :4] = [np.inf, -np.inf, np.nan, 1e30]
CASES: dict[str, Case] = {
    "a deformed convolution": (
        "DeformConv",
        19,
        list(_DEFORMED),
        {
            "group": 2,
            "offset_group": 2,
            "strides": [2, 1],
            "pads": [1, 1, 0, 2],
            "dilations": [1, 2],
        },
        1,
    ),
    "elements by coordinates, no batch": (
        "GatherND",
        13,
        [reals(0, 3, 2), whole().reshape(0, 1)],
        {"batch_dims": 1},
        1,
    ),
    "elements by coordinates, in batches": (
        "GatherND",
        13,
        [reals(2, 3, 4), whole(0, 2, 1, -1).reshape(2, 2, 1)],
        {"batch_dims": 1},
        1,
    ),
    "no points of a volume": ("GridSample", 20, [VOLUME[:1], reals(1, 3, 0, 2, 3)], {}, 1),
    "integers of a line": (
        "ConvInteger",
        10,
        [BYTES, BYTES.reshape(3, 4, 3), np.array(7, np.uint8)],
        {"strides": [2], "pads": [1, 2]},
        1,
    ),
    "integers in groups": (
        "ConvInteger",
        10,
        [BYTES, BYTES.reshape(6, 2, 3)],
        {"group": 2, "dilations": [2]},
        1,
    ),
    "batches of matrices by letters": (
        "Einsum",
        12,
        [reals(3, 2, 4), reals(3, 4, 5)],
        {"equation": "bij, bjk -> bik"},
        1,
    ),
    "the trace by letters": (
        "Einsum",
        12,
        [_DICE.integers(-9, 9, (2, 4, 4))],
        {"equation": "...ii->..."},
        1,
    ),
    "letters without a result": ("Einsum", 12, [reals(4, 3), reals(4)], {"equation": "zx,z"}, 1),
    "convolution of a line": (
        "Conv",
        11,
        [LINE, reals(6, 2, 3), reals(6)],
        {"group": 2, "strides": [2], "dilations": [2]},
        1,
    ),
    "convolution, same length": (
        "Conv",
        11,
        [IMAGE, reals(3, 4, 2, 3)],
        {"auto_pad": "SAME_LOWER", "strides": [2, 1]},
        1,
    ),
    "convolution of a volume": (
        "Conv",
        11,
        [VOLUME, reals(4, 1, 2, 2, 3)],
        {"group": 2, "pads": [1, 0, 1, 0, 2, 0]},
        1,
    ),
    "transposed in groups": (
        "ConvTranspose",
        11,
        [LINE, reals(4, 3, 3), reals(6)],
        {"group": 2, "strides": [2], "pads": [1, 0]},
        1,
    ),
    "transposed, dilated": (
        "ConvTranspose",
        11,
        [IMAGE, reals(4, 1, 2, 3)],
        {"dilations": [2, 1], "strides": [1, 3], "output_padding": [0, 2]},
        1,
    ),
    "transposed to a shape": (
        "ConvTranspose",
        11,
        [IMAGE, reals(4, 2, 3, 3)],
        {"strides": [2, 2], "output_shape": [14, 12]},
        1,
    ),
    "transposed, same": (
        "ConvTranspose",
        11,
        [IMAGE, reals(4, 2, 3, 3)],
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
        1,
    ),
    "means with padding": ("AveragePool", 11, [IMAGE], {**NARROW, "count_include_pad": 1}, 1),
    "means, ceiling": (
        "AveragePool",
        11,
        [IMAGE],
        {**NARROW, "ceil_mode": 1, "count_include_pad": 1},
        1,
    ),
    "means, same length": (
        "AveragePool",
        11,
        [LINE],
        {"kernel_shape": [4], "strides": [2], "auto_pad": "SAME_LOWER"},
        1,
    ),
    "means, dilated": (
        "AveragePool",
        19,
        [VOLUME],
        {"kernel_shape": [2, 2, 3], "dilations": [2, 1, 2]},
        1,
    ),
    "largest of a line and where": (
        "MaxPool",
        12,
        [LINE],
        {"kernel_shape": [3], "auto_pad": "SAME_UPPER"},
        2,
    ),
    "largest, by columns": (
        "MaxPool",
        12,
        [VOLUME],
        {"kernel_shape": [2, 3, 2], "storage_order": 1, "ceil_mode": 1},
        2,
    ),
    "largest of bytes": (
        "MaxPool",
        12,
        [(LINE * 50).astype(np.int8)],
        {"kernel_shape": [4], "dilations": [2]},
        2,
    ),
    "norms of windows": ("LpPool", 18, [IMAGE], {**NARROW, "p": 3}, 1),
    "norms, window below stride": (
        "LpPool",
        11,
        [LINE],
        {"kernel_shape": [2], "strides": [3], "auto_pad": "SAME_UPPER"},
        1,
    ),
    "largest of all places": ("GlobalMaxPool", 1, [VOLUME], {}, 1),
    "mean of all places": ("GlobalAveragePool", 1, [LINE], {}, 1),
    "rnn": ("RNN", 14, [*_layer(1), reals(1, 3, 2)], {"hidden_size": 2, "direction": "reverse"}, 2),
    "rnn, both ways": (
        "RNN",
        14,
        _layer(1, 2),
        {"hidden_size": 2, "direction": "bidirectional", "activations": ["Relu", "Tanh"]},
        2,
    ),
    "rnn, clipped": ("RNN", 14, _layer(1), {"hidden_size": 2, "clip": 0.3}, 2),
    "rnn, activations with numbers": (
        "RNN",
        14,
        _layer(1, 2),
        {
            "hidden_size": 2,
            "direction": "bidirectional",
            "activations": ["HardSigmoid", "Affine"],
            "activation_alpha": [0.3, 0.7],
            "activation_beta": [0.4, 0.1],
        },
        2,
    ),
    "gru": (
        "GRU",
        14,
        [*_layer(3), reals(1, 3, 2)],
        {"hidden_size": 2, "linear_before_reset": 1},
        2,
    ),
    "gru, reset before": (
        "GRU",
        14,
        _layer(3, 2),
        {"hidden_size": 2, "direction": "bidirectional", "clip": 0.5},
        2,
    ),
    "gru, activations": (
        "GRU",
        14,
        _layer(3),
        {"hidden_size": 2, "direction": "reverse", "activations": ["Relu", "Sigmoid"]},
        2,
    ),
    "lstm": (
        "LSTM",
        14,
        [*_layer(4), reals(1, 3, 2), reals(1, 3, 2), reals(1, 6)],
        {"hidden_size": 2},
        3,
    ),
    "lstm, both ways": (
        "LSTM",
        14,
        _layer(4, 2),
        {"hidden_size": 2, "direction": "bidirectional", "clip": 0.4},
        3,
    ),
    "lstm, input and forget": (
        "LSTM",
        14,
        _layer(4),
        {"hidden_size": 2, "input_forget": 1, "direction": "reverse"},
        3,
    ),
    "lstm, activations": (
        "LSTM",
        14,
        _layer(4),
        {"hidden_size": 2, "activations": ["Tanh", "Sigmoid", "Relu"]},
        3,
    ),
    "neighbouring channels": ("LRN", 13, [IMAGE], {"size": 3, "alpha": 0.5, "bias": 2.0}, 1),
    "neighbours beyond the channels": ("LRN", 13, [IMAGE], {"size": 11, "alpha": 0.5}, 1),
    "norm of magnitudes": ("LpNormalization", 1, [LINE], {"axis": 1, "p": 1}, 1),
    "norm of nothing": ("LpNormalization", 1, [np.zeros((2, 3), np.float32)], {"p": 2}, 1),
    "padding cuts": ("Pad", 13, [LINE, whole(0, -1, 2, 1, 0, -3), np.array(7, np.float32)], {}, 1),
    "padding cuts and repeats": (
        "Pad",
        18,
        [LINE, whole(-2, 3), None, whole(-1)],
        {"mode": "reflect"},
        1,
    ),
    "padding wraps": ("Pad", 19, [LINE, whole(0, 0, 4, 0, 0, 5)], {"mode": "wrap"}, 1),
    "one hot": ("OneHot", 11, [KINDS, whole(4), whole(5, 9)], {"axis": 1}, 1),
    "one hot, from the end": ("OneHot", 11, [KINDS - 5, np.array(4), whole(5, 9)], {"axis": -1}, 1),
    "distinct as they come": ("Unique", 11, [KINDS], {"sorted": 0}, 4),
    "distinct rows": ("Unique", 11, [KINDS], {"axis": 0}, 4),
    "gathered along the last axis": (
        "GatherElements",
        13,
        [LINE, _DICE.integers(-9, 9, (2, 4, 3))],
        {"axis": -1},
        1,
    ),
    "gathered from a corner": (
        "GatherElements",
        13,
        [LINE, _DICE.integers(-9, 9, (1, 2, 3))],
        {"axis": 2},
        1,
    ),
    "boxes without thresholds": ("NonMaxSuppression", 11, [BOXES, SCORES, whole(3)], {}, 1),
    "boxes without a number": (
        "NonMaxSuppression",
        11,
        [BOXES, SCORES, None, np.array([0.5], np.float32)],
        {},
        1,
    ),
    "boxes by their centres": (
        "NonMaxSuppression",
        11,
        [BOXES, SCORES, whole(2), np.array([0.5], np.float32), np.array([0.3], np.float32)],
        {"center_point_box": 1},
        1,
    ),
    "smallest and where": ("TopK", 11, [LINE, whole(3)], {"axis": 1, "largest": 0}, 2),
    "mean of what is broadcast": ("Mean", 13, [reals(3, 1), reals(2, 1, 4), reals(4)], {}, 1),
    "flattened before all axes": ("Flatten", 13, [LINE], {"axis": -3}, 1),
    "flattened nothing": ("Flatten", 13, [np.zeros((2, 0, 3), np.float32)], {"axis": 3}, 1),
    "axes of length 1 from both ends": ("Squeeze", 11, [reals(1, 2, 1, 1)], {"axes": [0, -1]}, 1),
    "lengths between bounds": ("Shape", 15, [VOLUME], {"start": -9, "end": -2}, 1),
    "no lengths": ("Shape", 15, [LINE], {"end": -4}, 1),
    "softsign of a number": ("Softsign", 1, [np.array(-2, np.float32)], {}, 1),
    "log softmax of what is far apart": (
        "LogSoftmax",
        13,
        [np.array([[0, 70000, -3]], np.float32)],
        {},
        1,
    ),
    "sum of zeros": (
        "Sum",
        13,
        [np.array([-0.0, 0], np.float32), np.array([-0.0, -0.0], np.float32)],
        {},
        1,
    ),
    "sigmoid of what is far out": (
        "Sigmoid",
        13,
        [np.array([-100, -30, 30, 100], np.float32)],
        {},
        1,
    ),
    "square and cube": ("Pow", 13, [LINE, np.array(3, np.int64)], {}, 1),
    "erf": ("Erf", 13, [LINE], {}, 1),
    "a third of a row": (
        "Gemm",
        13,
        [IMAGE[0, 0], reals(5, 6), reals(7, 1)],
        {"transB": 1, "alpha": 0.5, "beta": 2.0},
        1,
    ),
    "parts that are left": ("Split", 18, [LINE], {"axis": -1, "num_outputs": 5}, 5),
    "slice from far before, backwards": (
        "Slice",
        13,
        [LINE, whole(-99), whole(-(2**62)), whole(2), whole(-1)],
        {},
        1,
    ),
    "layer normalization": (
        "LayerNormalization",
        17,
        [IMAGE, reals(7, 6), reals(6)],
        {"axis": 2},
        3,
    ),
    "instances": ("InstanceNormalization", 6, [IMAGE, reals(4), reals(4)], {"epsilon": 0.1}, 1),
    "groups with a scale each": (
        "GroupNormalization",
        18,
        [IMAGE, reals(2), reals(2)],
        {"num_groups": 2},
        1,
    ),
    "groups of channels with a scale each": (
        "GroupNormalization",
        21,
        [VOLUME[:, [0] * 6], reals(6), reals(6)],
        {"num_groups": 3},
        1,
    ),
    "batches by what is known": (
        "BatchNormalization",
        15,
        [IMAGE, *(reals(4) ** 2 for _ in range(4))],
        {},
        1,
    ),
    "batches by what is known, before": (
        "BatchNormalization",
        9,
        [IMAGE, *(reals(4) ** 2 for _ in range(4))],
        {},
        1,
    ),
    "roots of mean squares": ("RMSNormalization", 23, [IMAGE, reals(7, 6)], {"axis": 2}, 1),
    "squares beyond halves": (
        "RMSNormalization",
        23,
        [(LINE * 900).astype(np.float16), reals(9).astype(np.float16)],
        {},
        1,
    ),
    "largest of a window": (
        "MaxPool",
        12,
        [IMAGE],
        {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 2], "dilations": [1, 2]},
        1,
    ),
    "hard swish": ("HardSwish", 14, [LINE * 5], {}, 1),
    "hard sigmoid": ("HardSigmoid", 6, [LINE * 5], {"alpha": 0.3, "beta": 0.4}, 1),
    "mish": ("Mish", 18, [LINE * 9], {}, 1),
    "less below": ("LeakyRelu", 16, [LINE], {"alpha": 0.2}, 1),
    "more below": ("LeakyRelu", 16, [LINE], {"alpha": 1.5}, 1),
    "nothing below": (
        "LeakyRelu",
        16,
        [np.array([np.inf, -2, -0.0, 3], np.float32)],
        {"alpha": 0.0},
        1,
    ),
    "gelu": ("Gelu", 20, [reals(4, scale=3)], {"approximate": "tanh"}, 1),
    "squares of integers": (
        "ReduceSumSquare",
        13,
        [np.array([[3, -4], [0, 2]], np.int32)],
        {"axes": [-1], "keepdims": 0},
        1,
    ),
    "squares alone": ("ReduceSumSquare", 18, [LINE, whole()], {"noop_with_empty_axes": 1}, 1),
    "log of the sum of powers": ("ReduceLogSumExp", 18, [LINE * 90, whole(0, 2)], {}, 1),
    "log of the power of a number": (
        "ReduceLogSumExp",
        13,
        [np.array(90, np.float32)],
        {"keepdims": 0},
        1,
    ),
    "mean of integers": (
        "ReduceMean",
        13,
        [np.array([[3, -4, 2], [0, -2, -1]], np.int64)],
        {"axes": [1]},
        1,
    ),
    "cubic, at the border": (
        "GridSample",
        20,
        [IMAGE, GRID],
        {"mode": "cubic", "padding_mode": "border", "align_corners": 1},
        1,
    ),
    "linear, reflected": (
        "GridSample",
        16,
        [IMAGE, GRID],
        {"mode": "bilinear", "padding_mode": "reflection"},
        1,
    ),
    "linear in a volume": ("GridSample", 20, [VOLUME, reals(1, 2, 2, 3, 3)], {"mode": "linear"}, 1),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    type, opset, inputs, attributes, outputs = case
    session = onnxruntime.InferenceSession(one_node(type, opset, inputs, attributes, outputs))
    mine = ran(case)
    assert len(mine) == outputs
    for one, other in zip(mine, session.run(None, feeds(inputs)), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("type", "gates", "states"), [("RNN", 1, 1), ("GRU", 3, 1), ("LSTM", 4, 2)]
)
def test_the_batch_may_come_first(type: str, gates: int, states: int) -> None:
    """The runtime computes only the other layout."""
    x, w, r, b, lengths = _layer(gates, 2)
    assert x is not None
    first = [reals(2, 3, 2) for _ in range(states)]
    attributes = {"hidden_size": 2, "direction": "bidirectional"}
    steps_first = ran((type, 14, [x, w, r, b, lengths, *first], attributes, 1 + states))
    turned = [state.swapaxes(0, 1) for state in first]
    batch_first = ran(
        (
            type,
            14,
            [x.swapaxes(0, 1), w, r, b, lengths, *turned],
            {**attributes, "layout": 1},
            1 + states,
        )
    )
    np.testing.assert_array_equal(batch_first[0], steps_first[0].transpose(2, 0, 1, 3))
    for one, other in zip(batch_first[1:], steps_first[1:], strict=True):
        np.testing.assert_array_equal(one, other.swapaxes(0, 1))


def test_transposed_to_the_same_length_by_a_small_window() -> None:
    """Where the window is shorter than the stride, the runtime gives fewer places than length
    times stride, which the page asks for.
    """
    (mine,) = ran(
        (
            "ConvTranspose",
            11,
            [np.ones((1, 1, 3), np.float32), np.ones((1, 1, 1), np.float32)],
            {"strides": [3], "auto_pad": "SAME_UPPER"},
            1,
        )
    )
    assert mine.tolist() == [[[1, 0, 0, 1, 0, 0, 1, 0, 0]]]


@pytest.mark.parametrize("zeros", [np.array([3, 0, 255], np.uint8), np.array(9, np.uint8), None])
def test_integers_with_a_zero_point_for_each_filter(zeros: np.ndarray | None) -> None:
    filters = BYTES.reshape(3, 4, 3)
    (made,) = ran(("ConvInteger", 10, [BYTES, filters, None, zeros], {}, 1))
    below = np.zeros(1) if zeros is None else zeros.reshape(-1).astype(np.float64)
    (expected,) = ran(
        ("Conv", 11, [BYTES.astype(np.float64), filters - below.reshape(-1, 1, 1)], {}, 1)
    )
    assert made.dtype == np.int32
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1"])
@pytest.mark.parametrize(
    ("layout", "expected"), [("RGB", [255, 0, 0]), ("BGR", [0, 0, 255]), ("Grayscale", [76])]
)
def test_images_of_any_colours(mode: str, layout: str, expected: list[int]) -> None:
    """An image file without three colours has three of them all the same."""
    file = io.BytesIO()
    Image.new("RGB", (3, 2), (255, 0, 0)).convert(mode, dither=Image.Dither.NONE).save(file, "PNG")
    (made,) = ran(
        (
            "ImageDecoder",
            20,
            [np.frombuffer(file.getvalue(), np.uint8)],
            {"pixel_format": layout},
            1,
        )
    )
    assert made.shape == (2, 3, len(expected))
    assert made[1, 2].tolist() == (
        expected if mode in ("P", "RGBA") else [76 if mode == "L" else 0] * len(expected)
    )


def test_points_of_a_volume_that_are_no_finite_numbers() -> None:
    """What is infinitely far is outside, and what is not known gives nothing that is known."""
    grid = reals(1, 3, 2, 2, 3, scale=0.5)
    far, infinite, unknown = grid.copy(), grid.copy(), grid.copy()
    far[0, 0, 1, 0, 2], infinite[0, 0, 1, 0, 2], unknown[0, 0, 1, 0, 2] = -1e5, -np.inf, np.nan
    wanted, found, lost = (
        ran(("GridSample", 20, [VOLUME, one], {}, 1))[0] for one in (far, infinite, unknown)
    )
    np.testing.assert_array_equal(found, wanted)
    assert np.argwhere(np.isnan(lost)).tolist() == [
        [0, channel, 0, 1, 0] for channel in range(VOLUME.shape[1])
    ]


@pytest.mark.parametrize("type", ["Bernoulli", "RandomUniformLike", "RandomNormalLike"])
def test_a_scalar_drawn_by_chance(type: str) -> None:
    (made,) = ran((type, 15, [np.array(1, np.float32)], {}, 1))
    assert made.shape == ()
    assert made.dtype == np.float32


def test_a_reduction_of_nothing() -> None:
    """The page leaves it open; the mean is 0, as the runtimes have it."""
    nothing = np.zeros((2, 0), np.float32)
    with warnings.catch_warnings(action="error"):
        assert np.isnan(ran(("GlobalAveragePool", 1, [nothing[None]], {}, 1))[0]).all()
    assert ran(("ReduceMean", 13, [nothing], {"axes": [1], "keepdims": 0}, 1))[0].tolist() == [0, 0]
    assert ran(("ReduceLogSumExp", 13, [nothing], {"axes": [1], "keepdims": 0}, 1))[0].tolist() == [
        -math.inf,
        -math.inf,
    ]


REFUSED: dict[str, tuple[Case, str]] = {
    "groups": (
        ("Conv", 11, [LINE, reals(3, 2, 3)], {"group": 2}, 1),
        "2 groups do not divide 4 channels and 3 filters",
    ),
    "no space": (
        ("Conv", 11, [reals(2, 3), reals(2, 3)], {}, 1),
        r"expected \[N, C, lengths...\] twice",
    ),
    "pads": (
        ("Pad", 13, [LINE, whole(1, 2)], {}, 1),
        r"the pads have shape \[2\], expected 6 numbers",
    ),
    "pads in no mode": (
        ("Pad", 13, [LINE, whole(0, 0, 1, 0, 0, 1)], {"mode": "linear_ramp"}, 1),
        "mode is 'linear_ramp', expected one of",
    ),
    "pads of nothing": (
        ("Pad", 13, [LINE[:, :0], whole(0, 1, 0, 0, 1, 0)], {"mode": "edge"}, 1),
        "axis 1 is empty and cannot be padded",
    ),
    "activation": (
        ("RNN", 14, _layer(1), {"hidden_size": 2, "activations": ["Sin"]}, 2),
        "the activation 'Sin' is unknown",
    ),
    "too few activations": (
        ("LSTM", 14, _layer(4), {"hidden_size": 2, "activations": ["Tanh"]}, 3),
        "names 1 functions, expected 3",
    ),
    "direction": (
        ("GRU", 14, _layer(3), {"hidden_size": 2, "direction": "bidirectional"}, 2),
        "the weights are of 1 directions",
    ),
    "lengths": (
        ("RNN", 14, [*_layer(1)[:4], np.array([9, 1, 1], np.int32)], {"hidden_size": 2}, 2),
        "expected 3 numbers of 0 to 4",
    ),
    "initial state": (
        ("GRU", 14, [*_layer(3)[:3], None, None, reals(1, 1, 2)], {"hidden_size": 2}, 2),
        r"has shape \[1, 1, 2\], expected \[1, 3, 2\]",
    ),
    "kernel": (("MaxPool", 12, [IMAGE], {"kernel_shape": [2]}, 1), r"the kernel_shape is \[2\]"),
    "size": (("LRN", 13, [IMAGE], {"size": 0}, 1), "size is 0 for data of shape"),
    "norm": (("LpNormalization", 1, [LINE], {"p": 3}, 1), "p is 3, expected 1 or 2"),
    "axis": (("Flatten", 13, [LINE], {"axis": 4}, 1), "axis 4 is out of range for rank 3"),
    "values": (
        ("OneHot", 11, [KINDS, whole(4), whole(5)], {}, 1),
        "expected at least 0 and 2 values",
    ),
    "more than there are": (
        ("TopK", 11, [LINE, whole(150_000_000)], {}, 2),
        "k is 150000000, the axis has 9 elements",
    ),
    "index": (
        ("Gather", 13, [LINE, whole(9)], {"axis": -1}, 1),
        "index 9 is out of range for an axis of length 9",
    ),
    "parts": (
        ("Split", 13, [LINE, whole(4, 4)], {"axis": 2}, 2),
        r"lengths \[4, 4\] do not make up the 9 of axis 2",
    ),
    "outputs": (
        ("Split", 13, [LINE, whole(4, 5)], {"axis": 2}, 1),
        "there are 2 parts, expected as many as outputs, 1",
    ),
    "perm": (("Transpose", 13, [LINE], {"perm": [1, 0]}, 1), "perm is .1, 0., expected the 3 axes"),
    "third": (
        ("Gemm", 13, [reals(2, 3), reals(3, 4), reals(3)], {}, 1),
        r"shape is \[3\], expected one that is broadcast to \[2, 4\]",
    ),
    "axis to fold": (
        ("ReduceMax", 13, [LINE], {"axes": [3]}, 1),
        "axis 3 is out of range for rank 3",
    ),
    "length": (
        ("ConstantOfShape", 9, [whole(2, -1)], {}, 1),
        r"the shape is \[2, -1\], expected no negative length",
    ),
    "stash": (
        ("LayerNormalization", 17, [LINE, reals(9)], {"stash_type": 10}, 1),
        "stash_type is 10, expected 1",
    ),
    "much, by expanding": (
        ("Expand", 13, [reals(1), whole(2**20, 2**20)], {}, 1),
        "the output of Expand",
    ),
    "much": (("Pad", 13, [LINE, whole(0, 0, 2**40, 0, 0, 2**40)], {}, 1), "the output of Pad"),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        ran(case)
