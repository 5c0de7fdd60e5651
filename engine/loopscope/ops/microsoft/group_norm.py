"""Group normalization of com.microsoft, of images with channels last or second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import same
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.microsoft.row import FLOATING, row


def group_norm(
    data: Array,
    gamma: Array,
    beta: Array,
    /,
    *,
    groups: int,
    epsilon: float,
    activation: int,
    channels_last: int,
) -> Array:
    """Normalize groups of channels of ``[N, H, W, C]`` to mean 0 and variance 1, times gamma plus
    beta of each channel.

    Without ``channels_last`` the images are ``[N, C, H, W]``. The activation 1 is SiLU.
    """
    values = _normalized(
        computable(data), gamma, beta, groups, epsilon, activation, bool(channels_last)
    )
    return values.astype(data.dtype, copy=False)


def skip_group_norm(
    data: Array,
    gamma: Array,
    beta: Array,
    skip: Array,
    bias: Array | None = None,
    /,
    *,
    groups: int,
    epsilon: float,
    activation: int,
    channels_last: int,
) -> tuple[Array, Array]:
    """Return the group normalization of a sum of data, skip and bias, and the sum.

    The skip has the shape of the data, ``[N, 1, 1, C]`` or ``[N, C]``; the bias is ``[C]``.
    """
    axis = 3 if channels_last else 1
    _check(data, gamma, beta, groups, axis)
    per_image = [len(data), 1, 1, 1]
    per_image[axis] = data.shape[axis]
    per_channel = [1, *per_image[1:]]
    if skip.shape not in (data.shape, tuple(per_image), (len(data), data.shape[axis])):
        raise ValueError(
            f"the skip has shape {list(skip.shape)}, "
            f"expected {list(data.shape)}, {per_image} or {[len(data), data.shape[axis]]}"
        )
    total = computable(data) + computable(skip).reshape(
        data.shape if skip.shape == data.shape else per_image
    )
    if bias is not None:
        total = total + computable(bias).reshape(per_channel)
    total = total.astype(data.dtype)
    values = _normalized(
        computable(total), gamma, beta, groups, epsilon, activation, bool(channels_last)
    )
    return values.astype(data.dtype, copy=False), total


def _normalized(
    values: Array,
    gamma: Array,
    beta: Array,
    groups: int,
    epsilon: float,
    activation: int,
    is_last: bool,
) -> Array:
    _check(values, gamma, beta, groups, 3 if is_last else 1)
    images = np.moveaxis(values, -1, 1) if is_last else values
    grouped = images.reshape(len(images), groups, -1)
    centred = grouped - grouped.mean(-1, keepdims=True)
    variance = np.mean(centred * centred, -1, keepdims=True)
    scaled = (centred / np.sqrt(variance + values.dtype.type(epsilon))).reshape(images.shape)
    scaled = scaled * computable(gamma)[:, None, None] + computable(beta)[:, None, None]
    if activation:
        scaled = scaled / (1 + np.exp(-scaled))
    return np.moveaxis(scaled, 1, -1) if is_last else scaled


def _check(data: Array, gamma: Array, beta: Array, groups: int, axis: int) -> None:
    if data.ndim != 4 or groups < 1 or data.shape[axis] % groups:
        raise ValueError(
            f"{groups} groups of data of shape {list(data.shape)}, "
            f"expected four axes, and channels (axis {axis}) that the groups divide"
        )
    if gamma.shape != (data.shape[axis],) or beta.shape != (data.shape[axis],):
        raise ValueError(
            f"gamma and beta have the shapes {list(gamma.shape)} and {list(beta.shape)}, "
            f"expected one number for each of {data.shape[axis]} channels"
        )


def infer_with_sum(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer two tensors like the data."""
    return (Known(inputs[0].element_type, inputs[0].shape),) * 2


_ATTRIBUTES = (
    Attribute("groups", "int"),
    Attribute("epsilon", "float", 1e-5),
    Attribute("activation", "int"),
    Attribute("channels_last", "int", 1),
)
OPERATIONS: tuple[Operation, ...] = (
    row(
        "GroupNorm",
        group_norm,
        infer=same,
        inputs=(3, 3),
        attributes=_ATTRIBUTES,
        types=(FLOATING,),
    ),
    row(
        "SkipGroupNorm",
        skip_group_norm,
        infer=infer_with_sum,
        inputs=(4, 5),
        outputs=2,
        attributes=_ATTRIBUTES,
        types=(FLOATING,),
    ),
)
