"""Attention of the domain com.microsoft as ONNX Runtime computes it: every mask, cache and
packing of its documentation.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_DICE = np.random.default_rng(14)


def reals(*shape: int) -> np.ndarray:
    return _DICE.normal(size=shape).astype(np.float32)


def whole(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def bits(*shape: int) -> np.ndarray:
    """A mask in which each query sees at least its first key."""
    made = _DICE.integers(0, 2, shape).astype(np.int32)
    made[..., 0] = 1
    return made


DATA, WEIGHTS, BIAS = reals(2, 3, 8), reals(8, 24), reals(24)
PAST = reals(2, 2, 2, 4, 4)
BOTH = (True, True)


def attention(
    *more: np.ndarray | None, outputs: tuple[bool, ...] = (True,), **attributes: Any
) -> Case:
    # Rounding differs where scores lie near -10000: one unit in the last place of those is 0.001.
    return Case(
        "Attention",
        [DATA, WEIGHTS, BIAS, *more],
        {"num_heads": 2, **attributes},
        outputs,
        atol=1e-5,
    )


ATTENTION = {
    "all see all": attention(),
    "keys and values given back": attention(outputs=BOTH),
    "lengths": attention(whole(2, 3)),
    "ends and beginnings": attention(whole(2, 3, 0, 1)),
    "lengths and more": attention(whole(1, 2, 3, 4, 5, 6, 7, 8)),
    "keys": attention(np.array([[1, 1, 0], [1, 0, 1]], np.int32)),
    "keys, filtered less": attention(
        np.array([[1, 1, 0], [0, 1, 1]], np.int32), mask_filter_value=-3.0
    ),
    "keys of each query": attention(bits(2, 3, 3)),
    "past": attention(None, PAST, outputs=BOTH),
    "past and keys": attention(bits(2, 7), PAST, outputs=BOTH),
    "past and keys of each query": attention(bits(2, 3, 7), PAST, outputs=BOTH),
    "past and lengths": attention(whole(5, 6), PAST, outputs=BOTH),
    "no past yet": attention(None, PAST[:, :, :, :0], outputs=BOTH),
    "bias for all": attention(None, None, reals(1, 1, 3, 3)),
    "bias for each, and keys": attention(
        bits(2, 3), None, reals(2, 2, 3, 3), mask_filter_value=-10.0
    ),
    "scale": attention(scale=0.3),
    "narrow values": Case(
        "Attention",
        [DATA, reals(8, 20), reals(20)],
        {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]},
    ),
    "wide values": Case(
        "Attention",
        [DATA, reals(8, 20), reals(20)],
        {"num_heads": 2, "qkv_hidden_sizes": [4, 4, 12]},
    ),
}


@pytest.mark.parametrize("unidirectional", [0, 1], ids=["both ways", "backwards"])
@pytest.mark.parametrize("case", ATTENTION.values(), ids=ATTENTION.keys())
def test_attention_as_the_runtime(case: Case, unidirectional: int) -> None:
    replace(case, attributes={**case.attributes, "unidirectional": unidirectional}).agree()


@pytest.mark.parametrize("mask", [whole(0, 3), whole(2, 3, 1, 0), np.zeros((2, 3), np.int32)])
def test_queries_that_see_nothing(mask: np.ndarray) -> None:
    """All their scores are near -10000, where f32 has steps of 0.001: weights agree within that."""
    replace(attention(mask, unidirectional=1), rtol=4e-3, atol=4e-3).agree()


def test_without_a_bias() -> None:
    """ONNX Runtime's CPU ends the process."""
    (mine,) = Case("Attention", [DATA, WEIGHTS], {"num_heads": 2}).here()
    (zero,) = Case("Attention", [DATA, WEIGHTS, np.zeros(24, np.float32)], {"num_heads": 2}).there()
    np.testing.assert_allclose(mine, zero, rtol=2e-5, atol=2e-6)


QUERY, KEY, VALUE = reals(2, 3, 8), reals(2, 5, 8), reals(2, 5, 8)
SAME = reals(2, 3, 8), reals(2, 3, 8)
CACHES = reals(2, 2, 4, 4), reals(2, 2, 4, 4)
ALL = (True, True, True, True)


def heads(
    *inputs: np.ndarray | None, outputs: tuple[bool, ...] = (True,), **attributes: Any
) -> Case:
    return Case(
        "MultiHeadAttention",
        list(inputs),
        {"num_heads": 2, **attributes},
        outputs,
        f32_outputs=(3,),
        atol=1e-5,
    )


