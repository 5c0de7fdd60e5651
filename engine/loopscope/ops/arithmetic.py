"""Category arithmetic of the OpenVINO operation specs, except the operations along an axis.

Each element of one or two tensors is computed separately, in the element type of the inputs.
"""

from __future__ import annotations

import operator

import numpy as np

from loopscope.ops import special_functions as special
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.derivative import flat
from loopscope.ops.family import family
from loopscope.ops.gradients import elementwise as gradients
from loopscope.ops.infer import elementwise as infer_elementwise
from loopscope.ops.infer import same
from loopscope.ops.kernel_arithmetic import (
    AUTO_BROADCAST,
    COMPUTED,
    COMPUTED_FLOATS,
    INTEGER_DTYPES,
    as_numbers,
    binary,
    elementwise,
    fit_operand,
    own_type,
    through_float,
)

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

binary_row = family(
    "arithmetic",
    infer=infer_elementwise,
    inputs=(2, 2),
    attributes=(AUTO_BROADCAST,),
    types=(COMPUTED,),
    symbol_when=_NUMPY,
)

BINARY: tuple[Operation, ...] = (
    binary_row("Add", add, symbol="{0} + {1}", gradient=gradients.add),
    binary_row(
        "Divide",
        divide,
        attributes=(_PYTHON_DIVISION, AUTO_BROADCAST),
        float_symbol="{0} / {1}",
        integer_symbol="{0} // {1}",
        integer_symbol_when={"m_pythondiv": True},
        gradient=gradients.divide,
    ),
    binary_row(
        "FloorMod",
        floor_mod,
        page="arithmetic/floormod-1",
        float_symbol="{0} % {1}",
        integer_symbol="{0} % {1}",
        gradient=gradients.floor_mod,
    ),
    binary_row(
        "Maximum",
        maximum,
        float_symbol="np.maximum({0}, {1})",
        integer_symbol=GREATER,
        gradient=gradients.maximum,
    ),
    binary_row(
        "Minimum",
        minimum,
        float_symbol="np.minimum({0}, {1})",
        integer_symbol=LESSER,
        gradient=gradients.minimum,
    ),
    binary_row("Mod", mod, float_symbol="np.fmod({0}, {1})", gradient=gradients.mod),
    binary_row("Multiply", multiply, symbol="{0} * {1}", gradient=gradients.multiply),
    binary_row("Power", power, gradient=gradients.power),
    binary_row(
        "SquaredDifference",
        squared_difference,
        float_symbol="np.square({0} - {1})",
        gradient=gradients.squared_difference,
    ),
    binary_row("Subtract", subtract, symbol="{0} - {1}", gradient=gradients.subtract),
)


arccos = elementwise(np.arccos, "Compute the inverse cosine of each element.")
arccosh = elementwise(np.arccosh, "Compute the inverse hyperbolic cosine of each element.")
arcsin = elementwise(np.arcsin, "Compute the inverse sine of each element.")
arcsinh = elementwise(np.arcsinh, "Compute the inverse hyperbolic sine of each element.")
arctan = elementwise(np.arctan, "Compute the inverse tangent of each element.")
arctanh = elementwise(np.arctanh, "Compute the inverse hyperbolic tangent of each element.")
ceiling = elementwise(np.ceil, "Return the least integer not below each element.")
cos = elementwise(np.cos, "Compute the cosine of each element, in radians.")
cosh = elementwise(np.cosh, "Compute the hyperbolic cosine of each element.")
floor = elementwise(np.floor, "Return the greatest integer not above each element.")
log = elementwise(np.log, "Compute the natural logarithm of each element.")
sin = elementwise(np.sin, "Compute the sine of each element, in radians.")
sinh = elementwise(np.sinh, "Compute the hyperbolic sine of each element.")
square_root = elementwise(np.sqrt, "Compute the square root of each element.")
tan = elementwise(np.tan, "Compute the tangent of each element, in radians.")
tanh = elementwise(np.tanh, "Compute the hyperbolic tangent of each element.")


def absolute(data: Array, /) -> Array:
    """Return the magnitude of each element.

    Page arithmetic/abs-1.
    """
    return own_type(abs(data), data.dtype)


