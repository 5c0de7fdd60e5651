"""Operations on quantized tensors of the domain com.microsoft as ONNX Runtime computes them, to
the last quantum.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import loopscope
from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case, by_runtime
from tests.engine.ops.quantized_nodes import Dice, number

_DICE = Dice(17)
BYTES = (np.uint8, np.int8)
WORDS = (*BYTES, np.uint16, np.int16)
WINDOWS: tuple[dict[str, Any], ...] = (
    {"kernel_shape": [2, 2]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"kernel_shape": [3, 3], "auto_pad": "VALID"},
)


def every_pair(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    every = np.arange(256, dtype=np.uint8).view(dtype)
    first, second = np.meshgrid(every, every)
    return first.copy(), second.copy()


def of_two(type: str, first: np.ndarray, second: np.ndarray, scales: list[np.ndarray]) -> Case:
    zeros = [_DICE.whole(first.dtype) for _ in range(3)]
    return Case(
        type, [first, scales[0], zeros[0], second, scales[1], zeros[1], scales[2], zeros[2]]
    )


def tensor(*shape: int, dtype: Any) -> list[np.ndarray]:
    """A tensor, its scale and its zero point."""
    return [_DICE.whole(dtype, *shape), _DICE.scales(), _DICE.whole(dtype)]


def kind(dtype: Any) -> list[np.ndarray]:
    """Scale and zero point of an output."""
    return [_DICE.scales(), _DICE.whole(dtype)]


def _of_bytes(dtype: Any) -> dict[str, Case]:
    first, second = every_pair(dtype)
    halves = [number(0.5), number(0.25), number(1)]
    image = tensor(2, 6, 9, 8, dtype=dtype)
    halved = [number(0.02), number(13, dtype)]
    cases = {
        **{
            f"{type} of every pair{', halves' * ties}": of_two(
                type, first, second, halves if ties else [_DICE.scales() for _ in range(3)]
            )
            for type in ("QLinearAdd", "QLinearMul")
            for ties in (False, True)
        },
        **{
            f"{type} of {one} and {other}": of_two(
                type,
                _DICE.whole(dtype, *one),
                _DICE.whole(dtype, *other),
                [_DICE.scales() for _ in range(3)],
            )
            for type in ("QLinearAdd", "QLinearMul")
            for one, other in (
                ((3, 4), (4,)),
                ((2, 1, 4), (3, 1)),
                ((), (3,)),
                ((5,), ()),
                ((0, 3), (3,)),
            )
        },
        "sigmoid": Case("QLinearSigmoid", [*image, number(1 / 256), _DICE.whole(dtype)]),
        "sigmoid of no zero point": Case(
            "QLinearSigmoid", [*image[:2], None, number(1 / 256), _DICE.whole(dtype)]
        ),
        "leaky relu": Case("QLinearLeakyRelu", [*image, *kind(dtype)]),
        "leaky relu, halves": Case(
            "QLinearLeakyRelu",
            [image[0], number(0.5), image[2], number(1), number(7, dtype)],
            {"alpha": 0.5},
        ),
        "joined": Case(
            "QLinearConcat", [*kind(dtype), *image, *tensor(2, 2, 9, 8, dtype=dtype)], {"axis": 1}
        ),
        "joined last": Case("QLinearConcat", [*kind(dtype), *image, *image, *image], {"axis": -1}),
        "chosen": Case(
            "QLinearWhere",
            [_DICE.whole(np.int8, 6, 1, 8) > 0, *image, *tensor(8, dtype=dtype), *kind(dtype)],
        ),
        **{
            f"softmax of {opset} along {axis}": Case(
                "QLinearSoftmax",
                [*image, number(1 / 256), number(0 if dtype is np.uint8 else -128, dtype)],
                {"axis": axis, "opset": opset},
            )
            for axis in (0, 1, -1)
            for opset in (11, 13)
        },
        **{
            f"softmax of a scale of {scale}": Case(
                "QLinearSoftmax",
                [*tensor(9, 10, dtype=dtype), number(scale), number(0, dtype)],
                {"axis": -1, "opset": 13},
            )
            for scale in (1 / 255, 0.3, 1.5)
        },
        **{
            f"pooled by {window}, halves": Case(
                "QLinearAveragePool", [*image, image[1], number(13, dtype)], window
            )
            for window in ({"kernel_shape": [2, 2]}, WINDOWS[1])
        },
        "pooled wholly, halves": Case(
            "QLinearGlobalAveragePool", [*tensor(2, 99, 2, 2, dtype=dtype)[:1], *halved, *halved]
        ),
        "pooled line": Case(
            "QLinearAveragePool",
            [*tensor(2, 6, 9, dtype=dtype), *kind(dtype)],
            {"kernel_shape": [3]},
        ),
        "pooled volume": Case(
            "QLinearAveragePool",
            [*tensor(2, 3, 4, 5, 6, dtype=dtype), *kind(dtype)],
            {"kernel_shape": [3, 1, 2]},
        ),
        "greatest of a line": Case(
            "NhwcMaxPool", [_DICE.whole(dtype, 2, 9, 5)], {"kernel_shape": [3]}
        ),
        "greatest, dilated": Case(
            "NhwcMaxPool", [image[0]], {"kernel_shape": [2, 2], "dilations": [2, 3]}
        ),
        **{f"greatest of {window}": Case("NhwcMaxPool", [image[0]], window) for window in WINDOWS},
    }
    for last in (0, 1):
        place = ", channels last" * last
        cases |= {
            f"pooled wholly{place}": Case(
                "QLinearGlobalAveragePool", [*image, *kind(dtype)], {"channels_last": last}
            ),
            **{
                f"pooled by {window}{place}": Case(
                    "QLinearAveragePool", [*image, *kind(dtype)], {**window, "channels_last": last}
                )
                for window in (*WINDOWS, {**WINDOWS[1], "count_include_pad": 1})
            },
            **{
                f"convolution of {group} groups{', bias' * bias}{place}": Case(
                    "QLinearConv",
                    [
                        *image,
                        *(
                            _DICE.whole(np.int8, 8, (8 if last else 6) // group, 3, 3),
                            _DICE.scales(8),
                            number(0, np.int8).repeat(8),
                        ),
                        *(number(3), _DICE.whole(dtype)),
                        *([_DICE.sums(8)] if bias else []),
                    ],
                    {
                        "channels_last": last,
                        "group": group,
                        "pads": [1, 0, 1, 2],
                        "strides": [1, 2],
                    },
                )
                for group in (1, 2)
                for bias in (False, True)
            },
        }
    return {f"{np.dtype(dtype).name}, {name}": case for name, case in cases.items()}


def _of_words(dtype: Any, floats: Any) -> dict[str, Case]:
    data, quantized = _DICE.reals(3, 4, 5).astype(floats), _DICE.whole(dtype, 3, 4, 5)
    some = _DICE.scales(4).astype(floats), _DICE.whole(dtype, 4)
    cases = {
        "all": Case("QuantizeLinear", [data, number(0.1, floats), _DICE.whole(dtype)]),
        "each": Case("QuantizeLinear", [data, *some], {"axis": 1}),
        "each, no axis": Case("QuantizeLinear", [data, *some]),
        "back": Case("DequantizeLinear", [quantized, number(0.1, floats), _DICE.whole(dtype)]),
        "each, back": Case("DequantizeLinear", [quantized, *some], {"axis": -2}),
        "back, no zero point": Case("DequantizeLinear", [quantized, number(0.1, floats)]),
    }
    return {
        f"{np.dtype(dtype).name} of {np.dtype(floats).name}, {name}": case
        for name, case in cases.items()
    }


CASES: dict[str, Case] = {
    **{name: case for dtype in BYTES for name, case in _of_bytes(dtype).items()},
    **{
        name: case
        for dtype in WORDS
        for floats in (np.float32, np.float16)
        for name, case in _of_words(dtype, floats).items()
    },
    "u8 where nothing is said": Case("QuantizeLinear", [_DICE.reals(5), number(0.1)]),
    "i32 back": Case("DequantizeLinear", [_DICE.sums(5), number(0.1)]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4], ids=["i4", "u4"])
def test_four_bits_there_and_back(dtype: Any) -> None:
    """In one model, for Python's arrays do not reach ONNX Runtime in this type."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    parameters = [
        helper.make_tensor("s", TensorProto.FLOAT, [], [0.7]),
        helper.make_tensor("z", kind, [], [3]),
    ]
    nodes = [
        helper.make_node(type, [data, "s", "z"], [made], domain="com.microsoft")
        for type, data, made in (("QuantizeLinear", "x", "q"), ("DequantizeLinear", "q", "y"))
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [50]) for name in "xy"]
    graph = helper.make_graph(nodes, "there and back", ends[:1], ends[1:], parameters)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    feeds = {"x": _DICE.reals(50) * 5}
    np.testing.assert_array_equal(
        loopscope.run(loopscope.read_model(data), feeds).outputs[0], by_runtime(data, feeds)[0]
    )


