"""What models of ONNX-ML do with their scores at the end: attribute post_transform, and one
score of two classes.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops import special_functions as special

_LEAST = 1e-7
"""SOFTMAX_ZERO takes what is nearer to 0 for 0."""


def transformed(scores: np.ndarray, post_transform: str) -> np.ndarray:
    """Scores (N, k) after attribute post_transform, f32.

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
                np.abs(scores) > _LEAST,
                np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf)),
                0,
            )
            return np.asarray(powers / powers.sum(axis=1, keepdims=True))
        case "PROBIT":
            return _probit(scores)
        case other:
            raise ValueError(
                f"post_transform is {str(other)[:40]!r}, expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT"
            )


def _probit(chances: np.ndarray) -> np.ndarray:
    """By Winitzki's short formula for the inverse of erf, as ONNX Runtime has it: right to three
    digits, infinite at 0 and 1.
    """
    log = np.log(4 * chances * (1 - chances))
    middle = 2 / (np.pi * 0.147) + log / 2
    root = np.sqrt(np.sqrt(middle**2 - log / 0.147) - middle)
    return np.asarray(np.sqrt(2) * np.where(chances < 0.5, -root, root))


def of_two_classes(score: np.ndarray, post_transform: str, *, chance: bool) -> np.ndarray:
    """One score (N,) of the second class as the scores of both, (N, 2).

    ONNX does not say how; exporters were tested with ONNX Runtime: the first is the complement of a
    ``chance``, else the negative, and of the transforms LOGISTIC and PROBIT alone are applied. (Of
    PROBIT, ONNX Runtime writes every other number only.)
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
    """The labels at some places, by attributes of texts or of numbers; the places themselves
    where neither is given.
    """
    if isinstance(texts, tuple) and texts:
        return np.array(texts, object)[places]
    if isinstance(numbers, tuple) and numbers:
        return np.array(numbers, np.int64)[places]
    return places.astype(np.int64)


def label_or_nothing(chosen: np.ndarray, texts: object, numbers: object) -> np.ndarray:
    """The only label where it is chosen, else 0 or an empty text; without labels 1 and 0."""
    if isinstance(texts, tuple) and texts:
        return np.where(chosen, np.array(texts[:1], object), np.array([""], object))
    number = numbers[0] if isinstance(numbers, tuple) and numbers else 1
    return np.where(chosen, np.int64(number), np.int64(0))
