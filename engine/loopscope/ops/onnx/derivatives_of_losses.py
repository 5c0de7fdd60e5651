"""Derivatives of ONNX's losses over classes: each element pulls at the score of its own class,
as strongly as its class weighs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Reverse, Value

_SCORES, _LABELS, _WEIGHTS = range(3)
_CLASSES = np.array([1])
"""The axis of the classes."""


@dataclass(frozen=True, slots=True)
class _Elements:
    """What is known of the elements ``[N, 1, d1, ...]`` that a loss adds up."""

    hot: Value
    """``[N, C, d1, ...]``: 1 at the class of an element, 0 elsewhere and for elements that are
    ignored.
    """
    weight: Value
    """Of the class of each element, 0 for those that are ignored."""
    chosen: Value
    """Minus the score of the class of each element."""


def negative_log_likelihood_loss(at: Reverse, /) -> Mapping[int, Value | None]:
    """Of the scores, which are logarithms, and of the weights of the classes."""
    scores = at.input_at(_SCORES)
    assert scores is not None
    of_scores, of_weights = _of_loss(at, scores)
    return {_SCORES: of_scores, _WEIGHTS: of_weights}


def softmax_cross_entropy_loss(at: Reverse, /) -> Mapping[int, Value | None]:
    """Of the scores, through their logarithms of probabilities, which may be a second output,
    and of the weights of the classes.
    """
    scores = at.input_at(_SCORES)
    assert scores is not None
    logarithms = at.ops.log_softmax(scores, axis=1)
    of_logarithms, of_weights = _of_loss(at, logarithms)
    if len(at.adjoints) > 1 and at.adjoints[1] is not None:
        of_logarithms = of_logarithms + at.adjoints[1]
    total = at.ops.reduce_sum(of_logarithms, _CLASSES, keep_dims=True)
    return {_SCORES: of_logarithms - at.ops.exp(logarithms) * total, _WEIGHTS: of_weights}


def _of_loss(at: Reverse, scores: Value) -> tuple[Value, Value | None]:
    """Of the logarithms of probabilities, and of the weights where they are given."""
    reduction, weights = str(at.attributes["reduction"]), at.input_at(_WEIGHTS)
    one = _elements(at, scores, weights)
    each = at.ops.unsqueeze(at.adjoint, _CLASSES) if reduction == "none" else at.adjoint
    pull = one.chosen
    if reduction == "mean":
        each = each / _total(at, one.weight)
        pull = pull - at.outputs[0]
    of_scores = -(one.hot * (one.weight * each))
    if weights is None:
        return of_scores, None
    by_class = one.hot * (pull * each)
    rest = np.array([axis for axis in range(_rank(scores)) if axis != 1], np.int64)
    return of_scores, at.ops.reduce_sum(by_class, rest, keep_dims=False)


def _elements(at: Reverse, scores: Value, weights: Value | None) -> _Elements:
    labels, ignored = at.input_at(_LABELS), at.attributes.get("ignore_index")
    assert labels is not None
    count = at.ops.gather(at.shape_of(scores), np.array(1), np.array(0), batch_dims=0)
    given = at.ops.convert(labels, destination_type="i64")
    none, one = at.filled_to(0, scores, ()), at.filled_to(1, scores, ())
    # Of a label that is ignored any number may stand there, and class 0 is as good as any.
    counts = (
        None
        if ignored is None
        else at.ops.unsqueeze(at.ops.not_equal(given, np.int64(ignored)), _CLASSES)
    )
    within = (
        given
        if counts is None
        else at.ops.select(at.ops.squeeze(counts, _CLASSES), given, np.int64(0))
    )
    hot = at.ops.one_hot(within, count, one, none, axis=1)
    if counts is not None:
        hot = at.where(counts, hot)
    chosen = -at.ops.reduce_sum(at.where(hot > 0.0, scores), _CLASSES, keep_dims=True)
    weighed = (
        hot
        if weights is None
        else hot
        * at.ops.reshape(weights, np.array([-1, *[1] * (_rank(scores) - 2)]), special_zero=False)
    )
    return _Elements(hot, at.ops.reduce_sum(weighed, _CLASSES, keep_dims=True), chosen)


def _total(at: Reverse, weight: Value) -> Value:
    return at.ops.reduce_sum(
        at.ops.reshape(weight, np.array([-1]), special_zero=False), np.array([0]), keep_dims=False
    )


def _rank(scores: Value) -> int:
    if scores.rank is None:
        raise ValueError("the rank of the scores is not known: give the model's inputs their ranks")
    return scores.rank
