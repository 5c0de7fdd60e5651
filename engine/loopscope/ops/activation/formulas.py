"""Activations that are smooth functions of each element."""

from __future__ import annotations

import math

import numpy as np

from loopscope.ir.element_type import ANY_TYPE
from loopscope.ops import special_functions as special
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.elements import COMPUTED, COMPUTED_FLOATS, elementwise, through_float
from loopscope.ops.family import family
from loopscope.ops.gradients import activation as gradients
from loopscope.ops.infer import same

exponential = elementwise(np.exp, "Raise e to the power of each element.")


@through_float
def elu(data: Array, /, *, alpha: float) -> Array:
    """Return x where x >= 0, ``alpha`` (e^x - 1) elsewhere.

    Page activation/elu-1.
    """
    return np.where(data >= 0, data, data.dtype.type(alpha) * np.expm1(np.minimum(data, 0)))


@through_float
def gelu(data: Array, /, *, approximation_mode: str = "erf") -> Array:
    """Return x times the normal distribution function at x, or its approximation by tanh.

    Page activation/gelu-7.
    """
    real = data.dtype.type
    if approximation_mode == "erf":
        return real(0.5) * data * (1 + special.erf(data * real(math.sqrt(0.5))))
    # Computed in place, because allocating a large temporary takes longer than computing it.
    inner = data * data
    inner *= real(0.044715)
    inner += 1
    inner *= data
    inner *= real(math.sqrt(2 / math.pi))
    inner = np.tanh(inner, out=inner) if isinstance(inner, np.ndarray) else np.tanh(inner)
    inner += 1
    inner *= real(0.5)
    inner *= data
    return inner


@through_float
def gelu_exact(data: Array, /) -> Array:
    """Return x times the normal distribution function at x.

    Page activation/gelu-2.
    """
    return data.dtype.type(0.5) * data * (1 + special.erf(data * data.dtype.type(math.sqrt(0.5))))


@through_float
def mish(data: Array, /) -> Array:
    """Return x tanh(ln(1 + e^x)).

    Page activation/mish-4.
    """
    # tanh(ln(1 + e)) = n / (n + 2) with n = e (e + 2); beyond 20 it is 1 in any float, and e^2
    # would overflow.
    power = np.exp(np.minimum(data, 20))
    ratio = power * (power + 2)
    return data * (ratio / (ratio + 2))


@through_float
def selu(data: Array, alpha: Array, scale: Array, /) -> Array:
    """Return ``scale`` x where x > 0, ``scale alpha`` (e^x - 1) elsewhere.

    ``scale`` and ``alpha`` are scalars or one element. Page activation/selu-1.
    """
    alpha, scale = _single(alpha, "alpha"), _single(scale, "lambda")
    return scale * np.where(data > 0, data, alpha * np.expm1(np.minimum(data, 0)))


@through_float
def sigmoid(data: Array, /) -> Array:
    """Return 1 / (1 + e^-x).

    Page activation/sigmoid-1.
    """
    return 1 / (1 + np.exp(-data))


@through_float
def softplus(data: Array, /) -> Array:
    """Return ln(1 + e^x), without overflow.

    Page activation/softplus-4.
    """
    return np.maximum(data, 0) + np.log1p(np.exp(-abs(data)))


@through_float
def softsign(data: Array, /) -> Array:
    """Return x / (1 + |x|).

    Page activation/softsign-9.
    """
    return data / (1 + abs(data))


@through_float
def swish(data: Array, beta: Array | None = None, /) -> Array:
    """Return x / (1 + e^(-beta x)); ``beta`` is a scalar or one element, 1 by default.

    Page activation/swish-4.
    """
    return data / (1 + np.exp(-data if beta is None else -data * _single(beta, "beta")))


def identity(data: Array, /) -> Array:
    """Return the input unchanged.

    Page activation/identity-16.
    """
    return data


def _single(value: Array, name: str) -> Array:
    if value.size != 1:
        raise ValueError(f"{name} has shape {value.shape}, expected one element")
    return value.reshape(())


_APPROXIMATION = Attribute("approximation_mode", "str", "erf", allowed=("erf", "tanh"))

row = family("activation", infer=same, types=(COMPUTED_FLOATS,))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Elu",
        elu,
        attributes=(Attribute("alpha", "float"),),
        types=(COMPUTED,),
        gradient=gradients.elu,
    ),
    row(
        "Exp",
        exponential,
        types=(COMPUTED,),
        float_symbol="np.exp({0})",
        gradient=gradients.exponential,
    ),
    row("Gelu", gelu_exact, version=2, opsets=(2, 6), gradient=gradients.gelu),
    row(
        "Gelu",
        gelu,
        version=7,
        attributes=(Attribute("approximation_mode", "str", "erf", allowed=("erf", "tanh")),),
        gradient=gradients.gelu,
    ),
    row(
        "Identity",
        identity,
        version=16,
        types=(ANY_TYPE,),
        symbol="{0}",
        identity=True,
        gradient=gradients.identity,
    ),
    row("Mish", mish, version=4, gradient=gradients.mish),
    row("Selu", selu, inputs=(3, 3), gradient=gradients.selu),
    row(
        "Sigmoid",
        sigmoid,
        types=(COMPUTED,),
        float_symbol="1 / (1 + np.exp(-{0}))",
        gradient=gradients.sigmoid,
    ),
    row("SoftPlus", softplus, version=4, page="activation/softplus-4", gradient=gradients.softplus),
    row("SoftSign", softsign, version=9, page="activation/softsign-9", gradient=gradients.softsign),
    row("Swish", swish, version=4, inputs=(1, 2), gradient=gradients.swish),
)
