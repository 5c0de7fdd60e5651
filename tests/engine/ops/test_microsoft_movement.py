"""Operations of the domain com.microsoft that move, cut, measure and hash, as ONNX Runtime
computes them.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_DICE = np.random.default_rng(16)


def reals(*shape: int) -> np.ndarray:
    return _DICE.normal(size=shape).astype(np.float32)


def texts(*words: object) -> np.ndarray:
    return np.array(words, dtype=object)


def tokens(words: np.ndarray, **attributes: Any) -> Case:
    return Case("Tokenizer", [words], {"mark": 0, "pad_value": "#", "mincharnum": 1, **attributes})


IMAGES = np.arange(2 * 2 * 3 * 4, dtype=np.float32).reshape(2, 2, 3, 4) ** 1.5


def crops(
    regions: list[list[float]], numbers: list[int], size: list[int], **attributes: Any
) -> Case:
    inputs = [
        IMAGES,
        np.array(regions, np.float32),
        np.array(numbers, np.int32),
        np.array(size, np.int32),
    ]
    return Case("CropAndResize", inputs, attributes)


def scalars(dtype: type[np.generic], *numbers: float) -> list[np.ndarray]:
    return [np.array(one, dtype) for one in numbers]


LINE, MATRIX, BATCH = reals(7), reals(3, 4), reals(2, 3, 4)
SENTENCES = texts("Hello World", "I love  it !", "", "añ b")
CHARACTERS = np.array(
    [[1, 2, 3, 0, 0], [4, 0, 0, 0, 0], [5, 4, 3, 2, 1], [3, 3, 0, 2, 0], [1, 2, 0, 0, 0]], np.int32
)
CASES = {
    "pad": Case("Pad", [MATRIX, np.array([0, 1, 1, 0]), np.array([5], np.float32)]),
    "pad with 0": Case("Pad", [MATRIX, np.array([[2, 1, 1, 0]])]),
    "pad by reflection": Case("Pad", [MATRIX, np.array([[0, 1, 2, 3]])], {"mode": "reflect"}),
    "pad by the edge, and cut": Case("Pad", [MATRIX, np.array([0, -1, 1, 0])], {"mode": "edge"}),
    "pad round and round": Case("Pad", [MATRIX, np.array([0, 1, 1, 2])], {"mode": "wrap"}),
    **{
        f"a new axis at {axis}": Case("ExpandDims", [MATRIX, np.array(axis, np.int32)])
        for axis in (0, 1, 2, -1, -3)
    },
    "a new axis of texts": Case("ExpandDims", [SENTENCES, np.array([1], np.int32)]),
    "above": Case("Trilu", [BATCH]),
    "far above": Case("Trilu", [BATCH, np.array(2)]),
    "below": Case("Trilu", [BATCH, np.array([-1])], {"upper": 0}),
    "below far beyond": Case("Trilu", [np.arange(6).reshape(2, 3), np.array(99)], {"upper": 0}),
    "nothing above": Case("Trilu", [BATCH.astype(np.float64), np.array(-(2**40))], {"upper": 0}),
    "distinct": Case(
        "Unique", [np.array([2, 1, 1, 3, 4, 3, -0.0, 0], np.float32)], {}, (True, True, True)
    ),
    "distinct without a number": Case(
        "Unique", [np.array([np.nan, 1, np.nan, 1], np.float32)], {}, (True, True, True)
    ),
    "nothing distinct": Case("Unique", [reals(0)], {}, (True, True, True)),
    "a range": Case("Range", [np.array(1, np.int32), np.array([7], np.int32)]),
    "a range of i16": Case("Range", scalars(np.int16, 1, 8, 3)),
    "a range of i64, down": Case("Range", scalars(np.int64, 5, -6, -3)),
    "a range of f32": Case("Range", scalars(np.float32, 1, 5, 0.3), rtol=0),
    "a range of f64": Case("Range", scalars(np.float64, 1, -2, -0.1), rtol=0),
    "an empty range": Case("Range", scalars(np.float32, 1, -2, 0.3)),
    "crops": crops([[0, 0, 1, 1], [0.25, 0.1, 0.8, 0.9], [1, 1, 0, 0]], [1, 0, 0], [3, 5]),
    "crops beyond": crops([[-0.5, 0, 1.5, 1.2]], [0], [4, 3], extrapolation_value=-1.0),
    "nearest of crops": crops([[0.2, 0.3, 0.8, 0.9], [0, 0, 1, 1]], [0, 1], [2, 3], mode="nearest"),
    "the middle of crops": crops([[0.2, 0.3, 0.8, 0.9]], [1], [1, 1]),
    "no crops": Case(
        "CropAndResize", [IMAGES, reals(0, 4), np.zeros(0, np.int32), np.array([2, 2], np.int32)]
    ),
    "squares of distances": Case("CDist", [reals(5, 3), reals(4, 3)], atol=1e-5),
    "distances in f32": Case("CDist", [reals(5, 3), reals(4, 3)], {"metric": "euclidean"}),
    "distances": Case(
        "CDist",
        [reals(5, 3).astype(np.float64), reals(4, 3).astype(np.float64)],
        {"metric": "euclidean"},
    ),
    "inverses": Case("Inverse", [np.eye(3, dtype=np.float32) * 3 + reals(2, 3, 3) / 4]),
    "inverse of f64": Case("Inverse", [np.array([[4, 1], [2, 3]], np.float64)], rtol=1e-13),
    "inverse of f16": Case("Inverse", [np.array([[2, 1], [0, 4]], np.float16)]),
    "between spaces": tokens(SENTENCES, separators=[" "]),
    "marked": tokens(SENTENCES, separators=[" "], mark=1),
    "characters": tokens(SENTENCES, separators=[""]),
    "characters, marked": tokens(SENTENCES, tokenexp=".", mark=1),
    "rows of texts": tokens(np.array([["a b", "c"], ["d e f", ""]], object), separators=[" "]),
    "by a pattern": tokens(texts("aab12 cc", "3"), tokenexp="[a-z]+"),
    "by the longest match": tokens(texts("abcabd"), tokenexp="ab|abc"),
    "long ones": tokens(texts("a bb ccc ññ"), separators=[" "], mincharnum=2),
    "long matches": tokens(texts("a bb ccc"), tokenexp="[a-z]+", mincharnum=2),
    "one separator after the other": tokens(
        texts("aXYb,c;d", "XY"), separators=["X", "XY", "[,;]+"]
    ),
    "separators and a pattern": tokens(texts("a1 b2"), separators=[" "], tokenexp="[a-z]"),
    "matches of nothing": tokens(texts("abc"), tokenexp="x*"),
    "only separators": tokens(texts("  ", " "), separators=[" "], mark=1),
    "no texts": tokens(np.zeros((2, 0), object), separators=[" "]),
    "no texts at all": tokens(np.zeros(0, object), separators=[" "]),
    **{
        f"hashes of {np.dtype(dtype)}": Case(
            "MurmurHash3", [np.array([[1, 2, 3], [77, 2**31 - 1, 0]], dtype)], {"seed": 42}
        )
        for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64)
    },
    "hashes of texts": Case(
        "MurmurHash3", [texts("hello", "", "a", "añb", "abcd", "abcdefgh", "日本")], {"positive": 0}
    ),
    "hashes of texts, seeded": Case("MurmurHash3", [texts("hello", "", "xyz")], {"seed": -3}),
    "words by their characters": Case(
        "WordConvEmbedding", [CHARACTERS, reals(4, 1, 2, 3), reals(4), reals(6, 3)]
    ),
    "words by a wide window": Case(
        "WordConvEmbedding",
        [CHARACTERS, reals(4, 1, 4, 3), reals(4), reals(6, 3)],
        {"embedding_size": 4, "conv_window_size": 4, "char_embedding_size": 3},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


def test_a_word_without_characters() -> None:
    """ONNX Runtime leaves its numbers unwritten."""
    (made,) = Case(
        "WordConvEmbedding", [CHARACTERS * 0, reals(4, 1, 2, 3), reals(4), reals(6, 3)]
    ).here()
    np.testing.assert_array_equal(made, np.zeros((5, 4)))


REFUSED = {
    "a metric that nobody computes": (
        Case("CDist", [MATRIX, MATRIX], {"metric": "cosine"}),
        "metric is 'cosine'",
    ),
    "a matrix without an inverse": (
        Case("Inverse", [np.ones((2, 2), np.float32)]),
        "a matrix of 2 rows has no inverse",
    ),
    "no square": (Case("Inverse", [MATRIX]), "expected square matrices"),
    "an axis too far": (
        Case("ExpandDims", [MATRIX, np.array(4, np.int32)]),
        "axis 4 is out of range for rank 3",
    ),
    "a line": (Case("Trilu", [LINE]), "expected matrices"),
    "an endless range": (Case("Range", scalars(np.int32, 1, 5, 0)), "in steps of 0 has no end"),
    "a long range": (Case("Range", scalars(np.int64, 0, 2**60, 1)), "the range would have"),
    "much padding": (
        Case("Pad", [MATRIX, np.array([2**40, 0, 0, 2**40])]),
        "the output of Pad would have",
    ),
    "an image that is not there": (crops([[0, 0, 1, 1]], [2], [3, 5]), "images [2] of 2"),
    "crops without a size": (crops([[0, 0, 1, 1]], [0], [0, 5]), "a size of 0 by 5"),
    "neither separators nor a pattern": (
        tokens(SENTENCES),
        "expected 1 or more, with separators or a tokenexp",
    ),
    "characters of two": (
        tokens(SENTENCES, separators=[""], mincharnum=2),
        "expected 1 for single characters",
    ),
    "a pattern that is none": (
        tokens(SENTENCES, tokenexp="(a"),
        "the pattern '(a' is not valid in RE2",
    ),
    "a character without a row": (
        Case("WordConvEmbedding", [CHARACTERS + 3, reals(4, 1, 2, 3), reals(4), reals(6, 3)]),
        "words of 5 characters of 6 kinds",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=re.escape(problem)):
        case.here()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$b"])
def test_a_hostile_pattern_takes_no_longer_than_the_text_is_long(pattern: str) -> None:
    (made,) = tokens(texts("a" * 20_000), separators=[pattern]).here()
    assert made.shape == (1, 1)
