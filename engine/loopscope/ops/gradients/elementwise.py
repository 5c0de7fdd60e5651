"""Derivatives of elementwise operations: activations and arithmetic.

Those of activations are computed from the output where that is cheaper. Broadcast operands sum
their adjoint to their own shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value, elementwise

exponential = elementwise(lambda node: node.outputs[0])
hsigmoid = elementwise(
    lambda node: node.where(
        _between(node, node.inputs[0], -3.0, 3.0), node.filled(1 / 6, node.inputs[0])
    )
)
"""The derivative at both bounds is 0, as in PyTorch."""
sigmoid = elementwise(lambda node: node.outputs[0] * (1.0 - node.outputs[0]))
softplus = elementwise(lambda node: node.ops.sigmoid(node.inputs[0]))


def relu(node: Reverse, /) -> Adjoints:
    """Return the adjoint where the input is positive; 0 at 0, as in every framework."""
    return (node.where(node.inputs[0] > 0.0, node.adjoint),)


def identity(node: Reverse, /) -> Adjoints:
    """Return the adjoint unchanged."""
    return (node.adjoint,)


def clamp(node: Reverse, /) -> Adjoints:
    """Return the adjoint where the input was not clipped, including the bounds, as in PyTorch."""
    data = node.inputs[0]
    inside = node.ops.logical_and(data >= node.attributes["min"], data <= node.attributes["max"])
    return (node.where(inside, node.adjoint),)


def elu(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the data; the slope at 0 is ``alpha``, as in PyTorch."""
    slope = node.ops.select(
        node.inputs[0] > 0.0,
        node.filled(1, node.inputs[0]),
        node.outputs[0] + node.attributes["alpha"],
    )
    return (node.adjoint * slope,)


def selu(node: Reverse, /) -> Adjoints:
    """Return the adjoints; the slope at 0 is ``scale alpha``, as in PyTorch.

    The adjoints of ``alpha`` and ``scale`` are sums over all elements.
    """
    data = node.inputs[0]
    alpha = _scalar(node, node.inputs[1])
    scale = _scalar(node, node.inputs[2])
    positive, shrunk = data > 0.0, node.ops.elu(data, alpha=1.0)
    slope = node.ops.select(positive, node.filled(1, data), alpha * (shrunk + 1.0))
    scaled = node.adjoint * scale
    of_alpha = node.where(node.ops.logical_not(positive), scaled * shrunk)
    of_scale = node.adjoint * node.ops.select(positive, data, alpha * shrunk)
    return (
        scaled * slope,
        _total(node, of_alpha, node.inputs[1]),
        _total(node, of_scale, node.inputs[2]),
    )


@elementwise
def gelu(node: Reverse) -> Value:
    """Return the slope of both forms: by the normal distribution function, and the tanh formula."""
    data = node.inputs[0]
    if node.attributes.get("approximation_mode", "erf") == "erf":
        density = node.ops.exp(data * data * -0.5) * (1 / math.sqrt(2 * math.pi))
        return (node.ops.erf(data * math.sqrt(0.5)) + 1.0) * 0.5 + data * density
    square = data * data
    tanh = node.ops.tanh(data * (square * 0.044715 + 1.0) * math.sqrt(2 / math.pi))
    inner = (square * (3 * 0.044715) + 1.0) * math.sqrt(2 / math.pi)
    return (tanh + 1.0) * 0.5 + data * (1.0 - tanh * tanh) * inner * 0.5


@elementwise
def mish(node: Reverse) -> Value:
    """Return the slope, computed from the tanh of the softplus."""
    tanh = node.ops.tanh(node.ops.soft_plus(node.inputs[0]))
    return tanh + node.inputs[0] * (1.0 - tanh * tanh) * node.ops.sigmoid(node.inputs[0])


@elementwise
def softsign(node: Reverse) -> Value:
    """Return the slope, which is 1 at 0."""
    divisor = node.ops.abs(node.inputs[0]) + 1.0
    return 1.0 / (divisor * divisor)


def swish(node: Reverse, /) -> Adjoints:
    """Return the adjoints; that of ``beta`` is a sum over all elements."""
    data = node.inputs[0]
    beta = (
        _scalar(node, node.inputs[1])
        if len(node.inputs) > 1
        else node.constant(np.ones((), _dtype(data)))
    )
    gate = node.ops.sigmoid(data * beta)
    slope = data * gate * (1.0 - gate)
    of_data = node.adjoint * (gate + beta * slope)
    return (
        (of_data,)
        if len(node.inputs) == 1
        else (of_data, _total(node, node.adjoint * data * slope, node.inputs[1]))
    )


@elementwise
def hswish(node: Reverse) -> Value:
    """Return the slope: 0 at -3 and 1 at 3, as in PyTorch."""
    data = node.inputs[0]
    rising = node.ops.select(data >= 3.0, node.filled(1, data), data * (1 / 3) + 0.5)
    return node.where(data > -3.0, rising)


