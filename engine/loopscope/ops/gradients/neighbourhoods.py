"""Derivative of LRN: an element occurs in its own divisor and in those of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value, known_rank
from loopscope.ops.gradients.element_places import whole_numbers

_FIRST, _STEP = np.array([0]), np.array([1])


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Parameters of ``data / (bias + alpha * sum of squares) ** beta``.

    The sum has ``before`` and ``after`` neighbours along each axis.
    """

    axes: Sequence[int]
    before: int
    after: int
    alpha: float
    beta: float
    bias: float


def lrn(node: Reverse, /) -> Adjoints:
    """Return the adjoint for normalization along the axes of the second input."""
    data, axes = node.inputs
    rank, size = known_rank(data), int(node.attributes["size"])
    normalized_axes = sorted({axis % rank for axis in whole_numbers(axes, "axes")})
    reach, alpha = (size - 1) // 2, float(node.attributes["alpha"]) / size ** len(normalized_axes)
    neighbourhood = Neighbourhood(
        normalized_axes,
        reach,
        reach,
        alpha,
        float(node.attributes["beta"]),
        float(node.attributes["bias"]),
    )
    return of_normalized(node, data, neighbourhood), None


def of_normalized(node: Reverse, data: Value, neighbourhood: Neighbourhood) -> Value:
    """Return the adjoint of the data."""
    sums = (
        _sum_neighbours(
            node, data * data, neighbourhood.axes, neighbourhood.before, neighbourhood.after
        )
        * neighbourhood.alpha
        + neighbourhood.bias
    )
    pulled = _sum_neighbours(
        node,
        node.adjoint * data * sums ** (-neighbourhood.beta - 1),
        neighbourhood.axes,
        neighbourhood.after,
        neighbourhood.before,
    )
    return node.adjoint * sums**-neighbourhood.beta - data * pulled * (
        2 * neighbourhood.alpha * neighbourhood.beta
    )


def _sum_neighbours(
    node: Reverse, value: Value, axes: Sequence[int], before: int, after: int
) -> Value:
    """Sum each element with its ``before`` and ``after`` neighbours, along each axis in turn."""
    for axis in axes:
        value = _sum_along(node, value, axis, before, after)
    return value


def _sum_along(node: Reverse, value: Value, axis: int, before: int, after: int) -> Value:
    rest = [0] * (known_rank(value) - axis - 1)
    padded = node.ops.pad(
        value,
        np.array([*[0] * axis, before, *rest]),
        np.array([*[0] * axis, after, *rest]),
        pad_mode="constant",
    )
    shape = node.shape_of(padded)
    lead = node.ops.reduce_prod(
        node.ops.slice(shape, _FIRST, np.array([axis]), _STEP), _FIRST, keep_dims=True
    )
    length = node.ops.slice(shape, np.array([axis]), np.array([axis + 1]), _STEP)
    columns = node.ops.reshape(
        padded, node.ops.concat(lead, _STEP, length, np.array([-1]), axis=0), special_zero=False
    )
    window = node.filled_to(1, value, (1, 1, before + 1 + after, 1))
    sums = node.ops.convolution(
        columns, window, strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1)
    )
    return node.reshaped(sums, value)
