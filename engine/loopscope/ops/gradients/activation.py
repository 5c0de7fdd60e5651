"""Derivatives of activations, at the output where that is cheaper."""

from __future__ import annotations

import math

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value, elementwise

exponential = elementwise(lambda at: at.outputs[0])
hsigmoid = elementwise(
    lambda at: at.where(_between(at, at.inputs[0], -3.0, 3.0), at.filled(1 / 6, at.inputs[0]))
)
"""0 at both bounds, as PyTorch has it."""
sigmoid = elementwise(lambda at: at.outputs[0] * (1.0 - at.outputs[0]))
softplus = elementwise(lambda at: at.ops.sigmoid(at.inputs[0]))


def relu(at: Reverse, /) -> Adjoints:
    """The adjoint where the input is positive; 0 at 0, as every framework has it."""
    return (at.where(at.inputs[0] > 0.0, at.adjoint),)


def identity(at: Reverse, /) -> Adjoints:
    """The adjoint as it is."""
    return (at.adjoint,)


def clamp(at: Reverse, /) -> Adjoints:
    """The adjoint where nothing was cut; at the bounds too, as PyTorch has it."""
    data = at.inputs[0]
    inside = at.ops.logical_and(data >= at.attributes["min"], data <= at.attributes["max"])
    return (at.where(inside, at.adjoint),)


def elu(at: Reverse, /) -> Adjoints:
    """``alpha`` at 0, as PyTorch has it."""
    slope = at.ops.select(
        at.inputs[0] > 0.0, at.filled(1, at.inputs[0]), at.outputs[0] + at.attributes["alpha"]
    )
    return (at.adjoint * slope,)


def selu(at: Reverse, /) -> Adjoints:
    """``scale alpha`` at 0, as PyTorch has it; ``alpha`` and ``scale`` sum over all elements."""
    data, alpha, scale = at.inputs[0], _scalar(at, at.inputs[1]), _scalar(at, at.inputs[2])
    positive, shrunk = data > 0.0, at.ops.elu(data, alpha=1.0)
    slope = at.ops.select(positive, at.filled(1, data), alpha * (shrunk + 1.0))
    scaled = at.adjoint * scale
    of_alpha = at.where(at.ops.logical_not(positive), scaled * shrunk)
    of_scale = at.adjoint * at.ops.select(positive, data, alpha * shrunk)
    return scaled * slope, _total(at, of_alpha, at.inputs[1]), _total(at, of_scale, at.inputs[2])


@elementwise
def gelu(at: Reverse) -> Value:
    """Of both forms: the normal distribution function, and the formula by tanh."""
    data = at.inputs[0]
    if at.attributes.get("approximation_mode", "erf") == "erf":
        density = at.ops.exp(data * data * -0.5) * (1 / math.sqrt(2 * math.pi))
        return (at.ops.erf(data * math.sqrt(0.5)) + 1.0) * 0.5 + data * density
    square = data * data
    bent = at.ops.tanh(data * (square * 0.044715 + 1.0) * math.sqrt(2 / math.pi))
    inner = (square * (3 * 0.044715) + 1.0) * math.sqrt(2 / math.pi)
    return (bent + 1.0) * 0.5 + data * (1.0 - bent * bent) * inner * 0.5


@elementwise
def mish(at: Reverse) -> Value:
    """At the tanh of the softplus."""
    bent = at.ops.tanh(at.ops.soft_plus(at.inputs[0]))
    return bent + at.inputs[0] * (1.0 - bent * bent) * at.ops.sigmoid(at.inputs[0])


@elementwise
def softsign(at: Reverse) -> Value:
    """1 at 0."""
    whole = at.ops.abs(at.inputs[0]) + 1.0
    return 1.0 / (whole * whole)