def hard_sigmoid(node: Reverse, /) -> Adjoints:
    """Return the adjoints; the slope at both bounds is 0.

    The adjoints of ``alpha`` and ``beta`` are sums over all elements.
    """
    data, alpha, beta = node.inputs[0], _scalar(node, node.inputs[1]), _scalar(node, node.inputs[2])
    inside = node.where(_between(node, data * alpha + beta, 0.0, 1.0), node.adjoint)
    return (
        inside * alpha,
        _total(node, inside * data, node.inputs[1]),
        _total(node, inside, node.inputs[2]),
    )


def prelu(node: Reverse, /) -> Adjoints:
    """Return the adjoints; at 0, the slope input applies, as in PyTorch."""
    data, slope = node.inputs
    if data.rank is None or slope.rank is None:
        raise ValueError(
            "the ranks of data and slope are not known "
            f"({data.shape} and {slope.shape}): give the model's inputs their ranks"
        )
    aligned = slope
    if slope.rank == 1 and data.rank > 2:
        aligned = node.ops.reshape(slope, _slope_shape(node, data, slope), special_zero=False)
    positive = data > 0.0
    of_slope = node.where(node.ops.logical_not(positive), node.adjoint * data)
    of_data = node.adjoint * node.ops.select(positive, node.filled(1, data), aligned)
    return of_data, node.reshaped(node.sum_to(of_slope, aligned), slope)


def _slope_shape(node: Reverse, data: Value, slope: Value) -> Value:
    """Return the shape that aligns a vector of slopes with the data.

    It follows the channels if their number is equal, else the last axis.
    """
    ops, rank = node.ops, data.rank or 0
    channels = np.array([1, -1, *[1] * (rank - 2)])
    channel = ops.gather(node.shape_of(data), np.array([1]), np.array(0), batch_dims=0)
    return ops.select(
        ops.equal(node.shape_of(slope), channel), channels, np.array([*[1] * (rank - 1), -1])
    )


def softmax(node: Reverse, /) -> Adjoints:
    """Return the weighted adjoint minus its share: the output does not depend on a common shift."""
    shares = node.outputs[0]
    weighted = node.adjoint * shares
    return (
        weighted
        - shares
        * node.ops.reduce_sum(weighted, np.array([node.attributes["axis"]]), keep_dims=True),
    )


def log_softmax(node: Reverse, /) -> Adjoints:
    """Return the adjoint minus its share, which the exponential of the output gives."""
    total = node.ops.reduce_sum(node.adjoint, np.array([node.attributes["axis"]]), keep_dims=True)
    return (node.adjoint - node.ops.exp(node.outputs[0]) * total,)


def _between(node: Reverse, data: Value, low: float, high: float) -> Value:
    return node.ops.logical_and(data > low, data < high)


def _scalar(node: Reverse, value: Value) -> Value:
    """Reshape a tensor of one element to a scalar."""
    return (
        value
        if value.rank == 0
        else node.ops.reshape(value, np.zeros(0, np.int64), special_zero=False)
    )


def _total(node: Reverse, adjoint: Value, like: Value) -> Value:
    """Return the sum of all elements in the shape of a tensor of one element."""
    row = node.ops.reshape(adjoint, np.array([-1]), special_zero=False)
    return node.reshaped(node.ops.reduce_sum(row, np.array([0]), keep_dims=False), like)


def _dtype(value: Value) -> np.dtype:
    return value.element_type.dtype if value.element_type else np.dtype(np.float32)


Partials = Callable[[Reverse, Value, Value], tuple[Value, Value]]


