"""Normalizations of com.microsoft: layers of sums and of embeddings, and groups of channels.

Simplified forms do not subtract the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import common_type, same
from loopscope.ops.kernel_arithmetic import computable, means
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.onnx.along_axes import layer_normalization


def skip_layer_normalization(
    data: Array,
    skip: Array,
    gamma: Array,
    beta: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    epsilon: float,
) -> tuple[Array, Array, Array, Array]:
    """Normalize the sum of two tensors (and a bias) along the last axis, times gamma plus beta.

    The data is ``[..., H]``. The skip has the same shape; for data ``[B, S, H]`` it may also be
    ``[1, S, H]`` or ``[S, H]``. Also return the mean, the reciprocal deviation and the sum.
    """
    total = _checked_sum(data, skip, bias, gamma, beta)
    mean = means(total, -1)
    normalized, scale = _scale(total - mean, gamma, epsilon)
    if beta is not None:
        normalized += computable(beta)
    return (
        normalized.astype(data.dtype, copy=False),
        _to_f32(mean),
        _to_f32(scale),
        total.astype(data.dtype, copy=False),
    )


def skip_simplified_layer_normalization(
    data: Array, skip: Array, gamma: Array, bias: Array | None = None, /, *, epsilon: float
) -> tuple[Array, Array, Array, Array]:
    """Divide a sum of two tensors (and a bias) by its root mean square, times gamma.

    The root mean square is taken along the last axis. Also return a mean of 0, the reciprocal root
    mean square and the sum.
    """
    total = _checked_sum(data, skip, bias, gamma)
    normalized, scale = _scale(total, gamma, epsilon)
    return (
        normalized.astype(data.dtype, copy=False),
        np.zeros(scale.shape, np.float32),
        _to_f32(scale),
        total.astype(data.dtype, copy=False),
    )


def simplified_layer_normalization(
    data: Array, gamma: Array, /, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Array, Array]:
    """Divide by the root mean square over all axes from ``axis`` on, times gamma.

    Also return the reciprocal of that root.
    """
    first = axis + data.ndim if axis < 0 else axis
    if not 0 <= first < max(data.ndim, 1) or stash_type != 1:
        raise ValueError(
            f"axis is {axis} for data of shape {list(data.shape)}, and stash_type {stash_type}, "
            f"expected an axis from {-data.ndim} to {data.ndim - 1}, and 1"
        )
    leading = data.shape[:first]
    rows = computable(data).reshape(*leading, -1)
    scale = _reciprocal_of_root(rows, epsilon)
    normalized = (rows * scale).reshape(data.shape) * computable(gamma)
    return normalized.astype(data.dtype, copy=False), _to_f32(scale).reshape(
        *leading, *[1] * (data.ndim - first)
    )


def _checked_sum(data: Array, skip: Array, bias: Array | None, *parameters: Array | None) -> Array:
    """Return the sum of data, skip and bias.

    ``ValueError`` if the skip has none of the allowed shapes, or if a parameter does not match the
    last axis.
    """
    if (
        not data.ndim
        or skip.shape[-1:] != data.shape[-1:]
        or skip.shape not in _skip_shapes(data.shape)
    ):
        expected = " or ".join(str(list(shape)) for shape in _skip_shapes(data.shape))
        raise ValueError(f"the skip has shape {list(skip.shape)}, expected {expected}")
    for parameter in (bias, *parameters):
        if parameter is not None and parameter.shape != data.shape[-1:]:
            raise ValueError(
                f"gamma, beta or bias has shape {list(parameter.shape)}, "
                f"expected {list(data.shape[-1:])}"
            )
    total = computable(data) + computable(skip)
    return total if bias is None else total + computable(bias)


def _skip_shapes(shape: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the allowed shapes of a skip."""
    whole = tuple(shape)
    return (whole, (1, *whole[1:]), whole[1:]) if len(whole) == 3 else (whole,)


