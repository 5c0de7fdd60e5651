"""What is inferred from partly known shapes holds for what is computed: convolutions, pools,
products, sequences, transforms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known, typed
from tests.engine.ops.oracle import ours

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


_WINDOW = {"strides": "2,1", "pads_begin": "1,0", "pads_end": "0,1", "dilations": "1,2"}
_POOL = {"kernel": "3,2", "strides": "2,2", "pads_begin": "1,0", "pads_end": "0,1"}
_LSTM = {"hidden_size": "4", "direction": "bidirectional"}
CASES: list[tuple[str, int, list[np.ndarray], dict[str, str]]] = [
    ("MatMul", 1, [numbers(2, 3, 4), numbers(5, 4)], {"transpose_b": "true"}),
    ("MatMul", 1, [numbers(4), numbers(2, 4, 5)], {"transpose_a": "true"}),
    ("Einsum", 7, [numbers(9, 1, 4, 3), numbers(3, 11, 7, 1)], {"equation": "a...b,b...->a..."}),
    ("Inverse", 14, [np.eye(3, dtype=np.float32)], {}),
    ("GroupedMatMul", 17, [numbers(10, 4), numbers(3, 4, 5), np.array([3, 8, 10])], {}),
    ("Convolution", 1, [numbers(2, 3, 9, 8), numbers(4, 3, 3, 2)], _WINDOW),
    (
        "Convolution",
        1,
        [numbers(2, 3, 9, 8), numbers(4, 3, 3, 2)],
        {**_WINDOW, "auto_pad": "same_lower"},
    ),
    (
        "GroupConvolution",
        1,
        [numbers(2, 6, 9, 8), numbers(3, 4, 2, 3, 2)],
        {**_WINDOW, "auto_pad": "valid"},
    ),
    (
        "ConvolutionBackpropData",
        1,
        [numbers(2, 3, 9, 8), numbers(3, 4, 3, 2)],
        {**_WINDOW, "output_padding": "1,0"},
    ),
    (
        "ConvolutionBackpropData",
        1,
        [numbers(2, 3, 9, 8), numbers(3, 4, 3, 2), np.array([17, 9])],
        _WINDOW,
    ),
    ("GroupConvolutionBackpropData", 1, [numbers(2, 6, 9, 8), numbers(3, 2, 4, 3, 2)], _WINDOW),
    (
        "DeformableConvolution",
        8,
        [numbers(1, 4, 6, 7), numbers(1, 12, 4, 6), numbers(8, 2, 3, 2)],
        {"group": "2"},
    ),
    ("MaxPool", 8, [numbers(2, 3, 9, 8)], {**_POOL, "rounding_type": "ceil", "dilations": "1,2"}),
    (
        "AvgPool",
        16,
        [numbers(2, 3, 9, 8)],
        {**_POOL, "rounding_type": "ceil_torch", "exclude-pad": "true"},
    ),
    (
        "AvgPool",
        1,
        [numbers(2, 3, 9, 8)],
        {**_POOL, "auto_pad": "same_upper", "rounding_type": "ceil", "exclude-pad": "true"},
    ),
    ("AdaptiveAvgPool", 8, [numbers(2, 3, 9, 8), np.array([4, 3])], {}),
    ("AdaptiveMaxPool", 8, [numbers(2, 3, 9, 8), np.array([4, 3])], {}),
    (
        "BatchNormInference",
        1,
        [numbers(3), numbers(3), numbers(2, 3, 4), numbers(3), np.abs(numbers(3))],
        {"epsilon": "0.1"},
    ),
    (
        "BatchNormInference",
        5,
        [numbers(2, 3, 4), numbers(3), numbers(3), numbers(3), np.abs(numbers(3))],
        {"epsilon": "0.1"},
    ),
    (
        "GroupNormalization",
        12,
        [numbers(2, 6, 4), numbers(6), numbers(6)],
        {"num_groups": "2", "epsilon": "0.1"},
    ),
    ("NormalizeL2", 1, [numbers(2, 6, 4), np.array([1])], {"eps": "0.1", "eps_mode": "add"}),
    (
        "FakeQuantize",
        1,
        [numbers(2, 3), *(np.full((3,), one, np.float32) for one in (-1, 1, -1, 1))],
        {"levels": "4"},
    ),
    ("FakeConvert", 13, [numbers(2, 3), numbers(3)], {"destination_type": "f8e5m2"}),
    (
        "LSTMSequence",
        5,
        [
            numbers(3, 5, 2),
            numbers(3, 2, 4),
            numbers(3, 2, 4),
            np.array([5, 4, 3]),
            numbers(2, 16, 2),
            numbers(2, 16, 4),
            numbers(2, 16),
        ],
        _LSTM,
    ),
    (
        "GRUCell",
        3,
        [numbers(3, 2), numbers(3, 4), numbers(12, 2), numbers(12, 4), numbers(12)],
        {"hidden_size": "4"},
    ),
    (
        "OneHot",
        1,
        [np.array([[1, 2]]), np.array(3), np.array(1, np.float32), np.array(0, np.float32)],
        {"axis": "-2"},
    ),
    (
        "ScaledDotProductAttention",
        13,
        [numbers(2, 4, 8), numbers(1, 5, 8), numbers(2, 5, 6), numbers(4, 5)],
        {"causal": "false"},
    ),
    ("CTCGreedyDecoder", 1, [numbers(7, 3, 4), np.ones((7, 3), np.float32)], {}),
    ("CTCGreedyDecoderSeqLen", 6, [numbers(3, 7, 4), np.array([7, 4, 0])], {}),
    (
        "CTCLoss",
        4,
        [numbers(2, 7, 4), np.array([7, 6]), np.zeros((2, 7), np.int64), np.array([1, 2])],
        {},
    ),
    ("DFT", 7, [numbers(3, 4, 2), np.array([0]), np.array([6])], {}),
    ("RDFT", 9, [numbers(3, 4), np.array([0, 1])], {}),
    ("IRDFT", 9, [numbers(3, 4, 2), np.array([0, -1])], {}),
    (
        "STFT",
        15,
        [numbers(2, 56), numbers(7), np.array(11), np.array(3)],
        {"transpose_frames": "false"},
    ),
    (
        "ISTFT",
        16,
        [numbers(6, 16, 2), numbers(7), np.array(11), np.array(3)],
        {"center": "true", "normalized": "true"},
    ),
]

Forget = Callable[[int, int], Dimension]
WAYS: dict[str, Callable[[tuple[int, ...]], PartialShape]] = {
    "rank alone": lambda shape: PartialShape.unknown(len(shape)),
    "nothing": lambda shape: DYNAMIC,
    "first unknown": lambda shape: PartialShape.of([None, *shape[1:]] if shape else []),
    "last unknown": lambda shape: PartialShape.of([*shape[:-1], None] if shape else []),
    "intervals": lambda shape: PartialShape.of(
        [Dimension(max(0, length - 1), length + 2) for length in shape]
    ),
    "at least": lambda shape: PartialShape.of([Dimension(length) for length in shape]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes"),
    CASES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_inferred_shapes_hold(
    name: str, version: int, inputs: list[np.ndarray], attributes: dict[str, str], way: str
) -> None:
    operation = next(one for one in CATALOGUE.versions(name) if one.version == version)
    assert operation.infer is not None
    results = ours(name, version, inputs, attributes, operation.outputs or 1)
    keywords = typed(operation, attributes)
    for values_known in (False, True):
        known = []
        for array in (np.asarray(one) for one in inputs):
            value = array if values_known and array.dtype.kind == "i" else None
            shape = PartialShape.of(array.shape) if value is not None else WAYS[way](array.shape)
            known.append(Known(ElementType.of(array), shape, value))
        for promised, result in zip(operation.infer(known, keywords), results, strict=True):
            assert promised.shape.contains(result.shape), (
                f"inferred {promised.shape}, computed {result.shape}"
            )
            assert promised.element_type is ElementType.of(result)


@pytest.mark.parametrize(
    ("name", "version", "shapes", "attributes"),
    [
        ("MatMul", 1, [(2, 3), (4, 5)], {}),
        ("MatMul", 1, [(), (4, 5)], {}),
        ("Einsum", 7, [(2, 3), (4, 5)], {"equation": "ij,jk->ik"}),
        ("Inverse", 14, [(2, 3)], {}),
        ("GroupedMatMul", 17, [(2, 3), (2,)], {}),
        ("Convolution", 1, [(1, 3, 8, 8), (2, 4, 3, 3)], {}),
        ("Convolution", 1, [(1, 3, 8, 8), (2, 3, 3)], {}),
        ("Convolution", 1, [(1, 3, 2, 2), (2, 3, 3, 3)], {}),
        ("MaxPool", 1, [(1, 3, 2, 2)], {"kernel": "3,3"}),
        ("MaxPool", 1, [(1, 3, 2)], {"kernel": "2,2"}),
        ("GRN", 1, [(2,)], {"bias": "1"}),
        ("GroupNormalization", 12, [(2, 6, 4), (5,), (6,)], {"num_groups": "2", "epsilon": "0.1"}),
        ("RNNCell", 1, [(3, 2), (4, 4), (4, 2), (4, 4), (4,)], {"hidden_size": "4"}),
        ("DFT", 7, [(3, 3), (1,)], {}),
    ],
)
def test_contradictions_are_found(
    name: str, version: int, shapes: list[tuple[int, ...]], attributes: dict[str, str]
) -> None:
    operation = next(one for one in CATALOGUE.versions(name) if one.version == version)
    assert operation.infer is not None
    known = [Known(ElementType.F32, PartialShape.of(shape)) for shape in shapes]
    with pytest.raises(ValueError):
        operation.infer(known, typed(operation, attributes))
