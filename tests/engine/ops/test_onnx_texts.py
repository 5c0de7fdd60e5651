"""Operations on texts keep accents, empty texts and their order, as ONNX Runtime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, ValueInfoProto, helper

import loopscope

WORDS = np.array(["ab c", "", "é1 2", "Straße ǆ"], object)


def _model(type: str, texts: np.ndarray, **attributes: Any) -> bytes:
    node = helper.make_node(type, ["x"], ["y"], **attributes)
    asked = helper.make_tensor_value_info("x", TensorProto.STRING, list(texts.shape))
    graph = helper.make_graph([node], "texts", [asked], [ValueInfoProto(name="y")])
    data: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    return data


def _ours(data: bytes, texts: np.ndarray) -> Any:
    return np.asarray(loopscope.run(loopscope.read_model(data), [texts]).outputs[0])


def _theirs(data: bytes, texts: np.ndarray) -> Any:
    return onnxruntime.InferenceSession(data).run(None, {"x": texts})[0]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, WORDS.tolist()),
        ({"case_change_action": "LOWER", "is_case_sensitive": 1}, ["ab c", "", "é1 2", "straße ǆ"]),
        ({"case_change_action": "UPPER", "is_case_sensitive": 1}, ["AB C", "", "É1 2", "STRAßE Ǆ"]),
        ({"stopwords": ["AB C", "É1 2"]}, ["", "Straße ǆ"]),
        ({"stopwords": ["AB C", "É1 2", ""], "is_case_sensitive": 1}, ["ab c", "é1 2", "Straße ǆ"]),
        ({"stopwords": WORDS.tolist(), "is_case_sensitive": 1}, [""]),
    ],
)
def test_normalized_texts(attributes: dict[str, Any], expected: list[str]) -> None:
    """Written down, as ONNX Runtime needs a locale for the cases that not every machine has."""
    assert _ours(_model("StringNormalizer", WORDS, **attributes), WORDS).tolist() == expected
    row = WORDS[None]
    assert _ours(_model("StringNormalizer", row, **attributes), row).tolist() == [expected]


@pytest.mark.parametrize(
    "attributes",
    [{"is_case_sensitive": 1}, {"is_case_sensitive": 1, "stopwords": ["ab c", "Straße"]}],
)
def test_normalized_as_onnx_runtime_does(attributes: dict[str, Any]) -> None:
    data = _model("StringNormalizer", WORDS, **attributes)
    assert _ours(data, WORDS).tolist() == _theirs(data, WORDS).tolist()


def test_texts_in_rows_are_refused() -> None:
    rows = WORDS.reshape(2, 2)
    with pytest.raises(
        loopscope.RunStopped, match=r"the texts have shape \[2, 2\], expected \[C\] or \[1, C\]"
    ):
        _ours(_model("StringNormalizer", rows, stopwords=["a"]), rows)


@pytest.mark.parametrize("counts", [[-(2**40), 2], [0, 2**40], [2, 0]])
def test_ngrams_begin_in_the_pool_one_after_the_other(counts: list[int]) -> None:
    """The first two would be gone through one by one."""
    texts = np.array([["a", "b"]], object)
    grams = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0}
    data = _model(
        "TfIdfVectorizer",
        texts,
        ngram_counts=counts,
        ngram_indexes=[0, 1, 2],
        pool_strings=["a", "b", "a", "b"],
        **grams,
    )
    with pytest.raises(
        loopscope.RunStopped, match=r"ngram_counts is .*, expected places in the pool of 4"
    ):
        _ours(data, texts)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 4.0, 8.0]])
def test_ngrams_without_weights_weigh_1(mode: str, weights: list[float] | None) -> None:
    texts = np.array([["a", "b", "b", "c", "a"], ["c", "a", "b", "é", "a"]], object)
    attributes: dict[str, Any] = {
        "mode": mode,
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": 1,
        "ngram_counts": [0, 2],
    }
    attributes |= {
        "ngram_indexes": [0, 1, 2, 3],
        "pool_strings": ["a", "é", "a", "b", "c", "a"],
    } | ({"weights": weights} if weights else {})
    data = _model("TfIdfVectorizer", texts, **attributes)
    np.testing.assert_allclose(_ours(data, texts), _theirs(data, texts), rtol=1e-6)
