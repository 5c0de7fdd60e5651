"""Normalizations of the domain com.microsoft as ONNX Runtime computes them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_DICE = np.random.default_rng(12)


def reals(*shape: int) -> np.ndarray:
    return _DICE.normal(size=shape).astype(np.float32)


WHOLE, ROWS, ROW = reals(2, 3, 8), reals(6, 8), reals(8)
WORDS, SEGMENTS = (
    np.array([[1, 2, 0], [3, 1, 1]], np.int32),
    np.array([[0, 1, 1], [0, 0, 1]], np.int32),
)
MASK = np.array([[1, 1, 0], [1, 2, 1]], np.int32)
TABLES = [reals(5, 8), reals(6, 8), reals(2, 8)]
ALL, SUM = (True, True, True, True), (True, False, False, True)
CASES = {
    "sum": Case("SkipLayerNormalization", [WHOLE, reals(2, 3, 8), ROW]),
    "sum, all": Case(
        "SkipLayerNormalization", [WHOLE, reals(2, 3, 8), ROW, ROW, ROW], {"epsilon": 0.1}, ALL
    ),
    "a skip for all of the batch": Case(
        "SkipLayerNormalization", [WHOLE, reals(3, 8), ROW, None, ROW], {}, SUM
    ),
    "a skip with a batch of one": Case(
        "SkipLayerNormalization", [WHOLE, reals(1, 3, 8), ROW, ROW], {}, SUM
    ),
    "rows": Case("SkipLayerNormalization", [ROWS, reals(6, 8), ROW, ROW], {}, ALL),
    "root mean square": Case(
        "SkipSimplifiedLayerNormalization", [WHOLE, reals(2, 3, 8), ROW], {"epsilon": 1e-5}
    ),
    "root mean square, all": Case(
        "SkipSimplifiedLayerNormalization",
        [WHOLE, reals(2, 3, 8), ROW, ROW],
        {"epsilon": 1e-5},
        SUM,
    ),
    "root mean square of rows": Case(
        "SkipSimplifiedLayerNormalization", [ROWS, reals(6, 8), ROW], {}, (True, False, True, True)
    ),
    "alone": Case(
        "SimplifiedLayerNormalization", [WHOLE, ROW], {"epsilon": 1e-6}, (True, True), domain=""
    ),
    "alone, two axes": Case(
        "SimplifiedLayerNormalization", [WHOLE, reals(3, 8)], {"axis": 1}, (True, True), domain=""
    ),
    "with the mean, before ONNX had it": Case(
        "LayerNormalization",
        [WHOLE, reals(3, 8), reals(3, 8)],
        {"axis": 1},
        (True, True, True),
        domain="",
        opset=14,
    ),
    "words and positions": Case(
        "EmbedLayerNormalization", [WORDS, None, *TABLES[:2], None, ROW, ROW], {}, (True, True)
    ),
    "words, positions, segments": Case(
        "EmbedLayerNormalization",
        [WORDS, SEGMENTS, *TABLES, ROW, ROW, MASK],
        {"epsilon": 0.01},
        (True, True),
    ),
    "positions given": Case(
        "EmbedLayerNormalization",
        [WORDS, SEGMENTS, *TABLES, ROW, ROW, MASK, np.array([[5, 0, 3]], np.int32)],
        {"mask_index_type": 1},
        (True, True, True),
    ),
    "positions of each": Case(
        "EmbedLayerNormalization",
        [WORDS, None, *TABLES[:2], None, ROW, ROW, None, MASK + 1],
        {},
        (True, False, True),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


@pytest.mark.parametrize("type", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_small_floats_are_computed_in_f32(type: str, dtype: type[np.generic]) -> None:
    """And rounded once: half a unit in the last place from what f32 gives of the same numbers."""
    small = [one.astype(dtype) for one in (WHOLE, WHOLE[::-1], ROW)]
    (mine, total) = Case(type, small, {}, SUM).here()
    (wide, exact) = Case(type, [one.astype(np.float32) for one in small], {}, SUM).there()
    assert mine.dtype == total.dtype == dtype
    half = float(ml_dtypes.finfo(dtype).eps) / 2 + 2e-6
    np.testing.assert_allclose(mine.astype(np.float32), wide, rtol=half, atol=1e-6)
    np.testing.assert_allclose(total.astype(np.float32), exact, rtol=half, atol=1e-6)


def test_f16_as_the_runtime() -> None:
    """It rounds in other places than the end; a few units of the last place of numbers around 1."""
    Case(
        "SkipLayerNormalization",
        [one.astype(np.float16) for one in (WHOLE, WHOLE[::-1], ROW)],
        rtol=2e-3,
        atol=2e-3,
    ).agree()


REFUSED = {
    "a skip that does not repeat": (
        Case("SkipLayerNormalization", [WHOLE, reals(2, 1, 8), ROW]),
        r"the skip has shape \[2, 1, 8\]",
    ),
    "a gamma of another length": (
        Case("SkipLayerNormalization", [WHOLE, WHOLE, reals(7)]),
        r"has shape \[7\], expected \[8\]",
    ),
    "a word beyond the table": (
        Case("EmbedLayerNormalization", [WORDS + 3, None, *TABLES[:2], None, ROW, ROW]),
        "expected 0 to 4",
    ),
    "a gamma of another length than the tables": (
        Case("EmbedLayerNormalization", [WORDS, None, *TABLES[:2], None, reals(7), reals(7)]),
        r"have shapes \[\[5, 8\], \[6, 8\], \[7\], \[7\]\]",
    ),
    "segments without a table": (
        Case("EmbedLayerNormalization", [WORDS, SEGMENTS, *TABLES[:2], None, ROW, ROW]),
        "segments with their table or neither",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        case.here()
