"""Arithmetic of one tensor: each element by itself, in the input's element type."""

from __future__ import annotations

import numpy as np
from scipy import special

from engine.ops.declare import Array, Attribute, Operation
from engine.ops.elements import COMPUTED, COMPUTED_FLOATS, INTEGER_DTYPES, elementwise, own_type, through_float
from engine.ops.infer import same

arccos = elementwise(np.arccos, "Inverse cosine of each element.")
arccosh = elementwise(np.arccosh, "Inverse hyperbolic cosine of each element.")
arcsin = elementwise(np.arcsin, "Inverse sine of each element.")
arcsinh = elementwise(np.arcsinh, "Inverse hyperbolic sine of each element.")
arctan = elementwise(np.arctan, "Inverse tangent of each element.")
arctanh = elementwise(np.arctanh, "Inverse hyperbolic tangent of each element.")
ceiling = elementwise(np.ceil, "Least integer not below each element.")
cos = elementwise(np.cos, "Cosine of each element, in radians.")
cosh = elementwise(np.cosh, "Hyperbolic cosine of each element.")
floor = elementwise(np.floor, "Greatest integer not above each element.")
log = elementwise(np.log, "Natural logarithm of each element.")
sin = elementwise(np.sin, "Sine of each element, in radians.")
sinh = elementwise(np.sinh, "Hyperbolic sine of each element.")
square_root = elementwise(np.sqrt, "Square root of each element.")
tan = elementwise(np.tan, "Tangent of each element, in radians.")
tanh = elementwise(np.tanh, "Hyperbolic tangent of each element.")


def absolute(data: Array, /) -> Array:
    """Magnitude of each element. Page arithmetic/abs-1."""
    return own_type(abs(data), data.dtype)


def negative(data: Array, /) -> Array:
    """Each element with the other sign; unsigned integers wrap. Page arithmetic/negative-1."""
    return own_type(-data, data.dtype)


def sign(data: Array, /) -> Array:
    """-1, 0 or 1 for each element; NaN stays NaN. Page arithmetic/sign-1."""
    return own_type(np.sign(data), data.dtype)


@through_float
def erf(data: Array, /) -> Array:
    """Gauss error function of each element. Page arithmetic/erf-1."""
    return special.erf(data)


@through_float
def erfinv(data: Array, /) -> Array:
    """Inverse of the Gauss error function of each element. Page arithmetic/erfinv-17."""
    return special.erfinv(data)


def rounded(data: Array, /, *, mode: str = "half_to_even") -> Array:
    """Nearest integer to each element; ``mode`` says where halves go. Page arithmetic/round-5."""
    if data.dtype in INTEGER_DTYPES:
        return data
    if mode == "half_to_even":
        return np.rint(data)
    # trunc(x + 0.5) would be wrong for the float just below 0.5.
    whole = np.trunc(data)
    return whole + np.copysign((abs(data - whole) >= 0.5).astype(data.dtype), data)


_ROUNDING = Attribute("mode", "str", "half_to_even", allowed=("half_to_even", "half_away_from_zero"))

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="Abs",
        version=1,
        opsets=(1, 16),
        page="arithmetic/abs-1",
        kernel=absolute,
        infer=same,
        types=(COMPUTED,),
        float_symbol="abs({0})",
    ),
    Operation(
        name="Acos",
        version=1,
        opsets=(1, 16),
        page="arithmetic/acos-1",
        kernel=arccos,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.arccos({0})",
    ),
    Operation(
        name="Acosh",
        version=4,
        opsets=(4, 16),
        page="arithmetic/acosh-3",
        kernel=arccosh,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.arccosh({0})",
    ),
    Operation(
        name="Asin",
        version=1,
        opsets=(1, 16),
        page="arithmetic/asin-1",
        kernel=arcsin,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.arcsin({0})",
    ),
    Operation(
        name="Asinh",
        version=4,
        opsets=(4, 16),
        page="arithmetic/asinh-3",
        kernel=arcsinh,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.arcsinh({0})",
    ),
    Operation(
        name="Atan",
        version=1,
        opsets=(1, 16),
        page="arithmetic/atan-1",
        kernel=arctan,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.arctan({0})",
    ),
    Operation(
        name="Atanh",
        version=4,
        opsets=(4, 16),
        page="arithmetic/atanh-3",
        kernel=arctanh,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.arctanh({0})",
    ),
    Operation(
        name="Ceiling",
        version=1,
        opsets=(1, 16),
        page="arithmetic/ceiling-1",
        kernel=ceiling,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.ceil({0})",
    ),
    Operation(
        name="Cos",
        version=1,
        opsets=(1, 16),
        page="arithmetic/cos-1",
        kernel=cos,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.cos({0})",
    ),
    Operation(
        name="Cosh",
        version=1,
        opsets=(1, 16),
        page="arithmetic/cosh-1",
        kernel=cosh,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.cosh({0})",
    ),
    Operation(name="Erf", version=1, opsets=(1, 16), page="arithmetic/erf-1", kernel=erf, infer=same, types=(COMPUTED,)),
    Operation(name="ErfInv", version=17, opsets=(17, 17), page="arithmetic/erfinv-17", kernel=erfinv, infer=same, types=(COMPUTED_FLOATS,)),
    Operation(
        name="Floor",
        version=1,
        opsets=(1, 16),
        page="arithmetic/floor-1",
        kernel=floor,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.floor({0})",
    ),
    Operation(
        name="Log",
        version=1,
        opsets=(1, 16),
        page="arithmetic/log-1",
        kernel=log,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.log({0})",
    ),
    Operation(
        name="Negative",
        version=1,
        opsets=(1, 16),
        page="arithmetic/negative-1",
        kernel=negative,
        infer=same,
        types=(COMPUTED,),
        float_symbol="-{0}",
    ),
    Operation(
        name="Round",
        version=5,
        opsets=(5, 16),
        page="arithmetic/round-5",
        kernel=rounded,
        infer=same,
        attributes=(_ROUNDING,),
        types=(COMPUTED,),
    ),
    Operation(
        name="Sign",
        version=1,
        opsets=(1, 16),
        page="arithmetic/sign-1",
        kernel=sign,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.sign({0})",
    ),
    Operation(
        name="Sin",
        version=1,
        opsets=(1, 16),
        page="arithmetic/sin-1",
        kernel=sin,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.sin({0})",
    ),
    Operation(
        name="Sinh",
        version=1,
        opsets=(1, 16),
        page="arithmetic/sinh-1",
        kernel=sinh,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.sinh({0})",
    ),
    Operation(
        name="Sqrt",
        version=1,
        opsets=(1, 16),
        page="arithmetic/sqrt-1",
        kernel=square_root,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.sqrt({0})",
    ),
    Operation(
        name="Tan",
        version=1,
        opsets=(1, 16),
        page="arithmetic/tan-1",
        kernel=tan,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.tan({0})",
    ),
    Operation(
        name="Tanh",
        version=1,
        opsets=(1, 16),
        page="arithmetic/tanh-1",
        kernel=tanh,
        infer=same,
        types=(COMPUTED,),
        float_symbol="np.tanh({0})",
    ),
)
