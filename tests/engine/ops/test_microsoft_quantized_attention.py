"""Attention over quantized data and weights as ONNX Runtime computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.quantized_nodes import Dice

_DICE = Dice(31)
BATCH, LENGTH, WIDTH, HEADS = 2, 4, 6, 2


def attention(
    data: Any,
    weights: Any,
    *,
    each: bool = False,
    zeros: bool = True,
    past: int | None = None,
    **more: Any,
) -> Case:
    """``past``: the length of a cache; ``more``: a mask and attributes."""
    mask = more.pop("mask", None)
    columns = (3 * WIDTH,) if each else ()
    weights_zero = (
        np.zeros(columns, weights) if weights is np.int8 or each else _DICE.whole(weights)
    )
    cache = [] if past is None else [_DICE.reals(2, BATCH, HEADS, past, WIDTH // HEADS)]
    return Case(
        "QAttention",
        [
            *(
                _DICE.whole(data, BATCH, LENGTH, WIDTH),
                _DICE.whole(weights, WIDTH, 3 * WIDTH),
                _DICE.reals(3 * WIDTH),
            ),
            *(_DICE.scales(most=0.02), _DICE.scales(*columns, most=0.02), mask),
            *((_DICE.whole(data), weights_zero) if zeros else (None, None)),
            *cache,
        ],
        {"num_heads": HEADS, **more},
        (True,) if past is None else (True, True),
    )


def ones(*shape: int) -> np.ndarray:
    return (_DICE.whole(np.uint8, *shape) % 3 > 0).astype(np.int32)


CASES = {
    **{
        f"{np.dtype(data).name} by {np.dtype(weights).name}{', each' * each}{', past' * bool(past)}": attention(
            data, weights, each=each, past=past
        )
        for data, weights in ((np.uint8, np.uint8), (np.uint8, np.int8))
        for each in (False, True)
        for past in (None, 3)
    },
    "no zero points": attention(np.uint8, np.int8, zeros=False),
    "in order": attention(np.uint8, np.int8, unidirectional=1),
    "in order after a past": attention(np.uint8, np.int8, unidirectional=1, past=3),
    "an empty past": attention(np.uint8, np.int8, past=0),
    "a mask": attention(np.uint8, np.int8, mask=ones(BATCH, LENGTH)),
    "a mask for each": attention(np.uint8, np.int8, mask=ones(BATCH, LENGTH, LENGTH)),
    "ends": attention(np.uint8, np.int8, mask=np.array([2, 4], np.int32)),
    "scaled": attention(np.uint8, np.int8, scale=0.3),
    "a milder mask": attention(np.uint8, np.int8, mask=ones(BATCH, LENGTH), mask_filter_value=-3.0),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


def test_what_does_not_fit_is_told() -> None:
    good = attention(np.uint8, np.int8)
    with pytest.raises(
        EngineError, match=r"data of shape \[2, 4, 6\] and weights of shape \[5, 18\]"
    ):
        Case(
            "QAttention",
            [good.inputs[0], _DICE.whole(np.int8, 5, 18), *good.inputs[2:]],
            good.attributes,
        ).here()
    with pytest.raises(EngineError, match="do_rotary"):
        Case("QAttention", good.inputs, {**good.attributes, "do_rotary": 1}).here()
