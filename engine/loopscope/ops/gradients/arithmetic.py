"""Derivatives of arithmetic: operands that were broadcast sum their adjoint back to their shape."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value, elementwise

Partials = Callable[[Reverse, Value, Value], tuple[Value, Value]]


def _binary(partials: Partials) -> Gradient:
    """The rule of two operands: ``partials`` gives the adjoint of each in the shape of the
    output.
    """

    def gradient(at: Reverse, /) -> Adjoints:
        left, right = at.inputs
        if at.attributes.get("auto_broadcast", "numpy") not in ("numpy", "none"):
            raise ValueError(
                f"auto_broadcast is {at.attributes['auto_broadcast']!r}: only numpy's has a derivative here"
            )
        of_left, of_right = partials(at, left, right)
        return at.sum_to(of_left, left), at.sum_to(of_right, right)

    return gradient


add = _binary(lambda at, left, right: (at.adjoint, at.adjoint))
subtract = _binary(lambda at, left, right: (at.adjoint, -at.adjoint))
multiply = _binary(lambda at, left, right: (at.adjoint * right, at.adjoint * left))
divide = _binary(
    lambda at, left, right: (at.adjoint / right, -(at.adjoint * (at.outputs[0] / right)))
)

squared_difference = _binary(
    lambda at, left, right: (at.adjoint * (left - right) * 2.0, at.adjoint * (right - left) * 2.0)
)


def _number(like: Value, number: float) -> np.ndarray:
    """A number as a scalar in the type of a tensor."""
    return np.full((), number, like.element_type.dtype if like.element_type else np.float32)


def _remainder(at: Reverse, left: Value, right: Value) -> tuple[Value, Value]:
    """The remainder is the dividend minus a whole number of divisors, and that number stays
    nearby.
    """
    times = at.ops.round((left - at.outputs[0]) / right)
    return at.adjoint, -(at.adjoint * times)


def _extreme(at: Reverse, left: Value, right: Value) -> tuple[Value, Value]:
    """The operand that was taken; where both are equal, half of the adjoint goes to each, as
    PyTorch has it.
    """
    halves = at.where(at.ops.equal(left, right), at.adjoint * 0.5)
    of_left = at.where(at.ops.equal(left, at.outputs[0]), at.adjoint) - halves
    return of_left, at.where(at.ops.equal(right, at.outputs[0]), at.adjoint) - halves


def _power(at: Reverse, base: Value, exponent: Value) -> tuple[Value, Value]:
    """Where both are 0 the base has derivative 0; of 0 to a power that is not negative the
    exponent has derivative 0. As PyTorch.
    """
    ops, zero = at.ops, _number(base, 0)
    constant = exponent.known.value
    if constant is not None and constant.size == 1:
        of_base = at.adjoint * _slope_of_power(at, base, float(constant.reshape(())))
    else:
        nothing = ops.logical_and(ops.equal(base, zero), ops.equal(exponent, zero))
        of_base = (
            at.adjoint
            * exponent
            * ops.power(base, ops.select(nothing, _number(base, 1), exponent) - 1.0)
        )
    at_zero = ops.logical_and(ops.equal(base, zero), exponent >= 0.0)
    logarithm = ops.log(ops.select(at_zero, _number(base, 1), base))
    return of_base, at.where(ops.logical_not(at_zero), at.adjoint * at.outputs[0] * logarithm)


def _slope_of_power(at: Reverse, base: Value, number: float) -> Value:
    """Of a constant power: without a logarithm, and without a power where it is simple."""
    match number:
        case 0:
            return at.zeros_like(base)
        case 1:
            return at.filled(1, base)
        case 2:
            return base * 2.0
    return at.ops.power(base, _number(base, number - 1)) * number


floor_mod = mod = _binary(_remainder)
maximum = minimum = _binary(_extreme)
power = _binary(_power)

absolute = elementwise(lambda at: at.ops.sign(at.inputs[0]))
"""0 at 0."""
arccos = elementwise(lambda at: -1.0 / at.ops.sqrt(1.0 - at.inputs[0] * at.inputs[0]))
arccosh = elementwise(
    lambda at: 1.0 / (at.ops.sqrt(at.inputs[0] - 1.0) * at.ops.sqrt(at.inputs[0] + 1.0))
)
arcsin = elementwise(lambda at: 1.0 / at.ops.sqrt(1.0 - at.inputs[0] * at.inputs[0]))
arcsinh = elementwise(lambda at: 1.0 / at.ops.sqrt(1.0 + at.inputs[0] * at.inputs[0]))
arctan = elementwise(lambda at: 1.0 / (1.0 + at.inputs[0] * at.inputs[0]))
arctanh = elementwise(lambda at: 1.0 / (1.0 - at.inputs[0] * at.inputs[0]))
cos = elementwise(lambda at: -at.ops.sin(at.inputs[0]))
cosh = elementwise(lambda at: at.ops.sinh(at.inputs[0]))
erf = elementwise(lambda at: at.ops.exp(-(at.inputs[0] * at.inputs[0])) * (2 / math.sqrt(math.pi)))
erfinv = elementwise(
    lambda at: at.ops.exp(at.outputs[0] * at.outputs[0]) * (math.sqrt(math.pi) / 2)
)
log = elementwise(lambda at: 1.0 / at.inputs[0])
sin = elementwise(lambda at: at.ops.cos(at.inputs[0]))
sinh = elementwise(lambda at: at.ops.cosh(at.inputs[0]))
square_root = elementwise(lambda at: 0.5 / at.outputs[0])
tan = elementwise(lambda at: 1.0 + at.outputs[0] * at.outputs[0])
tanh = elementwise(lambda at: 1.0 - at.outputs[0] * at.outputs[0])


def negative(at: Reverse, /) -> Adjoints:
    """The adjoint with the other sign."""
    return (-at.adjoint,)


def cumulative_sum(at: Reverse, /) -> Adjoints:
    """Each element counts in the sums behind it: sums of the adjoint from the other end."""
    turned = not at.attributes["reverse"]
    axes = at.inputs[1:] or (np.int64(0),)
    of_data = at.ops.cum_sum(
        at.adjoint, *axes, exclusive=at.attributes["exclusive"], reverse=turned
    )
    return (of_data, *[None] * (len(at.inputs) - 1))
