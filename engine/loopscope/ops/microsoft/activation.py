"""Activations of com.microsoft: fused forms of GELU, biased softmax, and gated activations.

The gated ones are SwiGLU, and RMS normalization times a gate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.shape import PartialShape
from loopscope.ops.activation import gelu, softmax
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import common_type, same
from loopscope.ops.kernel_arithmetic import computable, through_float
from loopscope.ops.kernel_checks import axis_within
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


_SMALLEST_EXPONENT = -87.0
"""Argument of exp below which the product is computed in f64, because f32 underflows."""
GATE_ACTIVATIONS = ("silu", "swish", "sigmoid")


def swiglu(
    gate: Array,
    up: Array | None = None,
    /,
    *,
    activation_alpha: float,
    activation_beta: float,
    limit: float,
    round_activation: int,
) -> Array:
    """Return ``G * sigmoid(alpha * G) * (L + beta)`` of the halves G (gate) and L (up).

    Without ``up``, the last axis of ``gate`` holds both halves. A ``limit`` above 0 clamps G from
    above and L on both sides. The arithmetic is in f32 and rounded once, or also after the gate
    with ``round_activation``.
    """
    if up is None:
        if not gate.ndim or gate.shape[-1] % 2:
            raise ValueError(
                f"the gate has shape {list(gate.shape)}, expected an even last length without up"
            )
        gate, up = np.split(gate, 2, axis=-1)
    elif up.shape != gate.shape:
        raise ValueError(f"gate and up have the shapes {list(gate.shape)} and {list(up.shape)}")
    values = gate_times_up(
        computable(gate),
        computable(up),
        alpha=activation_alpha,
        beta=activation_beta,
        limit=limit if limit > 0 else np.inf,
        rounded=gate.dtype if round_activation else None,
    )
    return values.astype(gate.dtype, copy=False)


def gate_times_up(
    gate: Array,
    up: Array,
    *,
    alpha: float,
    beta: float,
    limit: float,
    rounded: np.dtype | None = None,
) -> Array:
    """Return the clamped SwiGLU of two f32 or f64 arrays; ``rounded`` is the type of the gate."""
    kind = gate.dtype.type
    gate = np.minimum(gate, kind(limit))
    linear = np.clip(up, kind(-limit), kind(limit))
    argument = kind(alpha) * gate
    activated = gate * _sigmoid(argument)
    tail = argument < _SMALLEST_EXPONENT
    if tail.any():
        wide = gate.astype(np.float64)
        activated = np.where(tail, wide * _sigmoid(alpha * wide), activated).astype(gate.dtype)
    if rounded is not None:
        activated = activated.astype(rounded).astype(gate.dtype)
    return np.asarray(activated * (linear + kind(beta) if beta else linear))


def gated_rms_norm(
    data: Array, scale: Array, gate: Array, /, *, activation: str, epsilon: float
) -> Array:
    """Divide groups of C elements by their root mean square, times scale and an activated gate.

    ``[..., H * C], [C], [..., H * C] -> [..., H * C]``. The arithmetic is in f32, as in the
    reference implementation.
    """
    if scale.ndim != 1 or gate.shape != data.shape or not data.ndim:
        raise ValueError(
            f"the shapes are {[list(array.shape) for array in (data, scale, gate)]}, "
            "expected [..., H * C], [C], [..., H * C]"
        )
    width = scale.shape[0]
    if not width or data.shape[-1] % width:
        raise ValueError(
            f"the scale has {width} numbers, expected a divisor of the last length {data.shape[-1]}"
        )
    groups = computable(data).reshape(*data.shape[:-1], data.shape[-1] // width, width)
    root = np.sqrt(np.mean(groups * groups, -1, keepdims=True) + groups.dtype.type(epsilon))
    weight = computable(gate)
    activated = _sigmoid(weight) if activation == "sigmoid" else weight * _sigmoid(weight)
    normalized = (groups / root * computable(scale)).reshape(data.shape)
    return (normalized * activated).astype(data.dtype, copy=False)


def _sigmoid(data: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-data)))


def infer_swiglu(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of one half."""
    shape = inputs[0].shape
    if len(inputs) > 1 and inputs[1].element_type is not None:
        return (Known(common_type(inputs), shape),)
    if not shape.rank or shape.dimensions is None:
        return (Known(inputs[0].element_type, shape),)
    last = shape.dimensions[-1]
    half = last.length // 2 if last.is_static else None
    return (Known(inputs[0].element_type, PartialShape.of((*shape.dimensions[:-1], half))),)


GATED: tuple[Operation, ...] = (
    row(
        "SwiGLU",
        swiglu,
        infer=infer_swiglu,
        inputs=(1, 2),
        attributes=(
            Attribute("activation_alpha", "float", 1.0),
            Attribute("activation_beta", "float", 0.0),
            Attribute("limit", "float", 0.0),
            Attribute("round_activation", "int", 0),
        ),
        types=(FLOATING,),
    ),
    row(
        "GatedRMSNorm",
        gated_rms_norm,
        infer=same,
        inputs=(3, 3),
        attributes=(
            Attribute("activation", "str", "silu", allowed=GATE_ACTIVATIONS),
            Attribute("epsilon", "float", 1e-5),
        ),
        types=(FLOATING,),
    ),
)
