"""Derivatives of ONNX's activations, reductions and products that OpenVINO does not have in this
form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value
from loopscope.ops.gradients.element_places import whole_number
from loopscope.ops.onnx.derivatives import INDICES_INSIDE, by_openvino_rule, openvino_adjoints


def clip(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoint of the data within the bounds, and for a bound that is an input the
    adjoint of the elements beyond it.
    """
    data, low, high = (node.input_at(place) for place in range(3))
    assert data is not None
    below = None if low is None else data < low
    above = None if high is None else data > high
    of_data = node.adjoint
    for outside in (below, above):
        if outside is not None:
            of_data = node.where(node.ops.logical_not(outside), of_data)
    # An element below the lower bound becomes that bound, or the upper bound if the upper one is
    # lower.
    if below is not None and above is not None and low is not None and high is not None:
        crossed = low > high
        below = node.ops.logical_and(below, node.ops.logical_not(crossed))
        above = node.ops.logical_or(above, crossed)
    of_low, of_high = (
        None
        if outside is None or bound is None
        else node.sum_to(node.where(outside, node.adjoint), bound)
        for outside, bound in ((below, low), (above, high))
    )
    return {0: of_data, 1: of_low, 2: of_high}


def clip_by_attributes(node: Reverse, /) -> Adjoints:
    data = node.inputs[0]
    inside = node.ops.logical_and(
        data >= float(node.attributes["min"]), data <= float(node.attributes["max"])
    )
    return (node.where(inside, node.adjoint),)


def prelu(node: Reverse, /) -> Adjoints:
    data, slope = node.inputs
    negative = data < 0.0
    return node.ops.select(negative, node.adjoint * slope, node.adjoint), node.sum_to(
        node.where(negative, node.adjoint * data), slope
    )


def selu(node: Reverse, /) -> Adjoints:
    gamma = float(node.attributes["gamma"])
    alpha = float(node.attributes["alpha"])
    data = node.inputs[0]
    return (
        node.adjoint
        * gamma
        * node.ops.select(data > 0.0, node.filled(1, data), node.ops.exp(data) * alpha),
    )


def celu(node: Reverse, /) -> Adjoints:
    data, alpha = node.inputs[0], float(node.attributes["alpha"])
    return (node.ops.select(data > 0.0, node.adjoint, node.adjoint * node.ops.exp(data / alpha)),)


def gelu(node: Reverse, /) -> Adjoints:
    mode = {"none": "erf", "tanh": "tanh"}[node.attributes["approximate"]]
    return by_openvino_rule("Gelu", node, node.inputs, {"approximation_mode": mode})


def swish(node: Reverse, /) -> Adjoints:
    data, alpha = node.inputs[0], float(node.attributes["alpha"])
    open_ = node.ops.sigmoid(data * alpha)
    return (node.adjoint * (open_ + data * alpha * open_ * (1.0 - open_)),)


def hard_sigmoid(node: Reverse, /) -> Adjoints:
    result, alpha = node.outputs[0], float(node.attributes["alpha"])
    between = node.ops.logical_and(result > 0.0, result < 1.0)
    return (node.where(between, node.adjoint * alpha),)


def thresholded_relu(node: Reverse, /) -> Adjoints:
    return (node.where(node.inputs[0] > float(node.attributes["alpha"]), node.adjoint),)


