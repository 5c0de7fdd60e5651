"""ONNX-ML's linear models and support vector machines, and the final transforms of scores.

The transforms are those of attribute post_transform, and the scores of two classes from one score.
Probabilities of several classes are coupled from pairwise ones as in libsvm.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial import distance

from loopscope.ops import special_functions as special
from loopscope.ops.declare import Array
from loopscope.ops.kernel_checks import check_elements

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


Attributes = Mapping[str, Any]


def rows_of(data: np.ndarray) -> np.ndarray:
    """Return the input of a model as rows (N, features) in f64; a vector is one row."""
    if data.ndim not in (1, 2):
        raise ValueError(f"the data has shape {list(data.shape)}, expected rows of features")
    return np.atleast_2d(data).astype(np.float64)


def _scores(rows: np.ndarray, attributes: Attributes, targets: int) -> np.ndarray:
    """Return the product with the coefficients of each target, plus its intercept."""
    coefficients = np.array(attributes.get("coefficients") or (), np.float64)
    if coefficients.size != targets * rows.shape[1]:
        raise ValueError(
            f"there are {coefficients.size} coefficients for {targets} "
            f"times {rows.shape[1]} features"
        )
    intercepts = np.array(attributes.get("intercepts") or [0.0] * targets, np.float64)
    if intercepts.size != targets:
        raise ValueError(f"there are {intercepts.size} intercepts, expected {targets}")
    return (rows @ coefficients.reshape(targets, -1).T + intercepts).astype(np.float32)


def linear_classifier(data: Array, /, **attributes: Any) -> tuple[Array, Array]:
    """Return labels (N,) and scores (N, classes). The label is that of the greatest score before
    the transform.
    """
    rows = rows_of(data)
    texts, numbers = attributes.get("classlabels_strings"), attributes.get("classlabels_ints")
    known = len(texts or numbers or ())
    intercepts = len(attributes.get("intercepts") or ())
    targets = intercepts or max(len(attributes["coefficients"]) // max(rows.shape[1], 1), 1)
    scores = _scores(rows, attributes, targets)
    transform = attributes.get("post_transform") or "NONE"
    if targets == 1 and known == 2:
        return labels_at((scores[:, 0] > 0).astype(np.int64), texts, numbers), of_two_classes(
            scores[:, 0], transform, chance=True
        )
    if targets == 1:
        return label_or_nothing(scores[:, 0] > 0, texts, numbers), transformed(scores, transform)
    if known not in (0, targets):
        raise ValueError(f"there are {known} labels for {targets} scores, expected one for each")
    return labels_at(scores.argmax(axis=1), texts, numbers), transformed(scores, transform)


def linear_regressor(data: Array, /, **attributes: Any) -> Array:
    scores = _scores(rows_of(data), attributes, int(attributes.get("targets") or 1))
    return transformed(scores, attributes.get("post_transform") or "NONE")


_MIN_PROBABILITY = 1e-7
"""Lower limit of a pairwise probability; the upper limit is 1 minus this."""


def coupled(pairwise: np.ndarray, /) -> np.ndarray:
    """Return the probability of each class from those of each pair: (N, k, k) gives (N, k).

    The second method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by
    Pairwise Coupling" (JMLR 5, 2004), algorithm 2: it minimises ``p^T Q p`` with ``Q_tt`` the sum
    of ``r_jt ** 2`` and ``Q_tj = - r_jt * r_tj``. Each row stops where libsvm stops, because its
    bound is coarse enough to be visible in the result.
    """
    rows, classes, _ = pairwise.shape
    other = pairwise.transpose(0, 2, 1)
    quadratic = -other * pairwise
    each = np.arange(classes)
    quadratic[:, each, each] = 0
    quadratic[:, each, each] = np.where(np.eye(classes, dtype=bool), 0, other**2).sum(axis=2)
    result = np.full((rows, classes), 1 / classes)
    active = np.arange(rows)
    for _ in range(max(100, classes)):
        matrices, chances = quadratic[active], result[active]
        slopes = np.einsum("nij,nj->ni", matrices, chances)
        value = (chances * slopes).sum(axis=1)
        unfinished = np.abs(slopes - value[:, None]).max(axis=1) >= 0.005 / classes
        if not unfinished.any():
            break
        active = active[unfinished]
        result[active] = _improve(
            matrices[unfinished], chances[unfinished], slopes[unfinished], value[unfinished]
        )
    return result


def _improve(
    quadratic: np.ndarray, chances: np.ndarray, slopes: np.ndarray, value: np.ndarray
) -> np.ndarray:
    """Run one round: each class in turn receives the best share while the others keep their
    proportions.
    """
    for number in range(chances.shape[1]):
        own = quadratic[:, number, number]
        step = (value - slopes[:, number]) / own
        chances[:, number] += step
        value = (value + step * (step * own + 2 * slopes[:, number])) / (1 + step) ** 2
        slopes = (slopes + step[:, None] * quadratic[:, number]) / (1 + step)[:, None]
        chances /= (1 + step)[:, None]
    return chances


def svm_classifier(data: Array, /, **attributes: Any) -> tuple[Array, Array]:
    """Return labels (N,), and a score for each class, or for each pair of classes if the model has
    no probabilities.
    """
    rows = rows_of(data)
    texts, numbers = attributes.get("classlabels_strings"), attributes.get("classlabels_ints")
    classes = max(len(texts or numbers or ()), 1)
    transform = attributes.get("post_transform") or "NONE"
    if not sum(attributes.get("vectors_per_class") or ()):
        linear = _linear_scores(rows, attributes, classes)
        return labels_at(linear.argmax(axis=1), texts, numbers), transformed(linear, transform)
    scores = _pair_decisions(rows, classes, attributes)
    pairs = list(itertools.combinations(range(classes), 2))
    votes = np.zeros((len(rows), classes))
    for number, (first, second) in enumerate(pairs):
        won = scores[:, number] > 0
        votes[:, first] += won
        votes[:, second] += ~won
    labels = labels_at(votes.argmax(axis=1), texts, numbers)
    if attributes.get("prob_a"):
        return labels, transformed(
            coupled(_pair_probabilities(scores, pairs, attributes)).astype(np.float32), transform
        )
    if classes == 2:
        return labels, of_two_classes(
            scores[:, 0].astype(np.float32), transform, chance=transform != "NONE"
        )
    return labels, transformed(scores.astype(np.float32), transform)


def svm_regressor(data: Array, /, **attributes: Any) -> Array:
    """Return (N, 1): the score, or with ``one_class`` 1 if it is above 0 and -1 otherwise."""
    rows, count = rows_of(data), int(attributes.get("n_supports") or 0)
    if count:
        vectors = np.array(attributes.get("support_vectors") or (), np.float64)
        weights = np.array(attributes.get("coefficients") or (), np.float64)
        if vectors.size != count * rows.shape[1] or weights.size != count:
            raise ValueError(
                f"{count} support vectors of {rows.shape[1]} numbers have {vectors.size} "
                f"numbers and {weights.size} coefficients, "
                f"expected {count * rows.shape[1]} and {count}"
            )
        scores = (_kernel_values(rows, vectors.reshape(count, -1), attributes) @ weights)[
            :, None
        ] + _first_rho(attributes)
    else:
        scores = _linear_scores(rows, attributes, 1)
    if attributes.get("one_class"):
        return np.where(scores > 0, 1, -1).astype(np.float32)
    return transformed(scores.astype(np.float32), attributes.get("post_transform") or "NONE")


def _linear_scores(rows: np.ndarray, attributes: Mapping[str, Any], targets: int) -> np.ndarray:
    """Return the scores (N, targets) of a model without support vectors, which is linear for every
    kernel_type.
    """
    weights = np.array(attributes.get("coefficients") or (), np.float64)
    if weights.size != targets * rows.shape[1]:
        raise ValueError(
            f"there are {weights.size} coefficients, "
            f"expected {targets} times {rows.shape[1]} features"
        )
    return np.asarray(
        (rows @ weights.reshape(targets, -1).T + _first_rho(attributes)).astype(np.float32)
    )


def _first_rho(attributes: Mapping[str, Any]) -> float:
    return float((attributes.get("rho") or (0.0,))[0])


def _pair_probabilities(
    scores: np.ndarray, pairs: list[tuple[int, int]], attributes: Mapping[str, Any]
) -> np.ndarray:
    """Return the probability of the first of each pair against the second, by Platt's sigmoid: (N,
    k, k).
    """
    classes = pairs[-1][1] + 1
    chances = np.zeros((len(scores), classes, classes))
    for number, (first, second) in enumerate(pairs):
        chance = special.expit(
            -(scores[:, number] * attributes["prob_a"][number] + attributes["prob_b"][number])
        )
        chances[:, first, second] = np.clip(chance, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
        chances[:, second, first] = 1 - chances[:, first, second]
    return chances


def _pair_decisions(rows: np.ndarray, classes: int, attributes: Mapping[str, Any]) -> np.ndarray:
    """Return the decision of each pair of classes, (N, pairs): above 0 for the first."""
    counts = [int(first) for first in attributes["vectors_per_class"]]
    vectors = np.array(attributes.get("support_vectors") or (), np.float64)
    weights = np.array(attributes.get("coefficients") or (), np.float64)
    pairs, count = classes * (classes - 1) // 2, sum(counts)
    if classes < 2 or len(counts) != classes or min(counts) < 0:
        raise ValueError(
            f"vectors_per_class has {len(counts)} numbers for {classes} classes, "
            "expected one for each of two or more"
        )
    if vectors.size != count * rows.shape[1] or weights.size != count * (classes - 1):
        raise ValueError(
            f"{count} support vectors of {rows.shape[1]} numbers have {vectors.size} "
            f"numbers and {weights.size} coefficients, "
            f"expected {count * rows.shape[1]} and {count * (classes - 1)}"
        )
    vectors, weights = vectors.reshape(count, -1), weights.reshape(-1, count)
    for name in ("rho", "prob_a", "prob_b") if attributes.get("prob_a") else ("rho",):
        if len(attributes.get(name) or ()) != pairs:
            raise ValueError(
                f"{name} has {len(attributes.get(name) or ())} numbers, "
                f"expected {pairs}: one for each pair of classes"
            )
    alike = _kernel_values(rows, vectors, attributes)
    ends = [0, *itertools.accumulate(counts)]
    decisions = []
    for number, (first, second) in enumerate(itertools.combinations(range(classes), 2)):
        of_first = slice(ends[first], ends[first + 1])
        of_second = slice(ends[second], ends[second + 1])
        both = (
            alike[:, of_first] @ weights[second - 1, of_first]
            + alike[:, of_second] @ weights[first, of_second]
        )
        decisions.append(both + attributes["rho"][number])
    return np.stack(decisions, axis=1)


def _kernel_values(
    rows: np.ndarray, vectors: np.ndarray, attributes: Mapping[str, Any]
) -> np.ndarray:
    """Return the kernel function of every row and every support vector."""
    check_elements(len(rows) * len(vectors), "the kernel values of rows and support vectors")
    gamma, shift, degree = (*(attributes.get("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    match attributes.get("kernel_type") or "LINEAR":
        case "LINEAR":
            return rows @ vectors.T
        case "POLY":
            return (gamma * (rows @ vectors.T) + shift) ** degree
        case "SIGMOID":
            return np.tanh(gamma * (rows @ vectors.T) + shift)
        case "RBF":
            return np.asarray(np.exp(-gamma * distance.cdist(rows, vectors, "sqeuclidean")))
        case other:
            raise ValueError(
                f"kernel_type is {str(other)[:40]!r}, expected LINEAR, POLY, RBF or SIGMOID"
            )