def negative(data: Array, /) -> Array:
    """Negate each element; unsigned integers wrap.

    Page arithmetic/negative-1.
    """
    return own_type(-data, data.dtype)


def sign(data: Array, /) -> Array:
    """Return -1, 0 or 1 for each element; NaN stays NaN.

    Page arithmetic/sign-1.
    """
    return own_type(np.sign(data), data.dtype)


@through_float
def erf(data: Array, /) -> Array:
    """Compute the Gauss error function of each element.

    Page arithmetic/erf-1.
    """
    return special.erf(data)


@through_float
def erfinv(data: Array, /) -> Array:
    """Compute the inverse of the Gauss error function of each element.

    Page arithmetic/erfinv-17.
    """
    return special.erfinv(data)


def rounded(data: Array, /, *, mode: str = "half_to_even") -> Array:
    """Round each element to the nearest integer; ``mode`` is the direction for halves.

    Page arithmetic/round-5.
    """
    if data.dtype in INTEGER_DTYPES:
        return data
    if mode == "half_to_even":
        return np.rint(data)
    # trunc(x + 0.5) would be wrong for the float just below 0.5.
    whole = np.trunc(data)
    return whole + np.copysign((abs(data - whole) >= 0.5).astype(data.dtype), data)


_ROUNDING = Attribute(
    "mode", "str", "half_to_even", allowed=("half_to_even", "half_away_from_zero")
)

unary_row = family("arithmetic", infer=same, types=(COMPUTED,))

UNARY: tuple[Operation, ...] = (
    unary_row("Abs", absolute, float_symbol="abs({0})", gradient=gradients.absolute),
    unary_row("Acos", arccos, float_symbol="np.arccos({0})", gradient=gradients.arccos),
    unary_row(
        "Acosh",
        arccosh,
        version=4,
        page="arithmetic/acosh-3",
        float_symbol="np.arccosh({0})",
        gradient=gradients.arccosh,
    ),
    unary_row("Asin", arcsin, float_symbol="np.arcsin({0})", gradient=gradients.arcsin),
    unary_row(
        "Asinh",
        arcsinh,
        version=4,
        page="arithmetic/asinh-3",
        float_symbol="np.arcsinh({0})",
        gradient=gradients.arcsinh,
    ),
    unary_row("Atan", arctan, float_symbol="np.arctan({0})", gradient=gradients.arctan),
    unary_row(
        "Atanh",
        arctanh,
        version=4,
        page="arithmetic/atanh-3",
        float_symbol="np.arctanh({0})",
        gradient=gradients.arctanh,
    ),
    unary_row("Ceiling", ceiling, float_symbol="np.ceil({0})", integer_symbol="{0}", gradient=flat),
    unary_row("Cos", cos, float_symbol="np.cos({0})", gradient=gradients.cos),
    unary_row("Cosh", cosh, float_symbol="np.cosh({0})", gradient=gradients.cosh),
    unary_row("Erf", erf, gradient=gradients.erf),
    unary_row(
        "ErfInv",
        erfinv,
        version=17,
        opsets=(17, 17),
        page="arithmetic/erfinv-17",
        types=(COMPUTED_FLOATS,),
        gradient=gradients.erfinv,
    ),
    unary_row("Floor", floor, float_symbol="np.floor({0})", integer_symbol="{0}", gradient=flat),
    unary_row("Log", log, float_symbol="np.log({0})", gradient=gradients.log),
    unary_row("Negative", negative, float_symbol="-{0}", gradient=gradients.negative),
    unary_row("Round", rounded, version=5, attributes=(_ROUNDING,), gradient=flat),
    unary_row("Sign", sign, float_symbol="np.sign({0})", gradient=flat),
    unary_row("Sin", sin, float_symbol="np.sin({0})", gradient=gradients.sin),
    unary_row("Sinh", sinh, float_symbol="np.sinh({0})", gradient=gradients.sinh),
    unary_row("Sqrt", square_root, float_symbol="np.sqrt({0})", gradient=gradients.square_root),
    unary_row("Tan", tan, float_symbol="np.tan({0})", gradient=gradients.tan),
    unary_row("Tanh", tanh, float_symbol="np.tanh({0})", gradient=gradients.tanh),
)
