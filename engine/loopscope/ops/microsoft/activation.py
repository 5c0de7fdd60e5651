"""Activations of the domain com.microsoft: the forms of GELU that ONNX Runtime fuses, and
softmax after a bias.
"""

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
    """GELU of the sum of a tensor and a bias for its last axis."""
    return gelu_of_sum(data, _bias(data, bias), approximation_mode="erf")


def fast_gelu(data: Array, bias: Array | None = None, /) -> Array:
    """GELU by its approximation with tanh, of a tensor or of its sum with a bias for its last
    axis.
    """
    if bias is None:
        return gelu(data, approximation_mode="tanh")
    return gelu_of_sum(data, _bias(data, bias), approximation_mode="tanh")


@through_float
def gelu_of_sum(data: Array, bias: Array, /, *, approximation_mode: str) -> Array:
    """Rounded once, at the end: the sum of small floats is not rounded in between."""
    return gelu(data + bias, approximation_mode=approximation_mode)


def _bias(data: Array, bias: Array) -> Array:
    if bias.ndim != 1 or not data.ndim or bias.shape[0] != data.shape[-1]:
        raise ValueError(
            f"the bias has shape {list(bias.shape)}, expected one number for each of the last axis of {list(data.shape)}"
        )
    return bias


@through_float
def quick_gelu(data: Array, /, *, alpha: float) -> Array:
    """x divided by 1 + e^(-alpha x)."""
    return data / (1 + np.exp(data * data.dtype.type(-alpha)))


def bias_softmax(data: Array, bias: Array, /, *, axis: int, is_inner_broadcast: int) -> Array:
    """Softmax over all axes from ``axis`` on, taken as one, of the sum of a tensor and a bias.

    The bias has the shape of the softmax's rows and broadcasts as numpy does; with
    ``is_inner_broadcast`` each of its rows serves so many rows of the tensor that follow each
    other, otherwise its rows are used over and over.
    """
    start = axis_within(axis, data.ndim)
    outer, width = math.prod(data.shape[:start]), math.prod(data.shape[start:])
    rows = bias.size // width if width else 0
    if not width or bias.size != rows * width or not rows or outer % rows:
        raise ValueError(
            f"the bias has shape {list(bias.shape)}, expected rows of {width} numbers that divide {outer} rows of the data"
        )
    inner = (rows, outer // rows, width) if is_inner_broadcast else (outer // rows, rows, width)
    added = bias.reshape((rows, 1, width) if is_inner_broadcast else (1, rows, width))
    return _softmax_of_sum(data.reshape(inner), added).reshape(data.shape)


@through_float
def _softmax_of_sum(data: Array, bias: Array, /) -> Array:
    return softmax(data + bias, axis=-1)


def infer_with_bias(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Type and shape of the data; the last length of the data is that of the bias."""
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
