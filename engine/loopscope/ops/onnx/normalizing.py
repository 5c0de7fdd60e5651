"""ONNX's normalizations by numbers of each channel, group or row: computed in f32 and rounded
once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopscope.ops.declare import Array, Kernel
from loopscope.ops.index import axis_within
from loopscope.ops.normalization import batch_norm_inference, group_normalization
from loopscope.ops.onnx.conditions import check_inputs
from loopscope.ops.onnx.row import Direct
from loopscope.ops.precision import computable, rounded


def instance_normalization(
    data: Array, scale: Array, bias: Array, /, *, epsilon: float, **older: object
) -> Array:
    """Mean 0 and variance 1 over the lengths of each channel, then its scale and bias: ``[N, C,
    ...], [C], [C] -> [N, C, ...]``.
    """
    check_inputs("InstanceNormalization", (data, scale, bias), {})
    if not data.size:
        return data
    return group_normalization(data, scale, bias, num_groups=data.shape[1], epsilon=epsilon)


def rms_normalization(
    data: Array, scale: Array, /, *, axis: int, epsilon: float, stash_type: int
) -> Array:
    """All axes from ``axis`` on divided by the root of their mean square, times ``scale``."""
    if stash_type != 1:
        raise ValueError(f"stash_type is {stash_type}, expected 1: the steps are computed in f32")
    first = axis_within(axis, data.ndim)
    rows = computable(data).reshape(math.prod(data.shape[:first]), math.prod(data.shape[first:]))
    means = np.vecdot(rows, rows)[:, None] / rows.dtype.type(max(rows.shape[1], 1))
    made = rows * np.reciprocal(np.sqrt(means + rows.dtype.type(epsilon)))
    return rounded(np.asarray(made.reshape(data.shape) * computable(scale)), data.dtype)


def batch_normalized(
    slow: Callable[..., Kernel], attributes: Mapping[str, Any], outputs: int
) -> Kernel:
    """BatchNormalization by given means and variances; ``slow`` computes those of the batch,
    too.
    """
    otherwise, epsilon = slow(attributes, outputs), attributes["epsilon"]
    if attributes.get("training_mode") or outputs > 1:
        return otherwise

    def normalized(data: Any, *each: Any) -> Any:
        if data.ndim < 2 or any(one.shape != data.shape[1:2] for one in each):
            return otherwise(data, *each)
        return (batch_norm_inference(data, *each, epsilon=epsilon),)

    return normalized


def group_normalized(
    slow: Callable[..., Kernel], attributes: Mapping[str, Any], outputs: int
) -> Kernel:
    """GroupNormalization in f32; ``slow`` computes in other types, by the function that defines the
    operation.

    Version 18 has a scale and a bias for each group, 21 for each channel.
    """
    otherwise, groups, epsilon = (
        slow(attributes, outputs),
        attributes["num_groups"],
        attributes["epsilon"],
    )

    def normalized(data: Any, scale: Any, bias: Any) -> Any:
        fits = (
            data.ndim > 1
            and data.size
            and data.dtype != np.float64
            and groups > 0
            and data.shape[1] % groups == 0
        )
        lengths = (groups,) if "stash_type" not in attributes else data.shape[1:2]
        if (
            not fits
            or attributes.get("stash_type", 1) != 1
            or scale.shape != lengths
            or bias.shape != lengths
        ):
            return otherwise(data, scale, bias)
        scale, bias = (one.repeat(data.shape[1] // len(one)) for one in (scale, bias))
        return (group_normalization(data, scale, bias, num_groups=groups, epsilon=epsilon),)

    return normalized


NORMALIZING: Mapping[str, Direct] = {
    "InstanceNormalization": Direct(kernel=instance_normalization, first=1),
    "RMSNormalization": Direct(kernel=rms_normalization, first=23),
}