def shrink(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the elements beyond the threshold, which are only moved, and 0 for the
    rest.
    """
    data, threshold = node.inputs[0], float(node.attributes["lambd"])
    beyond = node.ops.logical_or(data > threshold, data < -threshold)
    return (node.where(beyond, node.adjoint),)


def along_the_rest(logarithm: bool, node: Reverse) -> Adjoints:
    """Return the adjoint for Softmax or LogSoftmax before opset 13, over all axes from ``axis``."""
    data, result = node.inputs[0], node.outputs[0]
    if data.rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    first = 1 if node.attributes["axis"] is None else int(node.attributes["axis"])
    axes = np.arange(first % data.rank if first < 0 else first, data.rank)
    if not axes.size:
        return (node.zeros_like(data),)
    if logarithm:
        return (
            node.adjoint
            - node.ops.exp(result) * node.ops.reduce_sum(node.adjoint, axes, keep_dims=True),
        )
    return (
        result * (node.adjoint - node.ops.reduce_sum(node.adjoint * result, axes, keep_dims=True)),
    )


def einsum(node: Reverse, /) -> Adjoints:
    return by_openvino_rule("Einsum", node, node.inputs, {"equation": node.attributes["equation"]})


def sum_of_squares(spread: Gradient) -> Gradient:
    """Return the derivative of a sum of squares. ``spread`` is the derivative of the sum over the
    same axes, which passes each sum's adjoint to its elements.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        of_sum, *rest = spread(node)
        return [None if of_sum is None else of_sum * node.inputs[0] * 2.0, *rest]

    return gradient


def logarithm_of_sum(spread: Gradient) -> Gradient:
    """Return the derivative of a logarithm of a sum; ``spread`` as for ``sum_of_squares``."""

    def gradient(node: Reverse, /) -> Adjoints:
        return spread(replace(node, adjoints=(node.adjoint / node.ops.exp(node.outputs[0]),)))

    return gradient


def logarithm_of_exponentials(spread: Gradient) -> Gradient:
    """Return the derivative of a logarithm of a sum of powers; ``spread`` as for
    ``sum_of_squares``. Each element receives its share of the sum, which cannot overflow.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        of_sum, *rest = spread(node)
        whole = spread(replace(node, adjoints=node.outputs))[0]
        part = (
            None
            if of_sum is None or whole is None
            else of_sum * node.ops.exp(node.inputs[0] - whole)
        )
        return [part, *rest]

    return gradient


def cumulative_product(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the data. An element takes part in all products behind it, multiplied
    by the other elements. Two scans, one in each direction, need no division, so zeros are not
    special.
    """
    data, along = node.inputs
    axis, rank = whole_number(along, "axis"), data.rank
    if rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    order = [axis % rank, *(unit for unit in range(rank) if unit != axis % rank)]
    elements, adjoint = (node.ops.transpose(unit, np.array(order)) for unit in (data, node.adjoint))
    turned, exclusive = bool(node.attributes["reverse"]), bool(node.attributes["exclusive"])
    first = node.ops.gather(elements, np.array(0), np.array(0), batch_dims=0)
    unit, zero = node.filled(1, first), node.zeros_like(first)

    def gathered(
        state: tuple[Value, Value], elements_and_adjoint: tuple[Value, Value]
    ) -> tuple[Value, Value]:
        behind, (element, adjoint) = state[1], elements_and_adjoint
        return (
            (behind, adjoint + element * behind)
            if exclusive
            else (adjoint + behind, element * (adjoint + behind))
        )

    before = node.scan(
        lambda products, element: (products[1], products[1] * element),
        elements,
        (unit, unit),
        turned,
    )[0]
    behind = node.scan(gathered, (elements, adjoint), (zero, zero), not turned)[0]
    return node.ops.transpose(before * behind, np.argsort(order)), None


def determinant(node: Reverse, /) -> Adjoints:
    """Return the cofactor of each element: the determinant times the transposed inverse. For a
    singular matrix the result is NaN.
    """
    ends = np.array([-2, -1])
    cofactors = node.ops.unsqueeze(node.outputs[0], ends) * node.ops.inverse(
        node.inputs[0], adjoint=True
    )
    return (node.ops.unsqueeze(node.adjoint, ends) * cofactors,)


def modulo(node: Reverse, /) -> Adjoints:
    """Return the adjoints for a remainder with the sign of the dividend (``fmod``) or of the
    divisor.
    """
    return by_openvino_rule("Mod" if node.attributes["fmod"] else "FloorMod", node, node.inputs, {})


def one_hot(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the values: for the first one the sum over all other positions, for the
    second one the sum over the chosen positions.
    """
    places, depth, values = node.inputs
    hot = node.ops.one_hot(
        places,
        node.ops.convert(node.reshaped_to(depth, ()), destination_type="i64"),
        True,
        False,
        axis=node.attributes["axis"],
    )
    flat = np.array([-1])
    sums = [
        node.ops.reduce_sum(
            node.ops.reshape(node.where(chosen, node.adjoint), flat, special_zero=False),
            np.array([0]),
            keep_dims=True,
        )
        for chosen in (node.ops.logical_not(hot), hot)
    ]
    return None, None, node.reshaped(node.ops.concat(*sums, axis=0), values)


def compress(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the data: that of the chosen elements, and 0 for the rest."""
    data, chosen = node.inputs
    places = node.ops.squeeze(node.ops.non_zero(chosen), np.array([0]))
    axis = node.attributes["axis"]
    line = data if axis is not None else node.ops.reshape(data, np.array([-1]), special_zero=False)
    of_line = openvino_adjoints(
        "Gather",
        node,
        (line, places, node.constant(np.array(axis or 0, np.int64))),
        {"batch_dims": 0},
        INDICES_INSIDE,
    )[0]
    return None if of_line is None else node.reshaped(of_line, data), None
