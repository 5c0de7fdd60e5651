"""ONNX's normalizations, Dropout before opset 12, and the mean of NegativeLogLikelihoodLoss.

Normalizations use numbers of each channel, group or row. The onnx package's mean of the loss counts
ignored elements (labels of -1), ONNX Runtime's does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.declare import Array, Kernel
from loopscope.ops.kernel_arithmetic import computable, means, rounded, through_float
from loopscope.ops.kernel_checks import axis_within
from loopscope.ops.normalization import batch_norm_inference, group_normalization
from loopscope.ops.onnx.conditions import check_inputs


def instance_normalization(
    data: Array, scale: Array, bias: Array, /, *, epsilon: float, **older: object
) -> Array:
    """Return data with mean 0 and variance 1 over the lengths of each channel, times its scale plus
    its bias: ``[N, C, ...], [C], [C] -> [N, C, ...]``.
    """
    check_inputs("InstanceNormalization", (data, scale, bias), {})
    if not data.size:
        return data
    return group_normalization(data, scale, bias, num_groups=data.shape[1], epsilon=epsilon)


def rms_normalization(
    data: Array, scale: Array, /, *, axis: int, epsilon: float, stash_type: int
) -> Array:
    """Return the data divided by the root of its mean square over the axes from ``axis``, times
    ``scale``.
    """
    if stash_type != 1:
        raise ValueError(f"stash_type is {stash_type}, expected 1: the steps are computed in f32")
    first = axis_within(axis, data.ndim)
    rows = computable(data).reshape(math.prod(data.shape[:first]), math.prod(data.shape[first:]))
    squares = np.vecdot(rows, rows)[:, None] / rows.dtype.type(max(rows.shape[1], 1))
    result = rows * np.reciprocal(np.sqrt(squares + rows.dtype.type(epsilon)))
    return rounded(np.asarray(result.reshape(data.shape) * computable(scale)), data.dtype)


def batch_normalized(
    slow: Callable[..., Kernel], attributes: Mapping[str, Any], outputs: int
) -> Kernel:
    """Return the kernel of BatchNormalization with given means and variances. ``slow`` also
    computes those of the batch.
    """
    otherwise, epsilon = slow(attributes, outputs), attributes["epsilon"]
    if attributes.get("training_mode") or outputs > 1:
        return otherwise

    def normalized(data: Any, *each: Any) -> Any:
        if data.ndim < 2 or any(numbers.shape != data.shape[1:2] for numbers in each):
            return otherwise(data, *each)
        return (batch_norm_inference(data, *each, epsilon=epsilon),)

    return normalized


def group_normalized(
    slow: Callable[..., Kernel], attributes: Mapping[str, Any], outputs: int
) -> Kernel:
    """Return the kernel of GroupNormalization in f32. ``slow`` computes in other types, by the
    function that defines the operation.

    Version 18 has a scale and a bias for each group, 21 for each channel.
    """
    otherwise = slow(attributes, outputs)
    groups = attributes["num_groups"]
    epsilon = attributes["epsilon"]

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
        scale, bias = (numbers.repeat(data.shape[1] // len(numbers)) for numbers in (scale, bias))
        return (group_normalization(data, scale, bias, num_groups=groups, epsilon=epsilon),)

    return normalized


def lrn(
    data: Array, /, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """Return each element divided by a power of the mean square of ``size`` neighbours along the
    channels.
    """
    if data.ndim < 2 or size < 1:
        raise ValueError(
            f"size is {size} for data of shape {list(data.shape)}, "
            "expected at least 1 for [N, C, lengths...]"
        )
    values = computable(data)
    squares, sums = values * values, np.zeros_like(values)
    channels = data.shape[1]
    for offset in range(max(-((size - 1) // 2), -channels), min(size // 2, channels) + 1):
        sums[:, max(-offset, 0) : channels - max(offset, 0)] += squares[
            :, max(offset, 0) : channels + min(offset, 0)
        ]
    return (values / (bias + alpha / size * sums) ** beta).astype(data.dtype)


def mean_variance(data: Array, /, *, axes: Sequence[int] = ()) -> Array:
    """Return the data less its mean over the axes, divided by the standard deviation plus 1e-9. The
    onnx package does not compute f64, f16 and bf16.
    """
    values, chosen = computable(data), tuple(axes or (0, 2, 3))
    mean = means(values, chosen)
    variance = means(values * values, chosen) - mean * mean
    deviation = np.sqrt(np.maximum(variance, 0)) + values.dtype.type(1e-9)
    return ((values - mean) / deviation).astype(data.dtype)


@through_float
def old_mean_variance(
    data: Array, /, *, across_channels: int = 0, normalize_variance: int = 1
) -> Array:
    """Return the data less the mean of each channel (or of a whole image), divided by the standard
    deviation: (N, C, H, W).
    """
    axes = tuple(range(1 if across_channels else 2, data.ndim))
    centred = data - means(data, axes)
    if not normalize_variance:
        return np.asarray(centred)
    return np.asarray(centred / np.sqrt(means(centred**2, axes)))


def lp_normalization(data: Array, /, *, axis: int = -1, p: int = 2) -> Array:
    """Return the data divided by its norm along an axis; 0 if the norm is 0."""
    if p not in (1, 2):
        raise ValueError(f"p is {p}, expected 1 or 2")
    values = computable(data)
    norm = np.linalg.norm(values, p, axis, keepdims=True)
    return np.divide(values, norm, out=np.zeros_like(values), where=norm != 0).astype(data.dtype)


def old_batch_normalization(
    data: Array,
    *statistics: Array,
    outputs: int,
    epsilon: float,
    is_test: int = 0,
    spatial: int = 1,
    **_: object,
) -> Array:
    """Return the data normalized by given means and variances, for BatchNormalization before opset
    14.
    """
    if outputs > 1 and not is_test:
        raise ValueError(
            f"with {outputs} outputs it trains, which is not computed before opset 14: "
            "export the model for inference"
        )
    # Not spatial: each element of a channel has its own statistics.
    form = (-1,) + (1,) * (data.ndim - 2) if spatial else data.shape[1:]
    scale, bias, mean, variance = (values.reshape(form) for values in statistics[:4])
    result = (data - mean) / np.sqrt(variance + epsilon)
    if result.dtype == scale.dtype == bias.dtype and result.ndim:
        result *= scale
        result += bias
    else:
        result = result * scale + bias
    return result.astype(data.dtype, copy=False)


def dropout_6(data: Array, /, *, is_test: int = 0, **_: object) -> tuple[Array, Array]:
    """Return the data and a mask of ones, for Dropout before opset 7."""
    if not is_test:
        raise ValueError(
            "with is_test 0 it trains, which is not computed before opset 7: "
            "export the model for inference"
        )
    return data, np.ones_like(data)


def dropout_9(data: Array, /, **_: object) -> tuple[Array, Array]:
    """Return the data, and a mask of zeros as in ONNX Runtime, for Dropout of opsets 7 to 9."""
    return data, np.zeros_like(data)


def dropout_11(data: Array, /, **_: object) -> tuple[Array, Array]:
    """Return the data, and a mask of False as in ONNX Runtime, for Dropout of opsets 10 and 11."""
    return data, np.zeros_like(data, np.bool_)


def mean_of_what_counts(slow: Any, attributes: Mapping[str, Any], outputs: int) -> Any:
    """Return the kernel of a node. ``slow`` prepares the onnx package's kernel, whose mean leaves
    out ignored elements if classes have weights.
    """
    loss = slow(attributes, outputs)
    if attributes.get("ignore_index") != -1:
        return loss

    def compute(scores: Any, labels: Any, weights: Any = None, /) -> Any:
        alike = (
            np.ones(np.shape(scores)[1:2], np.asarray(scores).dtype) if weights is None else weights
        )
        return loss(scores, labels, alike)

    return compute
