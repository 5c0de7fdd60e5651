"""Final transforms of ONNX-ML models: attribute post_transform, and the scores of two classes from
one score.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops import special_functions as special

_ZERO_LIMIT = 1e-7
"""Limit below which SOFTMAX_ZERO treats a magnitude as 0."""


def transformed(scores: np.ndarray, post_transform: str) -> np.ndarray:
    """Return scores (N, k) after attribute post_transform, in f32.

    >>> transformed(np.array([[0.0, 2.0]]), "LOGISTIC").round(3).tolist()
    [[0.5, 0.8809999823570251]]
    """
    with np.errstate(all="ignore"):
        return _transformed(scores.astype(np.float64), post_transform).astype(np.float32)


def _transformed(scores: np.ndarray, post_transform: str) -> np.ndarray:
    match post_transform:
        case "NONE":
            return scores
        case "LOGISTIC":
            return np.asarray(special.expit(scores))
        case "SOFTMAX":
            return np.asarray(special.softmax(scores, axis=1)) if scores.size else scores
        case "SOFTMAX_ZERO":
            powers = np.where(
                np.abs(scores) > _ZERO_LIMIT,
                np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf)),
                0,
            )
            return np.asarray(powers / powers.sum(axis=1, keepdims=True))
        case "PROBIT":
            return _probit(scores)
        case other:
            raise ValueError(
                f"post_transform is {str(other)[:40]!r}, "
                "expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT"
            )


def _probit(chances: np.ndarray) -> np.ndarray:
    """Return the quantiles by Winitzki's short formula for the inverse of erf, as in ONNX Runtime:
    right to three digits, infinite at 0 and 1.
    """
    log = np.log(4 * chances * (1 - chances))
    middle = 2 / (np.pi * 0.147) + log / 2
    root = np.sqrt(np.sqrt(middle**2 - log / 0.147) - middle)
    return np.asarray(np.sqrt(2) * np.where(chances < 0.5, -root, root))


def of_two_classes(score: np.ndarray, post_transform: str, *, chance: bool) -> np.ndarray:
    """Return the scores of both classes, (N, 2), from one score (N,) of the second class.

    ONNX does not define this; exporters are tested with ONNX Runtime. The first score is the
    complement of a ``chance``, otherwise the negative, and only LOGISTIC and PROBIT are applied.
    (ONNX Runtime writes only every other number for PROBIT.)
    """
    match post_transform:
        case "LOGISTIC":
            return transformed(np.stack([-score, score], axis=1), post_transform)
        case "PROBIT":
            return transformed(np.stack([1 - score, score], axis=1), post_transform)
        case "NONE" | "SOFTMAX" | "SOFTMAX_ZERO":
            return np.stack([1 - score if chance else -score, score], axis=1).astype(np.float32)
        case other:
            return transformed(score[:, None], other)


def labels_at(places: np.ndarray, texts: object, numbers: object) -> np.ndarray:
    """Return the labels at some positions, by attributes of texts or of numbers; without them the
    positions.
    """
    if isinstance(texts, tuple) and texts:
        return np.array(texts, object)[places]
    if isinstance(numbers, tuple) and numbers:
        return np.array(numbers, np.int64)[places]
    return places.astype(np.int64)


def label_or_nothing(chosen: np.ndarray, texts: object, numbers: object) -> np.ndarray:
    """Return the only label if it is chosen, otherwise 0 or an empty text; without labels 1 and
    0.
    """
    if isinstance(texts, tuple) and texts:
        return np.where(chosen, np.array(texts[:1], object), np.array([""], object))
    number = numbers[0] if isinstance(numbers, tuple) and numbers else 1
    return np.where(chosen, np.int64(number), np.int64(0))
