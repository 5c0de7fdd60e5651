"""Derivatives of ONNX's activations, reductions and products that OpenVINO has in another form,
or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value
from loopscope.ops.gradients.element_places import whole_number
from loopscope.ops.onnx.openvino_rules import by, through


def clip(at: Reverse, /) -> Mapping[int, Value | None]:
    """Within the bounds the data has the adjoint, outside a bound that is an input has it."""
    data, low, high = (at.input_at(place) for place in range(3))
    assert data is not None
    below = None if low is None else data < low
    above = None if high is None else data > high
    of_data = at.adjoint
    for outside in (below, above):
        if outside is not None:
            of_data = at.where(at.ops.logical_not(outside), of_data)
    # What lies below one bound is brought to it, and to the upper one where that is less.
    if below is not None and above is not None and low is not None and high is not None:
        crossed = low > high
        below = at.ops.logical_and(below, at.ops.logical_not(crossed))
        above = at.ops.logical_or(above, crossed)
    of_low, of_high = (
        None
        if outside is None or bound is None
        else at.sum_to(at.where(outside, at.adjoint), bound)
        for outside, bound in ((below, low), (above, high))
    )
    return {0: of_data, 1: of_low, 2: of_high}


def clip_by_attributes(at: Reverse, /) -> Adjoints:
    data = at.inputs[0]
    inside = at.ops.logical_and(
        data >= float(at.attributes["min"]), data <= float(at.attributes["max"])
    )
    return (at.where(inside, at.adjoint),)


def prelu(at: Reverse, /) -> Adjoints:
    data, slope = at.inputs
    negative = data < 0.0
    return at.ops.select(negative, at.adjoint * slope, at.adjoint), at.sum_to(
        at.where(negative, at.adjoint * data), slope
    )


def selu(at: Reverse, /) -> Adjoints:
    gamma, alpha, data = float(at.attributes["gamma"]), float(at.attributes["alpha"]), at.inputs[0]
    return (
        at.adjoint
        * gamma
        * at.ops.select(data > 0.0, at.filled(1, data), at.ops.exp(data) * alpha),
    )


def celu(at: Reverse, /) -> Adjoints:
    data, alpha = at.inputs[0], float(at.attributes["alpha"])
    return (at.ops.select(data > 0.0, at.adjoint, at.adjoint * at.ops.exp(data / alpha)),)


def gelu(at: Reverse, /) -> Adjoints:
    mode = {"none": "erf", "tanh": "tanh"}[at.attributes["approximate"]]
    return by("Gelu", at, at.inputs, {"approximation_mode": mode})


def swish(at: Reverse, /) -> Adjoints:
    data, alpha = at.inputs[0], float(at.attributes["alpha"])
    open_ = at.ops.sigmoid(data * alpha)
    return (at.adjoint * (open_ + data * alpha * open_ * (1.0 - open_)),)


def hard_sigmoid(at: Reverse, /) -> Adjoints:
    result, alpha = at.outputs[0], float(at.attributes["alpha"])
    between = at.ops.logical_and(result > 0.0, result < 1.0)
    return (at.where(between, at.adjoint * alpha),)


def thresholded_relu(at: Reverse, /) -> Adjoints:
    return (at.where(at.inputs[0] > float(at.attributes["alpha"]), at.adjoint),)


def shrink(at: Reverse, /) -> Adjoints:
    """What lies beyond the threshold is moved and keeps its adjoint; the rest becomes 0."""
    data, threshold = at.inputs[0], float(at.attributes["lambd"])
    beyond = at.ops.logical_or(data > threshold, data < -threshold)
    return (at.where(beyond, at.adjoint),)


def along_the_rest(logarithm: bool, at: Reverse) -> Adjoints:
    """Softmax and LogSoftmax before opset 13, which go along all axes from one on."""
    data, result = at.inputs[0], at.outputs[0]
    if data.rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    first = 1 if at.attributes["axis"] is None else int(at.attributes["axis"])
    axes = np.arange(first % data.rank if first < 0 else first, data.rank)
    if not axes.size:
        return (at.zeros_like(data),)
    if logarithm:
        return (
            at.adjoint - at.ops.exp(result) * at.ops.reduce_sum(at.adjoint, axes, keep_dims=True),
        )
    return (result * (at.adjoint - at.ops.reduce_sum(at.adjoint * result, axes, keep_dims=True)),)


def einsum(at: Reverse, /) -> Adjoints:
    return by("Einsum", at, at.inputs, {"equation": at.attributes["equation"]})


def sum_of_squares(spread: Gradient) -> Gradient:
    """``spread``: the rule of the sum over the same axes, which hands each sum's adjoint to its
    elements.
    """

    def gradient(at: Reverse, /) -> Adjoints:
        given, *rest = spread(at)
        return [None if given is None else given * at.inputs[0] * 2.0, *rest]

    return gradient


def logarithm_of_sum(spread: Gradient) -> Gradient:
    """``spread``: as of ``sum_of_squares``."""

    def gradient(at: Reverse, /) -> Adjoints:
        return spread(replace(at, adjoints=(at.adjoint / at.ops.exp(at.outputs[0]),)))

    return gradient


def logarithm_of_exponentials(spread: Gradient) -> Gradient:
    """``spread``: as of ``sum_of_squares``. Each element gets its part of the sum, which never
    overflows.
    """

    def gradient(at: Reverse, /) -> Adjoints:
        given, *rest = spread(at)
        whole = spread(replace(at, adjoints=at.outputs))[0]
        part = None if given is None or whole is None else given * at.ops.exp(at.inputs[0] - whole)
        return [part, *rest]

    return gradient


def cumulative_product(at: Reverse, /) -> Adjoints:
    """Each element counts in the products behind it, by what all others give: two folds, so that
    zeros are no special case.
    """
    data, along = at.inputs
    axis, rank = whole_number(along, "axis"), data.rank
    if rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    order = [axis % rank, *(one for one in range(rank) if one != axis % rank)]
    elements, adjoint = (at.ops.transpose(one, np.array(order)) for one in (data, at.adjoint))
    turned, exclusive = bool(at.attributes["reverse"]), bool(at.attributes["exclusive"])
    first = at.ops.gather(elements, np.array(0), np.array(0), batch_dims=0)
    one, nothing = at.filled(1, first), at.zeros_like(first)

    def gathered(state: tuple[Value, Value], here: tuple[Value, Value]) -> tuple[Value, Value]:
        behind, (element, given) = state[1], here
        return (
            (behind, given + element * behind)
            if exclusive
            else (given + behind, element * (given + behind))
        )

    before = at.scan(
        lambda products, element: (products[1], products[1] * element), elements, (one, one), turned
    )[0]
    behind = at.scan(gathered, (elements, adjoint), (nothing, nothing), not turned)[0]
    return at.ops.transpose(before * behind, np.argsort(order)), None


def determinant(at: Reverse, /) -> Adjoints:
    """Each element's cofactor: the determinant times the transposed inverse, so of a singular
    matrix it is no number.
    """
    ends = np.array([-2, -1])
    cofactors = at.ops.unsqueeze(at.outputs[0], ends) * at.ops.inverse(at.inputs[0], adjoint=True)
    return (at.ops.unsqueeze(at.adjoint, ends) * cofactors,)


def modulo(at: Reverse, /) -> Adjoints:
    """Of floats the remainder with the sign of the dividend, or, where it may be of the divisor,
    of that.
    """
    return by("Mod" if at.attributes["fmod"] else "FloorMod", at, at.inputs, {})


def one_hot(at: Reverse, /) -> Adjoints:
    """The values, first the one elsewhere, get the sums of their places."""
    places, depth, values = at.inputs
    hot = at.ops.one_hot(
        places,
        at.ops.convert(at.reshaped_to(depth, ()), destination_type="i64"),
        True,
        False,
        axis=at.attributes["axis"],
    )
    flat = np.array([-1])
    sums = [
        at.ops.reduce_sum(
            at.ops.reshape(at.where(chosen, at.adjoint), flat, special_zero=False),
            np.array([0]),
            keep_dims=True,
        )
        for chosen in (at.ops.logical_not(hot), hot)
    ]
    return None, None, at.reshaped(at.ops.concat(*sums, axis=0), values)


def compress(at: Reverse, /) -> Adjoints:
    """What was kept keeps its adjoint, the rest gets 0."""
    data, chosen = at.inputs
    places = at.ops.squeeze(at.ops.non_zero(chosen), np.array([0]))
    axis = at.attributes["axis"]
    line = data if axis is not None else at.ops.reshape(data, np.array([-1]), special_zero=False)
    found = through(
        "Gather", at, (line, places, at.constant(np.array(axis or 0, np.int64))), {"batch_dims": 0}
    )[0]
    return None if found is None else at.reshaped(found, data), None
