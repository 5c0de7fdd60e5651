"""Category activation of the OpenVINO operation specs: smooth and piecewise linear functions of
each element, and SoftMax along an axis.

The piecewise linear functions clip or scale values outside an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE
from loopscope.ops import special_functions as special
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import elementwise as gradients
from loopscope.ops.infer import same
from loopscope.ops.kernel_arithmetic import (
    COMPUTED,
    COMPUTED_FLOATS,
    INTEGER_DTYPES,
    elementwise,
    integer_limits,
    own_type,
    through_float,
)
from loopscope.ops.kernel_checks import axis_within

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

SMOOTH: tuple[Operation, ...] = (
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


def clamp(data: Array, /, *, min: float, max: float) -> Array:
    """Clip each element to the interval from ``min`` to ``max``.

    For integers ``min`` is rounded up and ``max`` down, as the spec notes. Page activation/clamp-1.
    """
    low, high = _bounds_of_type(min, max, data.dtype)
    return own_type(np.minimum(np.maximum(data, low), high), data.dtype)


@lru_cache(maxsize=1024)
def _bounds_of_type(low: float, high: float, dtype: np.dtype) -> tuple[np.generic, np.generic]:
    """Return both bounds as scalars of the tensor's type."""
    if dtype in INTEGER_DTYPES:
        low, high = _round_bound(low, math.ceil, dtype), _round_bound(high, math.floor, dtype)
    return dtype.type(low), dtype.type(high)


def _round_bound(bound: float, rounding: Callable[[float], int], dtype: np.dtype) -> int:
    lower, upper = integer_limits(dtype)
    if bound <= lower or bound >= upper:
        return lower if bound <= lower else upper
    return rounding(bound)


@through_float
def hard_sigmoid(data: Array, alpha: Array, beta: Array, /) -> Array:
    """Return ``alpha`` x + ``beta`` clipped to 0 .. 1; both are scalars.

    Page activation/hard-sigmoid-1.
    """
    if alpha.size != 1 or beta.size != 1:
        raise ValueError(
            f"alpha and beta have shapes {alpha.shape} and {beta.shape}, expected one element each"
        )
    return np.minimum(np.maximum(data * alpha.reshape(()) + beta.reshape(()), 0), 1)


@through_float
def hsigmoid(data: Array, /) -> Array:
    """Return x + 3 clipped to 0 .. 6, divided by 6.

    Page activation/hsigmoid-5.
    """
    return np.minimum(np.maximum(data + 3, 0), 6) / 6


@through_float
def hswish(data: Array, /) -> Array:
    """Return x times (x + 3 clipped to 0 .. 6), divided by 6.

    Page activation/hswish-4.
    """
    return data * (np.minimum(np.maximum(data + 3, 0), 6) / 6)


def prelu(data: Array, slope: Array, /) -> Array:
    """Return x where x >= 0, ``slope`` x elsewhere.

    A slope of rank 1 whose length is that of the second dimension holds one value per channel;
    others broadcast as in numpy. Page activation/prelu-1.
    """
    if slope.ndim == 1 and data.ndim > 2 and slope.shape[0] == data.shape[1]:
        slope = slope.reshape(-1, *[1] * (data.ndim - 2))
    result = own_type(np.where(data >= 0, data, data * slope), data.dtype)
    if result.shape != data.shape:
        raise ValueError(f"slope of shape {slope.shape} does not fit data of shape {data.shape}")
    return result


def relu(data: Array, /) -> Array:
    """Return the greater of x and 0.

    Page activation/relu-1.
    """
    return own_type(np.maximum(data, data.dtype.type(0)), data.dtype)


_rectifier = family("activation", infer=same, types=(COMPUTED,))

RECTIFIERS: tuple[Operation, ...] = (
    _rectifier(
        "Clamp",
        clamp,
        attributes=(Attribute("min", "float"), Attribute("max", "float")),
        gradient=gradients.clamp,
    ),
    _rectifier(
        "HSigmoid", hsigmoid, version=5, page="activation/hsigmoid-5", gradient=gradients.hsigmoid
    ),
    _rectifier("HSwish", hswish, version=4, page="activation/hswish-4", gradient=gradients.hswish),
    _rectifier(
        "HardSigmoid",
        hard_sigmoid,
        inputs=(3, 3),
        types=(COMPUTED_FLOATS,),
        gradient=gradients.hard_sigmoid,
    ),
    _rectifier("PReLU", prelu, page="activation/prelu-1", inputs=(2, 2), gradient=gradients.prelu),
    _rectifier(
        "ReLU",
        relu,
        page="activation/relu-1",
        float_symbol="np.maximum({0}, 0)",
        gradient=gradients.relu,
    ),
)


@through_float
def softmax(data: Array, /, *, axis: int = 1) -> Array:
    """Divide e^x by the sum of e^x along ``axis``.

    Pages activation/softmax-1 and activation/softmax-8.
    """
    axis = axis_within(axis, data.ndim)
    if data.size == 0:
        return data.copy()
    powers = data - data.max(axis, keepdims=True)
    np.exp(powers, out=powers)
    if axis == data.ndim - 1:
        # Row sums as a matrix-vector product: BLAS is several times faster than the reduction on
        # short rows.
        sums = powers @ np.ones(data.shape[-1], data.dtype)
        powers /= sums[..., None]
    else:
        powers /= powers.sum(axis, keepdims=True)
    return powers


@through_float
def log_softmax(data: Array, /, *, axis: int = 1) -> Array:
    """Return x minus the logarithm of the sum of e^x along ``axis``.

    Page activation/log-soft-max-5.
    """
    axis = axis_within(axis, data.ndim)
    if data.size == 0:
        return data.copy()
    shifted = data - data.max(axis, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis, keepdims=True))
    return shifted


def _infer_along_axis(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    shape = inputs[0].shape
    if shape.rank is not None:
        axis_within(attributes["axis"], shape.rank)
    return (Known(inputs[0].element_type, shape),)


_along_axis = family("activation", infer=_infer_along_axis, types=(COMPUTED_FLOATS,))

SOFTMAX: tuple[Operation, ...] = (
    _along_axis(
        "LogSoftmax",
        log_softmax,
        version=5,
        page="activation/log-soft-max-5",
        attributes=(Attribute("axis", "int", 1),),
        gradient=gradients.log_softmax,
    ),
    _along_axis(
        "SoftMax",
        softmax,
        opsets=(1, 7),
        page="activation/softmax-1",
        attributes=(Attribute("axis", "int", 1, least=0),),
        gradient=gradients.softmax,
    ),
    _along_axis(
        "SoftMax",
        softmax,
        version=8,
        page="activation/softmax-8",
        attributes=(Attribute("axis", "int", 1),),
        gradient=gradients.softmax,
    ),
)
