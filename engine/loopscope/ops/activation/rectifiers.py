"""Piecewise linear activations: values outside an interval are clipped or scaled."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.elements import (
    COMPUTED,
    COMPUTED_FLOATS,
    INTEGER_DTYPES,
    integer_limits,
    own_type,
    through_float,
)
from loopscope.ops.family import family
from loopscope.ops.gradients import activation as gradients
from loopscope.ops.infer import same


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


row = family("activation", infer=same, types=(COMPUTED,))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Clamp",
        clamp,
        attributes=(Attribute("min", "float"), Attribute("max", "float")),
        gradient=gradients.clamp,
    ),
    row("HSigmoid", hsigmoid, version=5, page="activation/hsigmoid-5", gradient=gradients.hsigmoid),
    row("HSwish", hswish, version=4, page="activation/hswish-4", gradient=gradients.hswish),
    row(
        "HardSigmoid",
        hard_sigmoid,
        inputs=(3, 3),
        types=(COMPUTED_FLOATS,),
        gradient=gradients.hard_sigmoid,
    ),
    row("PReLU", prelu, page="activation/prelu-1", inputs=(2, 2), gradient=gradients.prelu),
    row(
        "ReLU",
        relu,
        page="activation/relu-1",
        float_symbol="np.maximum({0}, 0)",
        gradient=gradients.relu,
    ),
)