HEADS = {
    "of another": heads(QUERY, KEY, VALUE),
    "with a bias": heads(QUERY, KEY, VALUE, BIAS),
    "wide values": heads(QUERY, KEY, reals(2, 5, 12), reals(28)),
    "backwards": heads(QUERY, *SAME, unidirectional=1),
    "backwards over more keys": heads(QUERY, KEY, VALUE, unidirectional=1),
    "backwards over fewer keys": heads(KEY, *SAME, unidirectional=1),
    "one query backwards": heads(QUERY[:, :1], KEY, VALUE, unidirectional=1),
    "lengths": heads(QUERY, KEY, VALUE, None, whole(3, 5)),
    "lengths and more": heads(QUERY, KEY, VALUE, None, whole(3, 5, 0, 3, 6, 0, 5, 10)),
    "keys": heads(QUERY, KEY, VALUE, None, bits(2, 5), scale=0.2),
    "keys of each query, and a bias": heads(
        QUERY, KEY, VALUE, None, bits(2, 3, 5), reals(1, 2, 3, 5)
    ),
    "scores": heads(
        QUERY, KEY, VALUE, None, None, reals(2, 1, 3, 5), outputs=(True, False, False, True)
    ),
    "past": heads(QUERY, *SAME, BIAS, None, None, *CACHES, outputs=ALL),
    "past, keys and a bias": heads(
        QUERY,
        *SAME,
        BIAS,
        bits(2, 7),
        reals(2, 1, 3, 7),
        *CACHES,
        outputs=ALL[:3],
        unidirectional=1,
    ),
    "no past yet": heads(QUERY, *SAME, BIAS, outputs=ALL),
    "one more in a buffer": heads(
        QUERY[:, :1],
        KEY[:, :1],
        VALUE[:, :1],
        None,
        None,
        None,
        reals(2, 2, 9, 4),
        reals(2, 2, 9, 4),
        whole(4),
        outputs=ALL[:3],
    ),
    "three more in a buffer": heads(
        QUERY,
        *SAME,
        None,
        None,
        None,
        reals(2, 2, 9, 4),
        reals(2, 2, 9, 4),
        whole(6),
        outputs=ALL[:3],
        unidirectional=1,
    ),
    "heads": heads(QUERY, reals(2, 2, 5, 4), reals(2, 2, 5, 4)),
    "heads and a bias": heads(QUERY, reals(2, 2, 5, 4), reals(2, 2, 5, 4), BIAS),
    "heads and a mask": heads(
        QUERY, reals(2, 2, 5, 4), reals(2, 2, 5, 4), None, bits(2, 5), outputs=ALL[:3]
    ),
}


@pytest.mark.parametrize("case", HEADS.values(), ids=HEADS.keys())
def test_multi_head_attention_as_the_runtime(case: Case) -> None:
    case.agree()


def _apart(array: np.ndarray, place: int) -> np.ndarray:
    return np.ascontiguousarray(array[:, :, :, place]).reshape(*array.shape[:2], -1)


@pytest.mark.parametrize("bias", [None, BIAS], ids=["plain", "bias"])
def test_packed_is_what_is_given_apart(bias: np.ndarray | None) -> None:
    """ONNX Runtime's CPU takes nothing packed."""
    three, two = reals(2, 3, 2, 3, 4), reals(2, 5, 2, 2, 4)
    for packed, apart in (
        (heads(three, None, None, bias), heads(*(_apart(three, one) for one in range(3)), bias)),
        (heads(QUERY, two, None, bias), heads(QUERY, _apart(two, 0), _apart(two, 1), bias)),
    ):
        np.testing.assert_allclose(packed.here()[0], apart.there()[0], rtol=2e-5, atol=2e-6)


