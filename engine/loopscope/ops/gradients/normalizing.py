"""Derivatives of normalizations: what moves or stretches all elements alike changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value


def mvn(at: Reverse, /) -> Adjoints:
    """Mean and variance over the spatial axes, the channels or the axes that are named."""
    rank = at.inputs[0].rank
    axes = at.attributes["reduction_axes"]
    if not axes:
        if rank is None:
            raise ValueError(
                "the rank of the data is not known: give the model's inputs their ranks"
            )
        axes = range(1 if at.attributes["across_channels"] else 2, rank)
    return (_standardized(at, np.array(axes, np.int64), "inside_sqrt"),)


def mvn_with_axes(at: Reverse, /) -> Adjoints:
    """Mean and variance over the axes that are the second input."""
    return _standardized(at, at.inputs[1], at.attributes["eps_mode"].lower()), None


def _standardized(at: Reverse, axes: Value | np.ndarray, eps_mode: str) -> Value:
    def mean(value: Value) -> Value:
        return at.ops.reduce_mean(value, axes, keep_dims=True)

    if not at.attributes["normalize_variance"]:
        return at.adjoint - mean(at.adjoint)
    data, result, epsilon = at.inputs[0], at.outputs[0], float(at.attributes["eps"])
    centred = data - mean(data)
    variance = mean(centred * centred)
    if eps_mode == "inside_sqrt":
        spread = at.ops.sqrt(variance + epsilon)
        return _without_mean(mean, (at.adjoint - result * mean(at.adjoint * result)) / spread)
    # Of elements that are all equal the root of the variance has no derivative; they are 0 after
    # they are centred.
    some = variance > 0.0
    root = at.ops.sqrt(at.ops.select(some, variance, at.filled(1, variance)))
    spread = at.where(some, root) + epsilon
    return _without_mean(
        mean, (at.adjoint - centred * at.where(some, mean(at.adjoint * result) / root)) / spread
    )


def _without_mean(mean: Callable[[Value], Value], value: Value) -> Value:
    return value - mean(value)


def normalize_l2(at: Reverse, /) -> Adjoints:
    """Along the axes; with no axes it gives ones, which are flat. Where ``eps`` is the greater,
    the length is ``eps``'s root.
    """
    data, axes = at.inputs
    if axes.shape.is_static and 0 in axes.shape.lengths:
        return None, None
    epsilon, squares = (
        float(at.attributes["eps"]),
        at.ops.reduce_sum(data * data, axes, keep_dims=True),
    )
    if at.attributes["eps_mode"] == "add":
        return _by_length(at, at.ops.sqrt(squares + epsilon), axes), None
    long = squares >= epsilon
    length = at.ops.sqrt(at.ops.select(long, squares, at.filled(epsilon, squares)))
    turned = at.outputs[0] * at.ops.reduce_sum(at.adjoint * at.outputs[0], axes, keep_dims=True)
    return (at.adjoint - at.where(long, turned)) / length, None


def grn(at: Reverse, /) -> Adjoints:
    """By the length along the channels."""
    data, channels = at.inputs[0], np.array([1])
    squares = at.ops.reduce_sum(data * data, channels, keep_dims=True)
    return (_by_length(at, at.ops.sqrt(squares + float(at.attributes["bias"])), channels),)


def _by_length(at: Reverse, length: Value, axes: Value | np.ndarray) -> Value:
    turned = at.outputs[0] * at.ops.reduce_sum(at.adjoint * at.outputs[0], axes, keep_dims=True)
    return (at.adjoint - turned) / length


def batch_norm(at: Reverse, /) -> Adjoints:
    """All five inputs have a derivative; gamma, beta, mean and variance sum over everything but
    the channels.
    """
    return _batch_norm(at, *at.inputs)


def batch_norm_1(at: Reverse, /) -> Adjoints:
    """As of version 5; the data comes first or third: it alone has more axes."""
    first, second, third, mean, variance = at.inputs
    if (third.rank or 0) > (first.rank or 0):
        of_data, of_gamma, of_beta, *rest = _batch_norm(at, third, first, second, mean, variance)
        return of_gamma, of_beta, of_data, *rest
    return _batch_norm(at, *at.inputs)


def _batch_norm(
    at: Reverse, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value
) -> list[Value]:
    rank = data.rank
    if rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    shape = np.array([1, -1, *[1] * (rank - 2)])
    others = np.array([axis for axis in range(rank) if axis != 1])

    def each(value: Value) -> Value:
        return at.ops.reshape(value, shape, special_zero=False)

    def total(value: Value) -> Value:
        return at.ops.reduce_sum(value, others, keep_dims=False)

    shrunk = 1.0 / at.ops.sqrt(variance + float(at.attributes["epsilon"]))
    of_beta = total(at.adjoint)
    of_gamma = total(at.adjoint * (data - each(mean))) * shrunk
    of_data = at.adjoint * each(gamma * shrunk)
    return [
        of_data,
        of_gamma,
        of_beta,
        -(of_beta * gamma * shrunk),
        of_gamma * gamma * shrunk * shrunk * -0.5,
    ]


def group_normalization(at: Reverse, /) -> Adjoints:
    """Each group of channels as one row; scale and bias sum over everything but the channels."""
    data, scale, _ = at.inputs
    rank = data.rank
    if rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    others, row = np.array([axis for axis in range(rank) if axis != 1]), np.array([2])
    each, groups = (
        np.array([1, -1, *[1] * (rank - 2)]),
        np.array([0, at.attributes["num_groups"], -1]),
    )

    def mean(value: Value) -> Value:
        return at.ops.reduce_mean(value, row, keep_dims=True)

    rows = at.ops.reshape(data, groups, special_zero=True)
    centred = rows - mean(rows)
    spread = at.ops.sqrt(mean(centred * centred) + float(at.attributes["epsilon"]))
    standard = centred / spread
    scaled = at.adjoint * at.ops.reshape(scale, each, special_zero=False)
    adjoint = at.ops.reshape(scaled, groups, special_zero=True)
    of_rows = _without_mean(mean, (adjoint - standard * mean(adjoint * standard)) / spread)
    of_scale = at.ops.reduce_sum(at.adjoint * at.reshaped(standard, data), others, keep_dims=False)
    return (
        at.reshaped(of_rows, data),
        of_scale,
        at.ops.reduce_sum(at.adjoint, others, keep_dims=False),
    )
