"""Derivatives of ONNX's losses over classes. Each element contributes to the score of its own
class, with the weight of that class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Reverse, Value, known_rank

_SCORES, _LABELS, _WEIGHTS = range(3)
_CLASSES = np.array([1])
"""The axis of the classes."""


@dataclass(frozen=True, slots=True)
class _Elements:
    """Classes, weights and scores of the elements ``[N, 1, d1, ...]`` that a loss adds up."""

    hot: Value
    """``[N, C, d1, ...]``: 1 at the class of an element, 0 at other classes and for ignored
    elements.
    """
    weight: Value
    """Weight of the class of each element, 0 for ignored elements."""
    chosen: Value
    """Negative score of the class of each element."""


def negative_log_likelihood_loss(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoints of the scores, which are logarithms, and of the weights of the
    classes.
    """
    scores = node.input_at(_SCORES)
    assert scores is not None
    of_scores, of_weights = _loss_adjoints(node, scores)
    return {_SCORES: of_scores, _WEIGHTS: of_weights}


def softmax_cross_entropy_loss(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoints of the scores and of the weights of the classes. The logarithms of the
    probabilities may be a second output.
    """
    scores = node.input_at(_SCORES)
    assert scores is not None
    logarithms = node.ops.log_softmax(scores, axis=1)
    of_logarithms, of_weights = _loss_adjoints(node, logarithms)
    if len(node.adjoints) > 1 and node.adjoints[1] is not None:
        of_logarithms = of_logarithms + node.adjoints[1]
    total = node.ops.reduce_sum(of_logarithms, _CLASSES, keep_dims=True)
    return {_SCORES: of_logarithms - node.ops.exp(logarithms) * total, _WEIGHTS: of_weights}


def _loss_adjoints(node: Reverse, scores: Value) -> tuple[Value, Value | None]:
    """Return the adjoints of the logarithms of probabilities, and of the weights if there are
    any.
    """
    reduction, weights = str(node.attributes["reduction"]), node.input_at(_WEIGHTS)
    elements = _elements(node, scores, weights)
    each = node.ops.unsqueeze(node.adjoint, _CLASSES) if reduction == "none" else node.adjoint
    pull = elements.chosen
    if reduction == "mean":
        each = each / _total(node, elements.weight)
        pull = pull - node.outputs[0]
    of_scores = -(elements.hot * (elements.weight * each))
    if weights is None:
        return of_scores, None
    by_class = elements.hot * (pull * each)
    rest = np.array([axis for axis in range(known_rank(scores, "scores")) if axis != 1], np.int64)
    return of_scores, node.ops.reduce_sum(by_class, rest, keep_dims=False)


def _elements(node: Reverse, scores: Value, weights: Value | None) -> _Elements:
    labels, ignored = node.input_at(_LABELS), node.attributes.get("ignore_index")
    assert labels is not None
    count = node.ops.gather(node.shape_of(scores), np.array(1), np.array(0), batch_dims=0)
    classes = node.ops.convert(labels, destination_type="i64")
    zero, unit = node.filled_to(0, scores, ()), node.filled_to(1, scores, ())
    # An ignored label may be any number; class 0 takes its place.
    counts = (
        None
        if ignored is None
        else node.ops.unsqueeze(node.ops.not_equal(classes, np.int64(ignored)), _CLASSES)
    )
    within = (
        classes
        if counts is None
        else node.ops.select(node.ops.squeeze(counts, _CLASSES), classes, np.int64(0))
    )
    hot = node.ops.one_hot(within, count, unit, zero, axis=1)
    if counts is not None:
        hot = node.where(counts, hot)
    chosen = -node.ops.reduce_sum(node.where(hot > 0.0, scores), _CLASSES, keep_dims=True)
    weighed = (
        hot
        if weights is None
        else hot
        * node.ops.reshape(
            weights, np.array([-1, *[1] * (known_rank(scores, "scores") - 2)]), special_zero=False
        )
    )
    return _Elements(hot, node.ops.reduce_sum(weighed, _CLASSES, keep_dims=True), chosen)


def _total(node: Reverse, weight: Value) -> Value:
    return node.ops.reduce_sum(
        node.ops.reshape(weight, np.array([-1]), special_zero=False), np.array([0]), keep_dims=False
    )
