"""ONNX-ML's SVMClassifier and SVMRegressor. Probabilities of several classes are coupled from
pairwise ones as in libsvm.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial import distance

from loopscope.ops import special_functions as special
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.onnx.linear_models import rows_of
from loopscope.ops.onnx.post_transforms import labels_at, of_two_classes, transformed

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
