"""Arithmetic of one tensor: each element separately, in the input's element type."""

from __future__ import annotations

import numpy as np

from loopscope.ops import special_functions as special
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.derivative import flat
from loopscope.ops.elementwise_kernels import (
    COMPUTED,
    COMPUTED_FLOATS,
    INTEGER_DTYPES,
    elementwise,
    own_type,
    through_float,
)
from loopscope.ops.family import family
from loopscope.ops.gradients import elementwise as gradients
from loopscope.ops.infer import same

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

row = family("arithmetic", infer=same, types=(COMPUTED,))

OPERATIONS: tuple[Operation, ...] = (
    row("Abs", absolute, float_symbol="abs({0})", gradient=gradients.absolute),
    row("Acos", arccos, float_symbol="np.arccos({0})", gradient=gradients.arccos),
    row(
        "Acosh",
        arccosh,
        version=4,
        page="arithmetic/acosh-3",
        float_symbol="np.arccosh({0})",
        gradient=gradients.arccosh,
    ),
    row("Asin", arcsin, float_symbol="np.arcsin({0})", gradient=gradients.arcsin),
    row(
        "Asinh",
        arcsinh,
        version=4,
        page="arithmetic/asinh-3",
        float_symbol="np.arcsinh({0})",
        gradient=gradients.arcsinh,
    ),
    row("Atan", arctan, float_symbol="np.arctan({0})", gradient=gradients.arctan),
    row(
        "Atanh",
        arctanh,
        version=4,
        page="arithmetic/atanh-3",
        float_symbol="np.arctanh({0})",
        gradient=gradients.arctanh,
    ),
    row("Ceiling", ceiling, float_symbol="np.ceil({0})", integer_symbol="{0}", gradient=flat),
    row("Cos", cos, float_symbol="np.cos({0})", gradient=gradients.cos),
    row("Cosh", cosh, float_symbol="np.cosh({0})", gradient=gradients.cosh),
    row("Erf", erf, gradient=gradients.erf),
    row(
        "ErfInv",
        erfinv,
        version=17,
        opsets=(17, 17),
        page="arithmetic/erfinv-17",
        types=(COMPUTED_FLOATS,),
        gradient=gradients.erfinv,
    ),
    row("Floor", floor, float_symbol="np.floor({0})", integer_symbol="{0}", gradient=flat),
    row("Log", log, float_symbol="np.log({0})", gradient=gradients.log),
    row("Negative", negative, float_symbol="-{0}", gradient=gradients.negative),
    row("Round", rounded, version=5, attributes=(_ROUNDING,), gradient=flat),
    row("Sign", sign, float_symbol="np.sign({0})", gradient=flat),
    row("Sin", sin, float_symbol="np.sin({0})", gradient=gradients.sin),
    row("Sinh", sinh, float_symbol="np.sinh({0})", gradient=gradients.sinh),
    row("Sqrt", square_root, float_symbol="np.sqrt({0})", gradient=gradients.square_root),
    row("Tan", tan, float_symbol="np.tan({0})", gradient=gradients.tan),
    row("Tanh", tanh, float_symbol="np.tanh({0})", gradient=gradients.tanh),
)
