"""Derivatives of normalizations: over axes, by batch and group statistics, and by neighbours (LRN).

Most do not depend on a common shift or scale of all elements. An element of LRN occurs in its own
divisor and in those of its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value, known_rank
from loopscope.ops.gradients.element_places import whole_numbers


def mvn(node: Reverse, /) -> Adjoints:
    """Return the adjoint for statistics over the spatial axes, the channels or given axes."""
    rank = node.inputs[0].rank
    axes = node.attributes["reduction_axes"]
    if not axes:
        if rank is None:
            raise ValueError(
                "the rank of the data is not known: give the model's inputs their ranks"
            )
        axes = range(1 if node.attributes["across_channels"] else 2, rank)
    return (_of_standardized(node, np.array(axes, np.int64), "inside_sqrt"),)


def mvn_with_axes(node: Reverse, /) -> Adjoints:
    """Return the adjoint for mean and variance over the axes of the second input."""
    return _of_standardized(node, node.inputs[1], node.attributes["eps_mode"].lower()), None


def _of_standardized(node: Reverse, axes: Value | np.ndarray, eps_mode: str) -> Value:
    def mean(value: Value) -> Value:
        return node.ops.reduce_mean(value, axes, keep_dims=True)

    if not node.attributes["normalize_variance"]:
        return node.adjoint - mean(node.adjoint)
    data, result, epsilon = node.inputs[0], node.outputs[0], float(node.attributes["eps"])
    centred = data - mean(data)
    variance = mean(centred * centred)
    if eps_mode == "inside_sqrt":
        spread = node.ops.sqrt(variance + epsilon)
        return _subtract_mean(mean, (node.adjoint - result * mean(node.adjoint * result)) / spread)
    # If all elements are equal, the root of the variance has no derivative; the centred elements
    # are 0.
    has_variance = variance > 0.0
    root = node.ops.sqrt(node.ops.select(has_variance, variance, node.filled(1, variance)))
    spread = node.where(has_variance, root) + epsilon
    return _subtract_mean(
        mean,
        (node.adjoint - centred * node.where(has_variance, mean(node.adjoint * result) / root))
        / spread,
    )


def _subtract_mean(mean: Callable[[Value], Value], value: Value) -> Value:
    return value - mean(value)


def normalize_l2(node: Reverse, /) -> Adjoints:
    """Return the adjoint of a normalization by the length along the axes.

    Without axes the result is constant ones, so that there is nothing to pass back. Where ``eps``
    is greater, the length is the root of ``eps``.
    """
    data, axes = node.inputs
    if axes.shape.is_static and 0 in axes.shape.lengths:
        return None, None
    epsilon = float(node.attributes["eps"])
    squares = node.ops.reduce_sum(data * data, axes, keep_dims=True)
    if node.attributes["eps_mode"] == "add":
        return _by_length(node, node.ops.sqrt(squares + epsilon), axes), None
    is_regular = squares >= epsilon
    length = node.ops.sqrt(node.ops.select(is_regular, squares, node.filled(epsilon, squares)))
    projection = node.outputs[0] * node.ops.reduce_sum(
        node.adjoint * node.outputs[0], axes, keep_dims=True
    )
    return (node.adjoint - node.where(is_regular, projection)) / length, None


def grn(node: Reverse, /) -> Adjoints:
    """Return the adjoint of a normalization by the length along the channels."""
    data, channels = node.inputs[0], np.array([1])
    squares = node.ops.reduce_sum(data * data, channels, keep_dims=True)
    return (_by_length(node, node.ops.sqrt(squares + float(node.attributes["bias"])), channels),)


def _by_length(node: Reverse, length: Value, axes: Value | np.ndarray) -> Value:
    projection = node.outputs[0] * node.ops.reduce_sum(
        node.adjoint * node.outputs[0], axes, keep_dims=True
    )
    return (node.adjoint - projection) / length


def batch_norm(node: Reverse, /) -> Adjoints:
    """Return the adjoints of all five inputs.

    Those of gamma, beta, mean and variance are sums over all axes but the channels.
    """
    return _batch_norm(node, *node.inputs)


def batch_norm_1(node: Reverse, /) -> Adjoints:
    """Return the adjoints of BatchNormInference-1, whose data is the first or the third input.

    Only the data has more than one axis.
    """
    first, second, third, mean, variance = node.inputs
    if (third.rank or 0) > (first.rank or 0):
        of_data, of_gamma, of_beta, *rest = _batch_norm(node, third, first, second, mean, variance)
        return of_gamma, of_beta, of_data, *rest
    return _batch_norm(node, *node.inputs)


def _batch_norm(
    node: Reverse, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value
) -> list[Value]:
    rank = data.rank
    if rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    shape = np.array([1, -1, *[1] * (rank - 2)])
    others = np.array([axis for axis in range(rank) if axis != 1])

    def per_channel(value: Value) -> Value:
        return node.ops.reshape(value, shape, special_zero=False)

    def total(value: Value) -> Value:
        return node.ops.reduce_sum(value, others, keep_dims=False)

    inverse_deviation = 1.0 / node.ops.sqrt(variance + float(node.attributes["epsilon"]))
    of_beta = total(node.adjoint)
    of_gamma = total(node.adjoint * (data - per_channel(mean))) * inverse_deviation
    of_data = node.adjoint * per_channel(gamma * inverse_deviation)
    return [
        of_data,
        of_gamma,
        of_beta,
        -(of_beta * gamma * inverse_deviation),
        of_gamma * gamma * inverse_deviation * inverse_deviation * -0.5,
    ]


def group_normalization(node: Reverse, /) -> Adjoints:
    """Return the adjoints with each group of channels as a row.

    Scale and bias are sums over all axes but the channels.
    """
    data, scale, _ = node.inputs
    rank = data.rank
    if rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    others, row = np.array([axis for axis in range(rank) if axis != 1]), np.array([2])
    channel_shape = np.array([1, -1, *[1] * (rank - 2)])
    groups = np.array([0, node.attributes["num_groups"], -1])

    def mean(value: Value) -> Value:
        return node.ops.reduce_mean(value, row, keep_dims=True)

    rows = node.ops.reshape(data, groups, special_zero=True)
    centred = rows - mean(rows)
    spread = node.ops.sqrt(mean(centred * centred) + float(node.attributes["epsilon"]))
    standard = centred / spread
    scaled = node.adjoint * node.ops.reshape(scale, channel_shape, special_zero=False)
    adjoint = node.ops.reshape(scaled, groups, special_zero=True)
    of_rows = _subtract_mean(mean, (adjoint - standard * mean(adjoint * standard)) / spread)
    of_scale = node.ops.reduce_sum(
        node.adjoint * node.reshaped(standard, data), others, keep_dims=False
    )
    return (
        node.reshaped(of_rows, data),
        of_scale,
        node.ops.reduce_sum(node.adjoint, others, keep_dims=False),
    )


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