def swish(at: Reverse, /) -> Adjoints:
    """``beta`` sums over all elements."""
    data = at.inputs[0]
    beta = (
        _scalar(at, at.inputs[1]) if len(at.inputs) > 1 else at.constant(np.ones((), _dtype(data)))
    )
    gate = at.ops.sigmoid(data * beta)
    bend = data * gate * (1.0 - gate)
    of_data = at.adjoint * (gate + beta * bend)
    return (
        (of_data,)
        if len(at.inputs) == 1
        else (of_data, _total(at, at.adjoint * data * bend, at.inputs[1]))
    )


@elementwise
def hswish(at: Reverse) -> Value:
    """0 at -3 and 1 at 3, as PyTorch has it."""
    data = at.inputs[0]
    rising = at.ops.select(data >= 3.0, at.filled(1, data), data * (1 / 3) + 0.5)
    return at.where(data > -3.0, rising)


def hard_sigmoid(at: Reverse, /) -> Adjoints:
    """0 at both bounds; ``alpha`` and ``beta`` sum over all elements."""
    data, alpha, beta = at.inputs[0], _scalar(at, at.inputs[1]), _scalar(at, at.inputs[2])
    inside = at.where(_between(at, data * alpha + beta, 0.0, 1.0), at.adjoint)
    return inside * alpha, _total(at, inside * data, at.inputs[1]), _total(at, inside, at.inputs[2])


def prelu(at: Reverse, /) -> Adjoints:
    """The slope at 0, as PyTorch has it."""
    data, slope = at.inputs
    if data.rank is None or slope.rank is None:
        raise ValueError(
            f"the ranks of data and slope are not known ({data.shape} and {slope.shape}): give the model's inputs their ranks"
        )
    fitted = slope
    if slope.rank == 1 and data.rank > 2:
        fitted = at.ops.reshape(slope, _of_channels(at, data, slope), special_zero=False)
    positive = data > 0.0
    of_slope = at.where(at.ops.logical_not(positive), at.adjoint * data)
    of_data = at.adjoint * at.ops.select(positive, at.filled(1, data), fitted)
    return of_data, at.reshaped(at.sum_to(of_slope, fitted), slope)


def _of_channels(at: Reverse, data: Value, slope: Value) -> Value:
    """The shape of one value for each channel where there are as many, else for each place along
    the last axis.
    """
    ops, rank = at.ops, data.rank or 0
    channels = np.array([1, -1, *[1] * (rank - 2)])
    channel = ops.gather(at.shape_of(data), np.array([1]), np.array(0), batch_dims=0)
    return ops.select(
        ops.equal(at.shape_of(slope), channel), channels, np.array([*[1] * (rank - 1), -1])
    )


def softmax(at: Reverse, /) -> Adjoints:
    """Along the axis the shares sum to 1, so that what raises all of them alike changes nothing."""
    shares = at.outputs[0]
    weighted = at.adjoint * shares
    return (
        weighted
        - shares * at.ops.reduce_sum(weighted, np.array([at.attributes["axis"]]), keep_dims=True),
    )


def log_softmax(at: Reverse, /) -> Adjoints:
    """As of SoftMax, at the logarithms."""
    total = at.ops.reduce_sum(at.adjoint, np.array([at.attributes["axis"]]), keep_dims=True)
    return (at.adjoint - at.ops.exp(at.outputs[0]) * total,)


def _between(at: Reverse, data: Value, low: float, high: float) -> Value:
    return at.ops.logical_and(data > low, data < high)


def _scalar(at: Reverse, value: Value) -> Value:
    """One element as a scalar."""
    return (
        value
        if value.rank == 0
        else at.ops.reshape(value, np.zeros(0, np.int64), special_zero=False)
    )


def _total(at: Reverse, adjoint: Value, like: Value) -> Value:
    """The sum of all elements in the shape of a tensor of one element."""
    row = at.ops.reshape(adjoint, np.array([-1]), special_zero=False)
    return at.reshaped(at.ops.reduce_sum(row, np.array([0]), keep_dims=False), like)


def _dtype(value: Value) -> np.dtype:
    return value.element_type.dtype if value.element_type else np.dtype(np.float32)
