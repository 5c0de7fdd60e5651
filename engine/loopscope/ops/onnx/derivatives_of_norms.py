"""Derivatives of ONNX's normalizations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.neighbourhoods import Neighbourhood, of_normalized
from loopscope.ops.onnx.openvino_rules import by


def batch_normalization(at: Reverse, /) -> Adjoints:
    if at.attributes.get("training_mode"):
        raise ValueError("its training_mode computes mean and variance of the batch")
    return by("BatchNormInference", at, at.inputs, {"epsilon": at.attributes["epsilon"]})


def layer_normalization(at: Reverse, /) -> Adjoints:
    data, scale, *bias = at.inputs
    _only_first(at)
    axes = _trailing(data, at.attributes["axis"])
    of_data, standard = _standardized(at, data, axes, at.adjoint * scale)
    return [
        of_data,
        at.sum_to(at.adjoint * standard, scale),
        *(at.sum_to(at.adjoint, one) for one in bias),
    ]


def rms_normalization(at: Reverse, /) -> Adjoints:
    data, scale = at.inputs
    axes = _trailing(data, at.attributes["axis"])
    root = at.ops.sqrt(_mean(at, data * data, axes) + float(at.attributes["epsilon"]))
    standard, given = data / root, at.adjoint * scale
    of_data = (given - standard * _mean(at, given * standard, axes)) / root
    return [of_data, at.sum_to(at.adjoint * standard, scale)]


def instance_normalization(at: Reverse, /) -> Adjoints:
    data, scale, _ = at.inputs
    rank = _rank(data)
    each, others = np.array([1, -1, *[1] * (rank - 2)]), np.array([0, *range(2, rank)])
    weights = at.ops.reshape(scale, each, special_zero=False)
    of_data, standard = _standardized(at, data, range(2, rank), at.adjoint * weights)
    of_scale, of_bias = (
        at.ops.reduce_sum(one, others, keep_dims=False)
        for one in (at.adjoint * standard, at.adjoint)
    )
    return [of_data, of_scale, of_bias]


def group_normalization(at: Reverse, /) -> Adjoints:
    return by(
        "GroupNormalization",
        at,
        at.inputs,
        {name: at.attributes[name] for name in ("num_groups", "epsilon")},
    )


def lp_normalization(at: Reverse, /) -> Adjoints:
    """By the length along an axis: the sum of sizes, or the root of the sum of squares."""
    data, result = at.inputs[0], at.outputs[0]
    axis = np.array([at.attributes["axis"]])
    turned = at.ops.reduce_sum(at.adjoint * result, axis, keep_dims=True)
    if at.attributes["p"] == 1:
        return (
            (at.adjoint - at.ops.sign(data) * turned)
            / at.ops.reduce_l1(data, axis, keep_dims=True),
        )
    return ((at.adjoint - result * turned) / at.ops.reduce_l2(data, axis, keep_dims=True),)


def mean_variance_normalization(at: Reverse, /) -> Adjoints:
    """Less the mean, over the deviation, to which 1e-9 is added; of elements that are all alike
    the deviation counts as constant.
    """
    data = at.inputs[0]
    axes = _IMAGES if at.attributes.get("axes") is None else at.attributes["axes"]
    centred = data - _mean(at, data, axes)
    deviation = at.ops.sqrt(_mean(at, centred * centred, axes))
    spread = deviation + _ADDED
    along = centred / at.ops.maximum(deviation, _ADDED)
    pulled = _mean(at, at.adjoint * centred, axes) / spread
    return ((at.adjoint - _mean(at, at.adjoint, axes) - along * pulled) / spread,)


_IMAGES = (0, 2, 3)
_ADDED = np.float32(1e-9)


def local_response_normalization(at: Reverse, /) -> Adjoints:
    """Among the channels; of an even size one neighbour more counts behind than before."""
    size, alpha = int(at.attributes["size"]), float(at.attributes["alpha"])
    near = Neighbourhood(
        (1,),
        (size - 1) // 2,
        size // 2,
        alpha / size,
        float(at.attributes["beta"]),
        float(at.attributes["bias"]),
    )
    return (of_normalized(at, at.inputs[0], near),)


def _standardized(
    at: Reverse, data: Value, axes: Sequence[int], given: Value
) -> tuple[Value, Value]:
    """The adjoint of the data, from that of its standardized form, and that form."""
    centred = data - _mean(at, data, axes)
    spread = at.ops.sqrt(_mean(at, centred * centred, axes) + float(at.attributes["epsilon"]))
    standard = centred / spread
    turned = given - _mean(at, given, axes) - standard * _mean(at, given * standard, axes)
    return turned / spread, standard


def _mean(at: Reverse, value: Value, axes: Sequence[int]) -> Value:
    return at.ops.reduce_mean(value, np.array(axes, np.int64), keep_dims=True)


def _trailing(data: Value, axis: int) -> range:
    rank = _rank(data)
    return range(axis % rank, rank)


def _rank(data: Value) -> int:
    if data.rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    return data.rank


def _only_first(at: Reverse) -> None:
    if any(one is not None for one in at.adjoints[1:]):
        raise ValueError("the target depends on its mean or deviation, which are outputs of it")
