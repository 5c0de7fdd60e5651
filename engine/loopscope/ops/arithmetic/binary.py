"""Arithmetic of two tensors: the spec's formulas in the element type that both inputs share."""

from __future__ import annotations

import operator

import numpy as np

from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.elementwise_kernels import (
    AUTO_BROADCAST,
    COMPUTED,
    INTEGER_DTYPES,
    as_numbers,
    binary,
    fit_operand,
    own_type,
)
from loopscope.ops.family import family
from loopscope.ops.gradients import elementwise as gradients
from loopscope.ops.infer import elementwise

add = binary(operator.add, "Add two tensors.")
subtract = binary(operator.sub, "Subtract the second tensor from the first.")
multiply = binary(operator.mul, "Multiply two tensors.")


def divide(
    left: Array, right: Array, /, *, auto_broadcast: str = "numpy", m_pythondiv: bool = True
) -> Array:
    """Divide two tensors; integers are rounded down, or towards zero if ``m_pythondiv`` is false.

    Raise ``ValueError`` for an integer divided by zero, which the spec leaves undefined and
    OpenVINO does not accept. Page arithmetic/divide-1.
    """
    if auto_broadcast != "numpy":
        right = fit_operand(left, right, auto_broadcast)
    if left.dtype.kind == "f" or left.dtype not in INTEGER_DTYPES:
        return left / right
    refuse_zeros(right)
    left, right, dtype = as_numbers(left), as_numbers(right), left.dtype
    quotient = left // right
    if not m_pythondiv and dtype.kind != "u":
        quotient = quotient + ((quotient < 0) & (quotient * right != left))
    return own_type(quotient, dtype)


def floor_mod(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Return the remainder of a division rounded down, with the sign of the divisor.

    Raise ``ValueError`` for an integer divided by zero. Page arithmetic/floormod-1.
    """
    if auto_broadcast != "numpy":
        right = fit_operand(left, right, auto_broadcast)
    if left.dtype.kind != "f" and left.dtype in INTEGER_DTYPES:
        refuse_zeros(right)
    return left % right


def mod(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Return the remainder of a division rounded towards zero, with the sign of the dividend.

    Raise ``ValueError`` for an integer divided by zero. Page arithmetic/mod-1.
    """
    if auto_broadcast != "numpy":
        right = fit_operand(left, right, auto_broadcast)
    if left.dtype.kind != "f" and left.dtype in INTEGER_DTYPES:
        refuse_zeros(right)
    return own_type(np.fmod(as_numbers(left), as_numbers(right)), left.dtype)


def power(base: Array, exponent: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Raise the first tensor to the power of the second; integers are truncated.

    Page arithmetic/power-1.
    """
    if auto_broadcast != "numpy":
        exponent = fit_operand(base, exponent, auto_broadcast)
    if base.dtype in INTEGER_DTYPES:
        return _integer_power(base, exponent)
    if exponent.size == 1 and exponent.ndim <= base.ndim:
        # np.power took up to 40% of a transformer's run for exponents 2 and 3.
        constant = exponent.item()
        if constant == 2:
            return base * base
        if constant == 3:
            return base * base * base
    return np.power(base, exponent)


def _integer_power(base: Array, exponent: Array) -> Array:
    numbers, exponents = as_numbers(base), as_numbers(exponent)
    if exponents.dtype.kind == "u" or (exponents >= 0).all():
        return own_type(np.power(numbers, exponents), base.dtype)
    # Only 1 and -1 have an integer inverse; a fraction truncates to 0, and the inverse of 0 is
    # an error.
    negative = exponents < 0
    if (negative & (numbers == 0)).any():
        raise ValueError("0 to a negative power is not an integer")
    powers = np.power(numbers, np.where(negative, exponents & 1, exponents))
    inverse = np.where(np.abs(numbers) == 1, powers, 0)
    return own_type(np.where(negative, inverse, powers).astype(numbers.dtype), base.dtype)


def maximum(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Return the greater of two tensors; NaN where either is NaN.

    Page arithmetic/maximum-1.
    """
    if auto_broadcast != "numpy":
        right = fit_operand(left, right, auto_broadcast)
    return own_type(np.maximum(left, right), left.dtype)


def minimum(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Return the lesser of two tensors; NaN where either is NaN.

    Page arithmetic/minimum-1.
    """
    if auto_broadcast != "numpy":
        right = fit_operand(left, right, auto_broadcast)
    return own_type(np.minimum(left, right), left.dtype)


def squared_difference(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Square the difference of two tensors.

    Page arithmetic/squared-difference-1.
    """
    if auto_broadcast != "numpy":
        right = fit_operand(left, right, auto_broadcast)
    difference = left - right
    return difference * difference


def refuse_zeros(divisor: Array) -> None:
    """Raise ``ValueError`` if an integer would be divided by zero."""
    # Testing a scalar takes 8 ns, its all() 600 ns.
    if not (divisor if divisor.ndim == 0 else divisor.all()):
        raise ValueError(
            f"integer division by zero: {int((divisor == 0).sum())} of {divisor.size} "
            "divisors are 0"
        )


_PYTHON_DIVISION = Attribute("m_pythondiv", "bool", True)
GREATER, LESSER = "{0} if {0} >= {1} else {1}", "{0} if {0} <= {1} else {1}"
"""Expressions for the greater and the lesser of two integers."""
_NUMPY = {"auto_broadcast": "numpy"}

row = family(
    "arithmetic",
    infer=elementwise,
    inputs=(2, 2),
    attributes=(AUTO_BROADCAST,),
    types=(COMPUTED,),
    symbol_when=_NUMPY,
)

OPERATIONS: tuple[Operation, ...] = (
    row("Add", add, symbol="{0} + {1}", gradient=gradients.add),
    row(
        "Divide",
        divide,
        attributes=(_PYTHON_DIVISION, AUTO_BROADCAST),
        float_symbol="{0} / {1}",
        integer_symbol="{0} // {1}",
        integer_symbol_when={"m_pythondiv": True},
        gradient=gradients.divide,
    ),
    row(
        "FloorMod",
        floor_mod,
        page="arithmetic/floormod-1",
        float_symbol="{0} % {1}",
        integer_symbol="{0} % {1}",
        gradient=gradients.floor_mod,
    ),
    row(
        "Maximum",
        maximum,
        float_symbol="np.maximum({0}, {1})",
        integer_symbol=GREATER,
        gradient=gradients.maximum,
    ),
    row(
        "Minimum",
        minimum,
        float_symbol="np.minimum({0}, {1})",
        integer_symbol=LESSER,
        gradient=gradients.minimum,
    ),
    row("Mod", mod, float_symbol="np.fmod({0}, {1})", gradient=gradients.mod),
    row("Multiply", multiply, symbol="{0} * {1}", gradient=gradients.multiply),
    row("Power", power, gradient=gradients.power),
    row(
        "SquaredDifference",
        squared_difference,
        float_symbol="np.square({0} - {1})",
        gradient=gradients.squared_difference,
    ),
    row("Subtract", subtract, symbol="{0} - {1}", gradient=gradients.subtract),
)