def _scale(values: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    scale = _reciprocal_of_root(values, epsilon)
    return values * scale * computable(gamma), scale


def _reciprocal_of_root(values: Array, epsilon: float) -> Array:
    square = means(np.square(values), -1)
    return np.asarray(np.reciprocal(np.sqrt(square + values.dtype.type(epsilon))))


def _to_f32(values: Array) -> Array:
    return values.astype(np.float32, copy=False)


def embed_layer_normalization(
    words: Array,
    segments: Array | None,
    word_table: Array,
    position_table: Array,
    segment_table: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None = None,
    positions: Array | None = None,
    /,
    *,
    epsilon: float,
    mask_index_type: int | None,
) -> tuple[Array, Array, Array]:
    """Apply layer normalization to the sum of table rows for words, positions and segments.

    ``[B, S] -> [B, S, H]``. Also return the number of 1 in each row of the mask (0 without a mask),
    and the sum.
    """
    if words.ndim != 2 or (segments is None) != (segment_table is None):
        raise ValueError(
            f"the words have shape {list(words.shape)}, expected [batch, length], "
            "and segments with their table or neither"
        )
    tables = [word_table, position_table, *([] if segment_table is None else [segment_table])]
    if (
        gamma.ndim != 1
        or beta.shape != gamma.shape
        or any(table.ndim != 2 or table.shape[1:] != gamma.shape for table in tables)
    ):
        shapes = [list(table.shape) for table in (*tables, gamma, beta)]
        raise ValueError(
            f"tables, gamma and beta have shapes {shapes}, expected rows as long as gamma and beta"
        )
    if positions is None:
        positions = np.arange(words.shape[1])[None]
    total = computable(_rows(word_table, words, "word")) + computable(
        _rows(position_table, positions, "position")
    )
    if segments is not None and segment_table is not None:
        total = total + computable(_rows(segment_table, segments, "segment"))
    mean = means(total, -1)
    normalized, _ = _scale(total - mean, gamma, epsilon)
    normalized += computable(beta)
    counts = np.zeros(len(words), np.int32) if mask is None else (mask == 1).sum(1, dtype=np.int32)
    return normalized.astype(gamma.dtype, copy=False), counts, total.astype(gamma.dtype, copy=False)


def _rows(table: Array, indices: Array, name: str) -> Array:
    if indices.size and (indices.min() < 0 or indices.max() >= len(table)):
        raise ValueError(
            f"the {name} indices lie between {indices.min()} and {indices.max()}, "
            f"expected 0 to {len(table) - 1}"
        )
    return table[indices]


def infer_skip(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the data; mean and deviation have one number per row."""
    kind, shape = common_type(inputs), inputs[0].shape
    per_row = Known(
        ElementType.F32,
        DYNAMIC if shape.dimensions is None else PartialShape((*shape.dimensions[:-1], static(1))),
    )
    result = Known(kind, shape)
    return result, per_row, per_row, result


def infer_embedding(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer [B, S, H], a count per batch item, and the sum with the shape of the first output."""
    words, width = inputs[0].shape, inputs[5].shape
    if words.rank not in (None, 2):
        raise ValueError(f"the words have shape {words}, expected [batch, length]")
    result = Known(
        inputs[2].element_type,
        PartialShape(
            (*(words.at(axis) for axis in (0, 1)), width.at(0) if width.rank else DYNAMIC.at(0))
        ),
    )
    return result, Known(ElementType.I32, PartialShape((words.at(0),))), result


_EPSILON = Attribute("epsilon", "float", 1e-12)
_I32 = frozenset({ElementType.I32})
OPERATIONS: tuple[Operation, ...] = (
    row(
        "SkipLayerNormalization",
        skip_layer_normalization,
        infer=infer_skip,
        inputs=(3, 5),
        outputs=4,
        attributes=(_EPSILON,),
        types=(FLOATING,),
    ),
    row(
        "SkipSimplifiedLayerNormalization",
        skip_simplified_layer_normalization,
        infer=infer_skip,
        inputs=(3, 4),
        outputs=4,
        attributes=(_EPSILON,),
        types=(FLOATING,),
    ),
    row(
        "EmbedLayerNormalization",
        embed_layer_normalization,
        infer=infer_embedding,
        inputs=(7, 9),
        optional_inputs=frozenset({1, 4}),
        outputs=3,
        attributes=(_EPSILON, Attribute("mask_index_type", "int", None)),
        types=(_I32, _I32, *[FLOATING] * 5, _I32),
    ),
)

_SIMPLE_ATTRIBUTES = (
    Attribute("axis", "int", -1),
    Attribute("epsilon", "float", 1e-5),
    Attribute("stash_type", "int", 1),
)
IN_ONNX: tuple[Operation, ...] = (
    row(
        "LayerNormalization",
        layer_normalization,
        infer=same,
        inputs=(2, 3),
        outputs=3,
        attributes=_SIMPLE_ATTRIBUTES,
        types=(FLOATING,),
    ),
    row(
        "SimplifiedLayerNormalization",
        simplified_layer_normalization,
        infer=same,
        inputs=(2, 2),
        outputs=2,
        attributes=_SIMPLE_ATTRIBUTES,
        types=(FLOATING,),
    ),
)
"""Operations that ONNX Runtime adds to ONNX's own domain.

Files optimized at an opset before 17 contain LayerNormalization too.
"""


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
    values = _by_group(computable(data), gamma, beta, groups, epsilon, activation, channels_last)
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
    _check_groups(data, gamma, beta, groups, axis)
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
    values = _by_group(computable(total), gamma, beta, groups, epsilon, activation, channels_last)
    return values.astype(data.dtype, copy=False), total


def _by_group(
    values: Array,
    gamma: Array,
    beta: Array,
    groups: int,
    epsilon: float,
    activation: int,
    channels_last: int,
) -> Array:
    _check_groups(values, gamma, beta, groups, 3 if channels_last else 1)
    images = np.moveaxis(values, -1, 1) if channels_last else values
    grouped = images.reshape(len(images), groups, -1)
    centred = grouped - grouped.mean(-1, keepdims=True)
    variance = np.mean(centred * centred, -1, keepdims=True)
    scaled = (centred / np.sqrt(variance + values.dtype.type(epsilon))).reshape(images.shape)
    scaled = scaled * computable(gamma)[:, None, None] + computable(beta)[:, None, None]
    if activation:
        scaled = scaled / (1 + np.exp(-scaled))
    return np.moveaxis(scaled, 1, -1) if channels_last else scaled


def _check_groups(data: Array, gamma: Array, beta: Array, groups: int, axis: int) -> None:
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


_GROUP_ATTRIBUTES = (
    Attribute("groups", "int"),
    Attribute("epsilon", "float", 1e-5),
    Attribute("activation", "int"),
    Attribute("channels_last", "int", 1),
)
GROUPS: tuple[Operation, ...] = (
    row(
        "GroupNorm",
        group_norm,
        infer=same,
        inputs=(3, 3),
        attributes=_GROUP_ATTRIBUTES,
        types=(FLOATING,),
    ),
    row(
        "SkipGroupNorm",
        skip_group_norm,
        infer=infer_with_sum,
        inputs=(4, 5),
        outputs=2,
        attributes=_GROUP_ATTRIBUTES,
        types=(FLOATING,),
    ),
)
