"""Attention of the domain com.microsoft in f16, beside ONNX Runtime: the cases that f32 is held
to.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.test_microsoft_attention import ATTENTION, HEADS, TURNED
from tests.engine.ops.test_microsoft_grouped import CASES

UNIT = float(np.finfo(np.float16).eps)
SCORES = {"scores", "past", "no past yet"}
"""Those of MultiHeadAttention that give their scores: of their type ONNX Runtime's inference
knows nothing.
"""
SMALL = {
    **{
        f"GroupQueryAttention, {name}": case
        for name, case in CASES.items()
        if "cache of" not in name
    },
    **{f"Attention, {name}": case for name, case in ATTENTION.items()},
    **{f"MultiHeadAttention, {name}": case for name, case in HEADS.items() if name not in SCORES},
    **{f"RotaryEmbedding, {name}": case for name, case in TURNED.items()},
}
"""The scales of quantized caches are f32 always."""


@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL.keys())
def test_f16_as_the_runtime(case: Case) -> None:
    """Both compute in f32 and round the result to f16, which may fall to either side; what is
    turned, ONNX Runtime rounds in between too.

    One unit in the last place of the largest number covers both.
    """
    small = replace(
        case,
        inputs=[
            one.astype(np.float16) if one is not None and one.dtype == np.float32 else one
            for one in case.inputs
        ],
    )
    here, there = small.here(), small.there()
    assert len(here) == len(there)
    for mine, theirs in zip(here, there, strict=True):
        assert mine.dtype == theirs.dtype == np.float16
        largest = float(np.abs(theirs).max(initial=0))
        np.testing.assert_allclose(
            mine.astype(np.float32), theirs.astype(np.float32), rtol=0, atol=UNIT * largest
        )
