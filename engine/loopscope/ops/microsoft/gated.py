"""Gated activations of com.microsoft: SwiGLU, and RMS normalization times a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import common_type, same
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.precision import computable

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


OPERATIONS: tuple[Operation, ...] = (
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