@pytest.mark.parametrize("type", ["QLinearAdd", "QLinearMul"])
def test_zero_points_that_are_left_out_are_0(type: str) -> None:
    """As the documentation has it; ONNX Runtime's own inference refuses them."""
    first, second = _DICE.whole(np.int8, 40), _DICE.whole(np.int8, 40)
    zero, scales = number(0, np.int8), [_DICE.scales() for _ in range(3)]
    (without,) = Case(type, [first, scales[0], None, second, scales[1], None, scales[2]]).here()
    (with_zeros,) = Case(
        type, [first, scales[0], zero, second, scales[1], zero, scales[2], zero]
    ).there()
    np.testing.assert_array_equal(without, with_zeros)


IMAGE = tensor(1, 2, 4, 4, dtype=np.uint8)
REFUSED = {
    "several scales": (
        Case("QLinearSigmoid", [IMAGE[0], _DICE.scales(2), *IMAGE[2:], *kind(np.uint8)]),
        r"shape \[2\], expected one number",
    ),
    "half a tensor": (
        Case("QLinearConcat", [*kind(np.uint8), *IMAGE, IMAGE[0]], {"axis": 0}),
        "there are 4 inputs after the first two",
    ),
    "no lengths": (
        Case(
            "QLinearGlobalAveragePool", [_DICE.whole(np.uint8, 2, 3), *IMAGE[1:], *kind(np.uint8)]
        ),
        r"shape \[2, 3\], expected a batch, channels and lengths",
    ),
    "no places": (
        Case(
            "QLinearGlobalAveragePool",
            [_DICE.whole(np.uint8, 2, 3, 0), *IMAGE[1:], *kind(np.uint8)],
        ),
        "expected at least one position for a mean",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        case.here()