def test_a_past_that_is_not_given_back() -> None:
    """ONNX Runtime's CPU reads memory that nothing has written then; with the outputs it agrees."""
    inputs = (QUERY, *SAME, BIAS, None, None, *CACHES)
    np.testing.assert_array_equal(
        heads(*inputs).here()[0], heads(*inputs, outputs=ALL[:3]).here()[0]
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize(
    "case",
    [attention(bits(2, 3)), heads(QUERY, KEY, VALUE, BIAS)],
    ids=["Attention", "MultiHeadAttention"],
)
def test_small_floats_are_computed_in_f32(case: Case, dtype: type[np.generic]) -> None:
    """And rounded once, which is at most half a unit in the last place."""
    small = [
        one.astype(dtype) if one is not None and one.dtype == np.float32 else one
        for one in case.inputs
    ]
    wide = [
        one.astype(np.float32) if one is not None and one.dtype == dtype else one for one in small
    ]
    (mine,) = replace(case, inputs=small).here()
    (exact,) = replace(case, inputs=wide).there()
    assert mine.dtype == dtype
    np.testing.assert_allclose(
        mine.astype(np.float32), exact, rtol=float(ml_dtypes.finfo(dtype).eps) / 2 + 2e-6, atol=2e-6
    )


TABLES = reals(9, 2), reals(9, 2)
PLACES = np.array([[0, 1, 2], [3, 1, 0]])
WIDE = {"num_heads": 2, "rotary_embedding_dim": 4}
TURNED = {
    "halves": Case("RotaryEmbedding", [DATA, PLACES, *TABLES]),
    "neighbours": Case("RotaryEmbedding", [DATA, PLACES, *TABLES], {"interleaved": 1}),
    "from a position on": Case("RotaryEmbedding", [DATA, np.array([4]), *TABLES]),
    "from a scalar on": Case("RotaryEmbedding", [DATA, np.array(6), *TABLES]),
    "heads": Case("RotaryEmbedding", [reals(2, 2, 3, 4), PLACES, *TABLES]),
    "neighbours of heads": Case(
        "RotaryEmbedding", [reals(2, 2, 3, 4), PLACES, *TABLES], {"interleaved": 1}
    ),
    "a part of heads": Case("RotaryEmbedding", [reals(2, 2, 3, 6), PLACES, *TABLES], WIDE),
    "a part": Case("RotaryEmbedding", [reals(2, 3, 12), PLACES, *TABLES], WIDE),
    "a part, neighbours": Case(
        "RotaryEmbedding", [reals(2, 3, 12), PLACES, *TABLES], {**WIDE, "interleaved": 1}
    ),
    "packed batch": Case("RotaryEmbedding", [DATA, PLACES, *TABLES], {"is_packed_batching": 1}),
    "a scale that has no effect": Case("RotaryEmbedding", [DATA, PLACES, *TABLES], {"scale": 2.0}),
    "f16": Case(
        "RotaryEmbedding",
        [DATA.astype(np.float16), PLACES, *(one.astype(np.float16) for one in TABLES)],
        rtol=1e-3,
        atol=1e-3,
    ),
}


@pytest.mark.parametrize("case", TURNED.values(), ids=TURNED.keys())
def test_rotary_embedding_as_the_runtime(case: Case) -> None:
    case.agree()


REFUSED = {
    "a mask of another shape": (
        attention(bits(2, 4)),
        "the mask has shape [2, 4], expected [2], [4], [8], [2, 3] or [2, 3, 3]",
    ),
    "turned in attention": (
        attention(do_rotary=1),
        "do_rotary is 1, which ONNX Runtime's CPU does not compute either",
    ),
    "a shared buffer": (attention(past_present_share_buffer=1), "past_present_share_buffer is 1"),
    "a past of other heads": (
        attention(None, reals(2, 2, 1, 4, 4)),
        "the past has shape [2, 2, 1, 4, 4], expected [2, 2, 2, length, 4]",
    ),
    "widths that do not add up": (
        attention(qkv_hidden_sizes=[8, 8, 9]),
        "do not hold queries, keys and values of the widths [8, 8, 9]",
    ),
    "heads that do not divide": (
        attention(num_heads=3),
        "expected [batch, length, a multiple of the 3 heads]",
    ),
    "a bias of another shape": (
        attention(None, None, reals(1, 1, 3, 4)),
        "attention_bias has shape [1, 1, 3, 4]",
    ),
    "no keys, nothing packed": (
        heads(QUERY),
        "without keys the queries have shape [2, 3, 8], expected [B, S, 2, 3, width",
    ),
    "no values, nothing packed": (
        heads(QUERY, KEY),
        "without values the keys have shape [2, 5, 8]",
    ),
    "a buffer that is full": (
        heads(QUERY, *SAME, None, None, None, reals(2, 2, 9, 4), reals(2, 2, 9, 4), whole(7)),
        "past_sequence_length is 7, and a buffer of 9 has no room for 3 more",
    ),
    "beams": (
        heads(QUERY, KEY, VALUE, *[None] * 6, whole(0).reshape(1, 1, 1)),
        "cache_indirection is given",
    ),
    "a position beyond the tables": (
        Case("RotaryEmbedding", [DATA, PLACES + 6, *TABLES]),
        "positions of 6 to 9, and the tables hold 9",
    ),
    "a width without heads": (
        Case("RotaryEmbedding", [DATA, PLACES, *TABLES], {"rotary_embedding_dim": 4}),
        "num_heads is missing",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=re.escape(problem)):
        case.here()
