"""ONNX-ML's SVMClassifier and SVMRegressor; probabilities of several classes are pairwise ones,
coupled as libsvm does.
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

_LEAST = 1e-7
"""A pairwise probability is no less, and no more than 1 less this."""


def coupled(pairwise: np.ndarray, /) -> np.ndarray:
    """The probability of each class from those of each pair: (N, k, k) gives (N, k).

    The second method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by
    Pairwise Coupling" (JMLR 5, 2004), algorithm 2: it minimises ``p^T Q p`` with ``Q_tt`` the sum
    of ``r_jt ** 2`` and ``Q_tj = - r_jt * r_tj``. Each row stops where libsvm stops: its bound is
    coarse enough to be seen in the result.
    """
    rows, classes, _ = pairwise.shape
    other = pairwise.transpose(0, 2, 1)
    quadratic = -other * pairwise
    each = np.arange(classes)
    quadratic[:, each, each] = 0
    quadratic[:, each, each] = np.where(np.eye(classes, dtype=bool), 0, other**2).sum(axis=2)
    found = np.full((rows, classes), 1 / classes)
    active = np.arange(rows)
    for _ in range(max(100, classes)):
        one, chances = quadratic[active], found[active]
        slopes = np.einsum("nij,nj->ni", one, chances)
        value = (chances * slopes).sum(axis=1)
        unfinished = np.abs(slopes - value[:, None]).max(axis=1) >= 0.005 / classes
        if not unfinished.any():
            break
        active = active[unfinished]
        found[active] = _improved(
            one[unfinished], chances[unfinished], slopes[unfinished], value[unfinished]
        )
    return found


def _improved(
    quadratic: np.ndarray, chances: np.ndarray, slopes: np.ndarray, value: np.ndarray
) -> np.ndarray:
    """One round: each class in turn gets the share that is best while the others keep their
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
    """Labels (N,), and a score for each class, or for each pair of classes where no
    probabilities are to be had.
    """
    rows = rows_of(data)
    texts, numbers = attributes.get("classlabels_strings"), attributes.get("classlabels_ints")
    classes, transform = (
        max(len(texts or numbers or ()), 1),
        attributes.get("post_transform") or "NONE",
    )
    if not sum(attributes.get("vectors_per_class") or ()):
        linear = _by_coefficients(rows, attributes, classes)
        return labels_at(linear.argmax(axis=1), texts, numbers), transformed(linear, transform)
    scores = _pairwise(rows, classes, attributes)
    pairs = list(itertools.combinations(range(classes), 2))
    votes = np.zeros((len(rows), classes))
    for number, (one, other) in enumerate(pairs):
        won = scores[:, number] > 0
        votes[:, one] += won
        votes[:, other] += ~won
    labels = labels_at(votes.argmax(axis=1), texts, numbers)
    if attributes.get("prob_a"):
        return labels, transformed(
            coupled(_chances(scores, pairs, attributes)).astype(np.float32), transform
        )
    if classes == 2:
        return labels, of_two_classes(
            scores[:, 0].astype(np.float32), transform, chance=transform != "NONE"
        )
    return labels, transformed(scores.astype(np.float32), transform)


def svm_regressor(data: Array, /, **attributes: Any) -> Array:
    """(N, 1): the score, or with ``one_class`` 1 where it is above 0 and -1 elsewhere."""
    rows, count = rows_of(data), int(attributes.get("n_supports") or 0)
    if count:
        vectors = np.array(attributes.get("support_vectors") or (), np.float64)
        weights = np.array(attributes.get("coefficients") or (), np.float64)
        if vectors.size != count * rows.shape[1] or weights.size != count:
            raise ValueError(
                f"{count} support vectors of {rows.shape[1]} numbers have {vectors.size} numbers and {weights.size} coefficients, "
                f"expected {count * rows.shape[1]} and {count}"
            )
        scores = (_alike(rows, vectors.reshape(count, -1), attributes) @ weights)[
            :, None
        ] + _first_rho(attributes)
    else:
        scores = _by_coefficients(rows, attributes, 1)
    if attributes.get("one_class"):
        return np.where(scores > 0, 1, -1).astype(np.float32)
    return transformed(scores.astype(np.float32), attributes.get("post_transform") or "NONE")


def _by_coefficients(rows: np.ndarray, attributes: Mapping[str, Any], targets: int) -> np.ndarray:
    """Without support vectors the model is linear whatever kernel_type says: (N, targets)."""
    weights = np.array(attributes.get("coefficients") or (), np.float64)
    if weights.size != targets * rows.shape[1]:
        raise ValueError(
            f"there are {weights.size} coefficients, expected {targets} times {rows.shape[1]} features"
        )
    return np.asarray(
        (rows @ weights.reshape(targets, -1).T + _first_rho(attributes)).astype(np.float32)
    )


def _first_rho(attributes: Mapping[str, Any]) -> float:
    return float((attributes.get("rho") or (0.0,))[0])


def _chances(
    scores: np.ndarray, pairs: list[tuple[int, int]], attributes: Mapping[str, Any]
) -> np.ndarray:
    """How likely the first of each pair is rather than the other, by Platt's sigmoid: (N, k, k)."""
    classes = pairs[-1][1] + 1
    chances = np.zeros((len(scores), classes, classes))
    for number, (one, other) in enumerate(pairs):
        chance = special.expit(
            -(scores[:, number] * attributes["prob_a"][number] + attributes["prob_b"][number])
        )
        chances[:, one, other] = np.clip(chance, _LEAST, 1 - _LEAST)
        chances[:, other, one] = 1 - chances[:, one, other]
    return chances


def _pairwise(rows: np.ndarray, classes: int, attributes: Mapping[str, Any]) -> np.ndarray:
    """The decision of each pair of classes, (N, pairs): above 0 for the first."""
    counts = [int(one) for one in attributes["vectors_per_class"]]
    vectors = np.array(attributes.get("support_vectors") or (), np.float64)
    weights = np.array(attributes.get("coefficients") or (), np.float64)
    pairs, count = classes * (classes - 1) // 2, sum(counts)
    if classes < 2 or len(counts) != classes or min(counts) < 0:
        raise ValueError(
            f"vectors_per_class has {len(counts)} numbers for {classes} classes, expected one for each of two or more"
        )
    if vectors.size != count * rows.shape[1] or weights.size != count * (classes - 1):
        raise ValueError(
            f"{count} support vectors of {rows.shape[1]} numbers have {vectors.size} numbers and {weights.size} coefficients, "
            f"expected {count * rows.shape[1]} and {count * (classes - 1)}"
        )
    vectors, weights = vectors.reshape(count, -1), weights.reshape(-1, count)
    for name in ("rho", "prob_a", "prob_b") if attributes.get("prob_a") else ("rho",):
        if len(attributes.get(name) or ()) != pairs:
            raise ValueError(
                f"{name} has {len(attributes.get(name) or ())} numbers, expected {pairs}: one for each pair of classes"
            )
    alike = _alike(rows, vectors, attributes)
    ends = [0, *itertools.accumulate(counts)]
    found = []
    for number, (one, other) in enumerate(itertools.combinations(range(classes), 2)):
        mine, theirs = slice(ends[one], ends[one + 1]), slice(ends[other], ends[other + 1])
        both = alike[:, mine] @ weights[other - 1, mine] + alike[:, theirs] @ weights[one, theirs]
        found.append(both + attributes["rho"][number])
    return np.stack(found, axis=1)


def _alike(rows: np.ndarray, vectors: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """The kernel function of every row and every support vector."""
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
