"""ScatterElements, ScatterND, Col2Im, RoiAlign and Attention: what the onnx package's own
kernels give, and what ONNX Runtime gives.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import load_from_string
from onnx.reference import ReferenceEvaluator

from loopscope.errors import EngineError
from tests.engine.ops.test_onnx_own import Case, feeds, one_node, ran

_DICE = np.random.default_rng(23)


def reals(*shape: int, kind: Any = np.float32) -> np.ndarray:
    return _DICE.normal(size=shape).astype(kind)


def numbers(most: int, *shape: int) -> np.ndarray:
    """Places from both ends."""
    return _DICE.integers(-most, most, shape)


def packages(case: Case) -> list[Any]:
    """By the onnx package, one element after the other."""
    type, opset, inputs, attributes, outputs = case
    evaluator = ReferenceEvaluator(
        load_from_string(one_node(type, opset, inputs, attributes, outputs))
    )
    with np.errstate(all="ignore"):
        found: Any = evaluator.run(None, feeds(inputs))
    return list(found)


def runtimes(case: Case) -> list[Any]:
    type, opset, inputs, attributes, outputs = case
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        one_node(type, opset, inputs, attributes, outputs),
        options,
        providers=["CPUExecutionProvider"],
    )
    found: list[Any] = session.run(None, feeds(inputs))
    return found


def scatters() -> dict[str, Case]:
    """Many updates of the same places, in all reductions and several types."""
    cases: dict[str, Case] = {}
    for reduction, kind in product(
        ("none", "add", "mul", "min", "max"),
        (np.float32, np.float16, np.int8, np.uint64, ml_dtypes.bfloat16),
    ):
        data, name = (reals(4, 5, 3) * 9).astype(kind), np.dtype(kind).name
        written: list[np.ndarray | None] = [
            data,
            numbers(5, 2, 9, 3),
            (reals(2, 9, 3) * 2).astype(kind),
        ]
        cases[f"elements, {reduction}, {name}"] = (
            "ScatterElements",
            18,
            written,
            {"axis": 1, "reduction": reduction},
            1,
        )
        slices: list[np.ndarray | None] = [data, numbers(4, 6, 2), (reals(6, 3) * 2).astype(kind)]
        cases[f"slices, {reduction}, {name}"] = (
            "ScatterND",
            18,
            slices,
            {"reduction": reduction},
            1,
        )
    cases["elements along the last axis"] = (
        "ScatterElements",
        18,
        [reals(3, 7), numbers(7, 2, 4), reals(2, 4)],
        {"axis": -1},
        1,
    )
    cases["elements of a line"] = (
        "ScatterElements",
        18,
        [reals(7), numbers(7, 20), reals(20)],
        {"reduction": "add"},
        1,
    )
    cases["elements of booleans"] = (
        "ScatterElements",
        18,
        [reals(3, 4) > 0, numbers(3, 2, 4), reals(2, 4) > 0],
        {},
        1,
    )
    cases["no elements"] = (
        "ScatterElements",
        18,
        [reals(3, 4), numbers(3, 0, 4), reals(0, 4)],
        {},
        1,
    )
    cases["elements as they were called"] = (
        "Scatter",
        9,
        [reals(3, 7), numbers(7, 3, 4), reals(3, 4)],
        {"axis": 1},
        1,
    )
    cases["single elements"] = (
        "ScatterND",
        18,
        [reals(3, 4), numbers(3, 2, 5, 2), reals(2, 5)],
        {"reduction": "add"},
        1,
    )
    cases["no slices"] = ("ScatterND", 18, [reals(3, 4), numbers(3, 0, 1), reals(0, 4)], {}, 1)
    return cases


def columns() -> dict[str, Case]:
    """Strides, gaps, padding on both sides; lines, images and volumes."""
    settings: dict[str, tuple[list[int], list[int], dict[str, Any]]] = {
        "same size": ([5, 6], [3, 3], {"pads": [1, 1, 1, 1]}),
        "same size, other sides": ([5, 6], [2, 3], {"pads": [0, 2, 3, 0]}),
        "same width": ([6, 4], [3, 2], {"pads": [0, 1, 0, 0]}),
        "wider than the image": ([3, 2], [1, 7], {"pads": [0, 3, 0, 3]}),
        "same size, gaps": ([5, 6], [3, 3], {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
        "no padding": ([5, 6], [2, 3], {}),
        "in steps": ([7, 9], [3, 2], {"strides": [2, 3], "pads": [1, 0, 2, 1]}),
        "steps and gaps": (
            [8, 9],
            [2, 3],
            {"strides": [3, 1], "dilations": [2, 3], "pads": [2, 1, 0, 4]},
        ),
        "a line": ([9], [3], {"strides": [2], "pads": [1, 1]}),
        "a volume": ([3, 4, 5], [2, 2, 3], {"pads": [0, 1, 1, 1, 0, 1]}),
        "blocks side by side": ([4, 6], [2, 3], {"strides": [2, 3]}),
    }
    cases: dict[str, Case] = {}
    for name, (image, block, attributes) in settings.items():
        axes, pads = len(image), attributes.get("pads", [0] * 2 * len(image))
        steps, gaps = (attributes.get(name, [1] * axes) for name in ("strides", "dilations"))
        free = [
            image[one] + pads[one] + pads[one + axes] - gaps[one] * (block[one] - 1) - 1
            for one in range(axes)
        ]
        counts = [one // step + 1 for one, step in zip(free, steps, strict=True)]
        data = reals(2, 3 * math.prod(block), math.prod(counts))
        cases[name] = ("Col2Im", 18, [data, np.array(image), np.array(block)], attributes, 1)
    return cases


MOVED = {**scatters(), **columns()}


@pytest.mark.parametrize("name", MOVED)
def test_the_same_bits_as_the_onnx_package(name: str) -> None:
    case = MOVED[name]
    (expected,), (found,) = (
        packages(("ScatterElements", 18, *case[2:]) if case[0] == "Scatter" else case),
        ran(case),
    )
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


_IMAGES = reals(2, 3, 9, 7)
_REGIONS = np.array(
    [
        [0, 0, 6, 6],
        [-3, -2, 3, 20],
        [2, 3, 2, 3],
        [5, 6, 1, 2],
        [100, 100, 120, 130],
        [0.3, 1.7, 13, 17.2],
    ],
    np.float32,
)
_BATCHES = np.array([0, 1, 1, 0, 0, 1])
REGIONS: dict[str, dict[str, Any]] = {
    "means": {"output_height": 3, "output_width": 2, "sampling_ratio": 2},
    "means, as many samples as pixels": {
        "output_height": 2,
        "output_width": 2,
        "spatial_scale": 0.5,
    },
    "means, from corners": {
        "output_height": 3,
        "output_width": 2,
        "coordinate_transformation_mode": "output_half_pixel",
    },
    "means, one sample": {"sampling_ratio": 1},
    "greatest": {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "mode": "max"},
    "greatest, as many samples as pixels": {
        "output_height": 2,
        "output_width": 3,
        "mode": "max",
        "spatial_scale": 0.7,
    },
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", REGIONS)
def test_regions(name: str, kind: Any) -> None:
    """The sums of f32 are taken in another order than in ONNX Runtime: a few units in the last
    place of numbers about 1.
    """
    case: Case = (
        "RoiAlign",
        16,
        [_IMAGES.astype(kind), _REGIONS.astype(kind), _BATCHES],
        REGIONS[name],
        1,
    )
    (expected,), (found,) = runtimes(case), ran(case)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


def test_no_regions() -> None:
    (found,) = ran(
        (
            "RoiAlign",
            16,
            [_IMAGES, np.zeros((0, 4), np.float32), np.zeros(0, np.int64)],
            REGIONS["means"],
            1,
        )
    )
    assert found.shape == (0, 3, 3, 2)


def _heads(*lengths: int, kind: Any = np.float32) -> list[np.ndarray | None]:
    """Queries, keys and values of rank 4: heads, heads of the keys, queries, keys."""
    heads, of_keys, queries, keys = lengths
    return [
        reals(2, heads, queries, 8, kind=kind),
        reals(2, of_keys, keys, 8, kind=kind),
        reals(2, of_keys, keys, 6, kind=kind),
    ]


_SIDE_BY_SIDE = {"q_num_heads": 4, "kv_num_heads": 2}
_PAST: list[np.ndarray | None] = [reals(2, 2, 3, 8), reals(2, 2, 3, 6)]
ATTENTION: dict[str, Case] = {
    "plain": ("Attention", 23, _heads(3, 3, 4, 5), {}, 1),
    "one query": ("Attention", 23, _heads(4, 2, 1, 5), {}, 1),
    "grouped heads": ("Attention", 23, _heads(6, 2, 4, 5), {"scale": 0.3}, 1),
    "side by side": (
        "Attention",
        23,
        [reals(2, 4, 32), reals(2, 5, 16), reals(2, 5, 12)],
        _SIDE_BY_SIDE,
        1,
    ),
    "causal": ("Attention", 23, _heads(3, 3, 5, 5), {"is_causal": 1}, 1),
    "causal after a past": (
        "Attention",
        23,
        [*_heads(4, 2, 4, 4), None, *_PAST],
        {"is_causal": 1},
        3,
    ),
    "a past": ("Attention", 23, [*_heads(4, 2, 4, 4), None, *_PAST], {}, 3),
    "a past, side by side": (
        "Attention",
        23,
        [reals(2, 4, 32), reals(2, 5, 16), reals(2, 5, 12), None, *_PAST],
        _SIDE_BY_SIDE,
        3,
    ),
    "capped": ("Attention", 23, _heads(3, 3, 4, 5), {"softcap": 1.5}, 1),
    "a mask to add": ("Attention", 23, [*_heads(3, 3, 4, 5), reals(4, 5)], {}, 1),
    "a mask for each head": ("Attention", 23, [*_heads(3, 3, 4, 5), reals(2, 3, 4, 5)], {}, 1),
    "a mask for all batches": (
        "Attention",
        23,
        [*_heads(4, 2, 4, 5), reals(1, 4, 4, 5)],
        {"is_causal": 1},
        1,
    ),
    "a mask of booleans": (
        "Attention",
        23,
        [*_heads(3, 3, 4, 5), np.array([[1, 0, 0, 1, 1]] * 3 + [[0] * 5], bool)],
        {},
        1,
    ),
    "scores": ("Attention", 23, _heads(3, 3, 4, 5), {"qk_matmul_output_mode": 0}, 4),
    "scores with the mask": (
        "Attention",
        23,
        [*_heads(3, 3, 4, 5), reals(4, 5)],
        {"qk_matmul_output_mode": 2, "softcap": 2.0},
        4,
    ),
    "weights": (
        "Attention",
        23,
        _heads(4, 2, 4, 5),
        {"qk_matmul_output_mode": 3, "is_causal": 1},
        4,
    ),
    "doubles": ("Attention", 23, _heads(3, 3, 4, 5, kind=np.float64), {}, 1),
    "filled to": (
        "Attention",
        24,
        [*_heads(3, 3, 4, 6), None, None, None, np.array([4, 6])],
        {},
        1,
    ),
    "filled to, causal": (
        "Attention",
        24,
        [*_heads(3, 3, 4, 6), None, None, None, np.array([4, 6])],
        {"is_causal": 1},
        1,
    ),
    "a short mask": (
        "Attention",
        24,
        [*_heads(3, 3, 4, 6), reals(4, 5), None, None, np.array([4, 5])],
        {},
        1,
    ),
    "a window": (
        "Attention",
        25,
        _heads(3, 3, 6, 6),
        {"left_window_size": 2, "right_window_size": 1},
        1,
    ),
    "a window after a past": (
        "Attention",
        25,
        [*_heads(4, 2, 4, 4), None, *_PAST],
        {"left_window_size": 2, "right_window_size": 0},
        3,
    ),
    "many heads": (
        "Attention",
        23,
        [reals(1, 6, 260, 4), reals(1, 3, 300, 4), reals(1, 3, 300, 4)],
        {"is_causal": 1},
        4,
    ),
    "no queries": ("Attention", 23, _heads(3, 3, 0, 5), {}, 1),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    """Their queries and keys are each scaled by a root, ours at once: a few units in the last
    place of scores of about 10.
    """
    case = ATTENTION[name]
    expected, found = packages(case), ran(case)
    for one, other in zip(expected, found, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_attention_of_small_floats_is_rounded_once(kind: Any) -> None:
    small = [one.astype(kind) for one in _heads(4, 2, 5, 5) if one is not None]
    (found,) = ran(("Attention", 23, list(small), {"is_causal": 1}, 1))
    (wide,) = ran(("Attention", 23, [one.astype(np.float32) for one in small], {"is_causal": 1}, 1))
    np.testing.assert_array_equal(found, wide.astype(kind))


OF_THE_RUNTIME = [
    "plain",
    "grouped heads",
    "side by side",
    "causal",
    "capped",
    "a mask to add",
    "a mask of booleans",
    "a past",
    "weights",
    "filled to",
]


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("name", OF_THE_RUNTIME)
def test_attention_as_onnx_runtime_has_it(name: str, kind: type) -> None:
    """In f16 the runtime rounds the weights before they are multiplied, ours only the result: 2
    units of its last place.
    """
    operation, opset, arrays, attributes, outputs = ATTENTION[name]
    small = [
        one.astype(kind) if one is not None and one.dtype == np.float32 else one for one in arrays
    ]
    case: Case = (operation, opset, small, attributes, outputs)
    apart = 2e-5 if kind is np.float32 else 2 * float(np.finfo(kind).eps)
    for one, other in zip(runtimes(case), ran(case), strict=True):
        assert (other.dtype, other.shape) == (one.dtype, one.shape)
        np.testing.assert_allclose(
            other, one, rtol=apart, atol=apart if kind is np.float16 else 2e-6
        )


def test_a_score_that_no_query_sees_is_minus_infinity() -> None:
    """By the definition, which adds that; the runtime adds the lowest number of the type."""
    case: Case = (
        "Attention",
        23,
        _heads(3, 3, 5, 5),
        {"is_causal": 1, "qk_matmul_output_mode": 2},
        4,
    )
    mine, theirs = ran(case)[3], runtimes(case)[3]
    hidden = np.triu(np.ones((5, 5), np.bool_), 1)
    assert (mine[..., hidden] == -np.inf).all()
    assert (theirs[..., hidden] < -1e38).all()
    np.testing.assert_allclose(mine[..., ~hidden], theirs[..., ~hidden], rtol=2e-5, atol=2e-6)


REFUSED: dict[str, tuple[Case, str]] = {
    "a longer update": (
        ("ScatterElements", 18, [reals(3, 4), numbers(3, 2, 5), reals(2, 5)], {"axis": 0}, 1),
        "longer than data",
    ),
    "an index outside": (
        ("ScatterElements", 18, [reals(3), np.array([3]), reals(1)], {}, 1),
        "index 3 is out of range",
    ),
    "a mask of another length": (
        ("Attention", 23, [*_heads(3, 3, 4, 5), reals(3, 5)], {}, 1),
        r"the mask has shape \[3, 5\]",
    ),
    "a precision that is none": (
        ("Attention", 23, _heads(3, 3, 4, 5), {"softmax_precision": 7}, 1),
        "softmax_precision is 7",
    ),
    "a filling for another batch": (
        ("Attention", 24, [*_heads(3, 3, 4, 6), None, None, None, np.array([4, 6, 1])], {}, 1),
        r"nonpad_kv_seqlen: expected shape \[2\] and no past",
    ),
    "a region without corners": (
        (
            "RoiAlign",
            16,
            [_IMAGES, np.full((1, 4), np.nan, np.float32), np.zeros(1, np.int64)],
            {},
            1,
        ),
        "are not finite",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    case, message = REFUSED[name]
    with pytest.raises(EngineError, match=message):
        ran(case)
