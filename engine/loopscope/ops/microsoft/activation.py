"""Activations of the domain com.microsoft: fused forms of GELU, and biased softmax."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.shape import PartialShape
from loopscope.ops.activation.formulas import gelu
from loopscope.ops.activation.softmax import softmax
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elements import through_float
from loopscope.ops.index import axis_within
from loopscope.ops.infer import common_type, same
from loopscope.ops.microsoft.row import FLOATING, row


def bias_gelu(data: Array, bias: Array, /) -> Array:
    """Return GELU of the sum of a tensor and a bias for its last axis."""
    return gelu_of_sum(data, _check_bias(data, bias), approximation_mode="erf")


def fast_gelu(data: Array, bias: Array | None = None, /) -> Array:
    """Return the tanh approximation of GELU, optionally after adding a bias for the last axis."""
    if bias is None:
        return gelu(data, approximation_mode="tanh")
    return gelu_of_sum(data, _check_bias(data, bias), approximation_mode="tanh")


@through_float
def gelu_of_sum(data: Array, bias: Array, /, *, approximation_mode: str) -> Array:
    """Return GELU of a sum, rounded once: the sum of small floats is not rounded in between."""
    return gelu(data + bias, approximation_mode=approximation_mode)


def _check_bias(data: Array, bias: Array) -> Array:
    if bias.ndim != 1 or not data.ndim or bias.shape[0] != data.shape[-1]:
        raise ValueError(
            f"the bias has shape {list(bias.shape)}, "
            f"expected one number for each of the last axis of {list(data.shape)}"
        )
    return bias


@through_float
def quick_gelu(data: Array, /, *, alpha: float) -> Array:
    """Return x / (1 + e^(-alpha x))."""
    return data / (1 + np.exp(data * data.dtype.type(-alpha)))


def bias_softmax(data: Array, bias: Array, /, *, axis: int, is_inner_broadcast: int) -> Array:
    """Return softmax of a tensor plus a bias, over all axes from ``axis`` on as a single axis.

    The bias consists of rows of the softmax. With ``is_inner_broadcast``, each bias row applies to
    consecutive rows of the tensor; otherwise the bias rows repeat cyclically.
    """
    first_axis = axis_within(axis, data.ndim)
    outer, width = math.prod(data.shape[:first_axis]), math.prod(data.shape[first_axis:])
    rows = bias.size // width if width else 0
    if not width or bias.size != rows * width or not rows or outer % rows:
        raise ValueError(
            f"the bias has shape {list(bias.shape)}, "
            f"expected rows of {width} numbers that divide {outer} rows of the data"
        )
    shape = (rows, outer // rows, width) if is_inner_broadcast else (outer // rows, rows, width)
    bias_rows = bias.reshape((rows, 1, width) if is_inner_broadcast else (1, rows, width))
    return _softmax_of_sum(data.reshape(shape), bias_rows).reshape(data.shape)


@through_float
def _softmax_of_sum(data: Array, bias: Array, /) -> Array:
    return softmax(data + bias, axis=-1)


def infer_with_bias(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the type and shape of the data, whose last length must equal that of the bias."""
    shape, bias = inputs[0].shape, inputs[1].shape if len(inputs) > 1 else PartialShape.unknown(1)
    if shape.rank and bias.rank == 1 and shape.at(-1).intersect(bias.at(0)) is None:
        raise ValueError(f"the bias has shape {bias}, and the last axis of the data {shape}")
    return (Known(common_type(inputs), shape),)


OPERATIONS: tuple[Operation, ...] = (
    row("Gelu", gelu, infer=same, types=(FLOATING,)),
    row("BiasGelu", bias_gelu, infer=infer_with_bias, inputs=(2, 2), types=(FLOATING,)),
    row("FastGelu", fast_gelu, infer=infer_with_bias, inputs=(1, 2), types=(FLOATING,)),
    row(
        "QuickGelu",
        quick_gelu,
        infer=same,
        attributes=(Attribute("alpha", "float", 1.702),),
        types=(FLOATING,),
    ),
    row(
        "BiasSoftmax",
        bias_softmax,
        infer=same,
        inputs=(2, 2),
        attributes=(Attribute("axis", "int", 1), Attribute("is_inner_broadcast", "int")),
        types=(FLOATING,),
    ),
)
