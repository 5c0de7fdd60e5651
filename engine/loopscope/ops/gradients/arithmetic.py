"""Derivatives of arithmetic operations: broadcast operands sum their adjoint to their own shape."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value, elementwise

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
