"""SVMClassifier with probabilities of three and more classes: pairwise ones, coupled as libsvm does."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special

Kernel = Any
_LEAST = 1e-7
"""A pairwise probability is no less, and no more than 1 less this."""


def coupled(pairwise: np.ndarray, /) -> np.ndarray:
    """The probability of each class from those of each pair: (N, k, k) gives (N, k).

    The second method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling" (JMLR 5, 2004),
    algorithm 2: it minimises ``p^T Q p`` with ``Q_tt`` the sum of ``r_jt ** 2`` and ``Q_tj = - r_jt * r_tj``. Each row stops where libsvm
    stops: its bound is coarse enough to be seen in the result.
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
        found[active] = _improved(one[unfinished], chances[unfinished], slopes[unfinished], value[unfinished])
    return found


def _improved(quadratic: np.ndarray, chances: np.ndarray, slopes: np.ndarray, value: np.ndarray) -> np.ndarray:
    """One round: each class in turn gets the share that is best while the others keep their proportions."""
    for number in range(chances.shape[1]):
        own = quadratic[:, number, number]
        step = (value - slopes[:, number]) / own
        chances[:, number] += step
        value = (value + step * (step * own + 2 * slopes[:, number])) / (1 + step) ** 2
        slopes = (slopes + step[:, None] * quadratic[:, number]) / (1 + step)[:, None]
        chances /= (1 + step)[:, None]
    return chances


def classified(slow: Any, attributes: Mapping[str, Any], outputs: int) -> Kernel:
    """The kernel of a node; ``slow`` prepares the onnx package's, which is right where nothing is coupled."""
    labels = attributes.get("classlabels_strings") or attributes.get("classlabels_ints") or ()
    if len(labels) < 3 or not attributes.get("prob_a") or not sum(attributes.get("vectors_per_class") or ()):
        kernel: Kernel = slow(attributes, outputs)
        return kernel
    names = np.array(labels, object if attributes.get("classlabels_strings") else np.int64)

    def compute(data: np.ndarray, /) -> tuple[np.ndarray, ...]:
        rows = np.atleast_2d(np.asarray(data)).astype(np.float64)
        scores = _pairwise(rows, len(labels), attributes)
        votes = np.zeros((len(rows), len(labels)))
        chances = np.zeros((len(rows), len(labels), len(labels)))
        for number, (one, other) in enumerate(itertools.combinations(range(len(labels)), 2)):
            won = scores[:, number] > 0
            votes[:, one] += won
            votes[:, other] += ~won
            chance = special.expit(-(scores[:, number] * attributes["prob_a"][number] + attributes["prob_b"][number]))
            chances[:, one, other] = np.clip(chance, _LEAST, 1 - _LEAST)
            chances[:, other, one] = 1 - chances[:, one, other]
        shown = _transformed(coupled(chances).astype(np.float32), attributes.get("post_transform") or "NONE")
        return (names[votes.argmax(axis=1)], shown.astype(np.float32))[:outputs]

    return compute


def _pairwise(rows: np.ndarray, classes: int, attributes: Mapping[str, Any]) -> np.ndarray:
    """The decision of each pair of classes, (N, pairs): above 0 for the first."""
    counts = [int(one) for one in attributes["vectors_per_class"]]
    vectors = np.array(attributes["support_vectors"], np.float64).reshape(sum(counts), -1)
    weights = np.array(attributes["coefficients"], np.float64).reshape(-1, sum(counts))
    pairs = classes * (classes - 1) // 2
    if vectors.shape[1] != rows.shape[1] or len(counts) != classes or len(weights) != classes - 1:
        raise ValueError(
            f"there are {len(counts)} groups of vectors of {vectors.shape[1]} numbers and {len(weights)} weights for each, "
            f"expected {classes} groups of {rows.shape[1]} numbers and {classes - 1} weights"
        )
    for name in ("rho", "prob_a", "prob_b"):
        if len(attributes.get(name) or ()) != pairs:
            raise ValueError(f"{name} has {len(attributes.get(name) or ())} numbers, expected {pairs}: one for each pair of classes")
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
    gamma, shift, degree = (*(attributes.get("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    match attributes.get("kernel_type") or "LINEAR":
        case "LINEAR":
            return rows @ vectors.T
        case "POLY":
            return (gamma * (rows @ vectors.T) + shift) ** int(degree)
        case "SIGMOID":
            return np.tanh(gamma * (rows @ vectors.T) + shift)
        case "RBF":
            return np.exp(-gamma * ((rows[:, None] - vectors[None]) ** 2).sum(axis=2))
        case other:
            raise ValueError(f"kernel_type is {str(other)[:40]!r}, expected LINEAR, POLY, RBF or SIGMOID")


def _transformed(scores: np.ndarray, post_transform: str) -> np.ndarray:
    """Attribute post_transform of the page."""
    match post_transform:
        case "NONE":
            return scores
        case "LOGISTIC":
            return np.asarray(special.expit(scores))
        case "SOFTMAX":
            return np.asarray(special.softmax(scores, axis=1))
        case "SOFTMAX_ZERO":
            powers = np.where(np.abs(scores) > _LEAST, np.exp(scores - scores.max(axis=1, keepdims=True)), 0)
            return np.asarray(powers / powers.sum(axis=1, keepdims=True))
        case "PROBIT":
            return _probit(scores)
        case other:
            raise ValueError(f"post_transform is {other[:40]!r}, expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT")


def _probit(chances: np.ndarray) -> np.ndarray:
    """By Winitzki's short formula for the inverse of erf, as ONNX Runtime has it: right to three digits, infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        log = np.log(4 * chances * (1 - chances))
    middle = 2 / (np.pi * 0.147) + log / 2
    root = np.sqrt(np.sqrt(middle**2 - log / 0.147) - middle)
    return np.asarray(np.sqrt(2) * np.where(chances < 0.5, -root, root))
