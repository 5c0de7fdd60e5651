"""Derivatives of ONNX's normalizations, and of its losses over classes.

Each element contributes to the score of its own class, with the weight of that class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value, known_rank
from loopscope.ops.gradients.normalizing import Neighbourhood, of_normalized
from loopscope.ops.onnx.derivatives import by_openvino_rule


def batch_normalization(node: Reverse, /) -> Adjoints:
    if node.attributes.get("training_mode"):
        raise ValueError("its training_mode computes mean and variance of the batch")
    return by_openvino_rule(
        "BatchNormInference", node, node.inputs, {"epsilon": node.attributes["epsilon"]}
    )


def layer_normalization(node: Reverse, /) -> Adjoints:
    data, scale, *bias = node.inputs
    _require_first_output(node)
    axes = _trailing_axes(data, node.attributes["axis"])
    of_data, standard = _standardize(node, data, axes, node.adjoint * scale)
    return [
        of_data,
        node.sum_to(node.adjoint * standard, scale),
        *(node.sum_to(node.adjoint, value) for value in bias),
    ]


def rms_normalization(node: Reverse, /) -> Adjoints:
    data, scale = node.inputs
    axes = _trailing_axes(data, node.attributes["axis"])
    root = node.ops.sqrt(_mean(node, data * data, axes) + float(node.attributes["epsilon"]))
    standard, of_standard = data / root, node.adjoint * scale
    of_data = (of_standard - standard * _mean(node, of_standard * standard, axes)) / root
    return [of_data, node.sum_to(node.adjoint * standard, scale)]


def instance_normalization(node: Reverse, /) -> Adjoints:
    data, scale, _ = node.inputs
    rank = known_rank(data)
    each, others = np.array([1, -1, *[1] * (rank - 2)]), np.array([0, *range(2, rank)])
    weights = node.ops.reshape(scale, each, special_zero=False)
    of_data, standard = _standardize(node, data, range(2, rank), node.adjoint * weights)
    of_scale, of_bias = (
        node.ops.reduce_sum(value, others, keep_dims=False)
        for value in (node.adjoint * standard, node.adjoint)
    )
    return [of_data, of_scale, of_bias]


def group_normalization(node: Reverse, /) -> Adjoints:
    return by_openvino_rule(
        "GroupNormalization",
        node,
        node.inputs,
        {name: node.attributes[name] for name in ("num_groups", "epsilon")},
    )


def lp_normalization(node: Reverse, /) -> Adjoints:
    """Return the adjoint of data divided by its norm along an axis: the sum of magnitudes, or the
    root of the sum of squares.
    """
    data, result = node.inputs[0], node.outputs[0]
    axis = np.array([node.attributes["axis"]])
    turned = node.ops.reduce_sum(node.adjoint * result, axis, keep_dims=True)
    if node.attributes["p"] == 1:
        return (
            (node.adjoint - node.ops.sign(data) * turned)
            / node.ops.reduce_l1(data, axis, keep_dims=True),
        )
    return ((node.adjoint - result * turned) / node.ops.reduce_l2(data, axis, keep_dims=True),)


def mean_variance_normalization(node: Reverse, /) -> Adjoints:
    """Return the adjoint of data less its mean, divided by the standard deviation plus 1e-9. The
    deviation of equal elements counts as constant.
    """
    data = node.inputs[0]
    axes = _IMAGES if node.attributes.get("axes") is None else node.attributes["axes"]
    centred = data - _mean(node, data, axes)
    deviation = node.ops.sqrt(_mean(node, centred * centred, axes))
    spread = deviation + _ADDED
    along = centred / node.ops.maximum(deviation, _ADDED)
    pulled = _mean(node, node.adjoint * centred, axes) / spread
    return ((node.adjoint - _mean(node, node.adjoint, axes) - along * pulled) / spread,)


_IMAGES = (0, 2, 3)
_ADDED = np.float32(1e-9)


def local_response_normalization(node: Reverse, /) -> Adjoints:
    """Return the adjoint of a normalization among the channels. With an even size, one neighbour
    more counts behind a channel than before it.
    """
    size, alpha = int(node.attributes["size"]), float(node.attributes["alpha"])
    near = Neighbourhood(
        (1,),
        (size - 1) // 2,
        size // 2,
        alpha / size,
        float(node.attributes["beta"]),
        float(node.attributes["bias"]),
    )
    return (of_normalized(node, node.inputs[0], near),)


def _standardize(
    node: Reverse, data: Value, axes: Sequence[int], adjoint: Value
) -> tuple[Value, Value]:
    """Return the adjoint of the data, given that of its standardized form, and the standardized
    form.
    """
    centred = data - _mean(node, data, axes)
    spread = node.ops.sqrt(_mean(node, centred * centred, axes) + float(node.attributes["epsilon"]))
    standard = centred / spread
    turned = adjoint - _mean(node, adjoint, axes) - standard * _mean(node, adjoint * standard, axes)
    return turned / spread, standard


def _mean(node: Reverse, value: Value, axes: Sequence[int]) -> Value:
    return node.ops.reduce_mean(value, np.array(axes, np.int64), keep_dims=True)


def _trailing_axes(data: Value, axis: int) -> range:
    rank = known_rank(data)
    return range(axis % rank, rank)


def _require_first_output(node: Reverse) -> None:
    if any(adjoint is not None for adjoint in node.adjoints[1:]):
        raise ValueError("the target depends on its mean or deviation, which are outputs of it")


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