def _binary(partials: Partials) -> Gradient:
    """Return the rule of two operands.

    ``partials`` returns their adjoints in the shape of the output.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        left, right = node.inputs
        if node.attributes.get("auto_broadcast", "numpy") not in ("numpy", "none"):
            raise ValueError(
                f"auto_broadcast is {node.attributes['auto_broadcast']!r}: "
                "only numpy's has a derivative here"
            )
        of_left, of_right = partials(node, left, right)
        return node.sum_to(of_left, left), node.sum_to(of_right, right)

    return gradient


add = _binary(lambda node, left, right: (node.adjoint, node.adjoint))
subtract = _binary(lambda node, left, right: (node.adjoint, -node.adjoint))
multiply = _binary(lambda node, left, right: (node.adjoint * right, node.adjoint * left))
divide = _binary(
    lambda node, left, right: (node.adjoint / right, -(node.adjoint * (node.outputs[0] / right)))
)

squared_difference = _binary(
    lambda node, left, right: (
        node.adjoint * (left - right) * 2.0,
        node.adjoint * (right - left) * 2.0,
    )
)


def _number(like: Value, number: float) -> np.ndarray:
    """Return a number as a scalar in the type of a tensor."""
    return np.full((), number, like.element_type.dtype if like.element_type else np.float32)


def _remainder(node: Reverse, left: Value, right: Value) -> tuple[Value, Value]:
    """Return the adjoints of a remainder.

    A remainder is the dividend minus a locally constant multiple of the divisor.
    """
    quotient = node.ops.round((left - node.outputs[0]) / right)
    return node.adjoint, -(node.adjoint * quotient)


def _extreme(node: Reverse, left: Value, right: Value) -> tuple[Value, Value]:
    """Pass the adjoint to the selected operand; equal operands get half each, as in PyTorch."""
    halves = node.where(node.ops.equal(left, right), node.adjoint * 0.5)
    of_left = node.where(node.ops.equal(left, node.outputs[0]), node.adjoint) - halves
    return of_left, node.where(node.ops.equal(right, node.outputs[0]), node.adjoint) - halves


def _power(node: Reverse, base: Value, exponent: Value) -> tuple[Value, Value]:
    """Return the adjoints of base and exponent, with PyTorch's values at 0.

    The base has derivative 0 where both are 0. The exponent has derivative 0 where the base is 0
    and the exponent is not negative.
    """
    ops, zero = node.ops, _number(base, 0)
    constant = exponent.known.value
    if constant is not None and constant.size == 1:
        of_base = node.adjoint * _slope_of_power(node, base, float(constant.reshape(())))
    else:
        both_zero = ops.logical_and(ops.equal(base, zero), ops.equal(exponent, zero))
        of_base = (
            node.adjoint
            * exponent
            * ops.power(base, ops.select(both_zero, _number(base, 1), exponent) - 1.0)
        )
    is_zero_power = ops.logical_and(ops.equal(base, zero), exponent >= 0.0)
    logarithm = ops.log(ops.select(is_zero_power, _number(base, 1), base))
    return of_base, node.where(
        ops.logical_not(is_zero_power), node.adjoint * node.outputs[0] * logarithm
    )


def _slope_of_power(node: Reverse, base: Value, number: float) -> Value:
    """Return the derivative of a constant power, with as few operations as possible."""
    match number:
        case 0:
            return node.zeros_like(base)
        case 1:
            return node.filled(1, base)
        case 2:
            return base * 2.0
    return node.ops.power(base, _number(base, number - 1)) * number


floor_mod = mod = _binary(_remainder)
maximum = minimum = _binary(_extreme)
power = _binary(_power)

absolute = elementwise(lambda node: node.ops.sign(node.inputs[0]))
"""The derivative at 0 is 0."""
arccos = elementwise(lambda node: -1.0 / node.ops.sqrt(1.0 - node.inputs[0] * node.inputs[0]))
arccosh = elementwise(
    lambda node: 1.0 / (node.ops.sqrt(node.inputs[0] - 1.0) * node.ops.sqrt(node.inputs[0] + 1.0))
)
arcsin = elementwise(lambda node: 1.0 / node.ops.sqrt(1.0 - node.inputs[0] * node.inputs[0]))
arcsinh = elementwise(lambda node: 1.0 / node.ops.sqrt(1.0 + node.inputs[0] * node.inputs[0]))
arctan = elementwise(lambda node: 1.0 / (1.0 + node.inputs[0] * node.inputs[0]))
arctanh = elementwise(lambda node: 1.0 / (1.0 - node.inputs[0] * node.inputs[0]))
cos = elementwise(lambda node: -node.ops.sin(node.inputs[0]))
cosh = elementwise(lambda node: node.ops.sinh(node.inputs[0]))
erf = elementwise(
    lambda node: node.ops.exp(-(node.inputs[0] * node.inputs[0])) * (2 / math.sqrt(math.pi))
)
erfinv = elementwise(
    lambda node: node.ops.exp(node.outputs[0] * node.outputs[0]) * (math.sqrt(math.pi) / 2)
)
log = elementwise(lambda node: 1.0 / node.inputs[0])
sin = elementwise(lambda node: node.ops.cos(node.inputs[0]))
sinh = elementwise(lambda node: node.ops.cosh(node.inputs[0]))
square_root = elementwise(lambda node: 0.5 / node.outputs[0])
tan = elementwise(lambda node: 1.0 + node.outputs[0] * node.outputs[0])
tanh = elementwise(lambda node: 1.0 - node.outputs[0] * node.outputs[0])


def negative(node: Reverse, /) -> Adjoints:
    """Negate the adjoint."""
    return (-node.adjoint,)


def cumulative_sum(node: Reverse, /) -> Adjoints:
    """Return the cumulative sum of the adjoint from the opposite end."""
    is_reverse = not node.attributes["reverse"]
    axes = node.inputs[1:] or (np.int64(0),)
    of_data = node.ops.cum_sum(
        node.adjoint, *axes, exclusive=node.attributes["exclusive"], reverse=is_reverse
    )
    return (of_data, *[None] * (len(node.inputs) - 1))
