"""Normalizations of the domain com.microsoft: layer normalization of a sum, with or without the
mean, and of embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elements import means
from loopscope.ops.infer import common_type
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.onnx.along_axes import layer_normalization
from loopscope.ops.precision import computable


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
    """The sum of two tensors (and a bias) to mean 0 and variance 1 along the last axis, times gamma
    plus beta.

    ``[..., H]`` and what its leading axes repeat; also the mean, 1 by the deviation, and the sum.
    """
    total = _sum(data, skip, bias, gamma, beta)
    mean = means(total, -1)
    made, scale = _scaled(total - mean, gamma, epsilon)
    if beta is not None:
        made += computable(beta)
    return (
        made.astype(data.dtype, copy=False),
        _f32(mean),
        _f32(scale),
        total.astype(data.dtype, copy=False),
    )


def skip_simplified_layer_normalization(
    data: Array, skip: Array, gamma: Array, bias: Array | None = None, /, *, epsilon: float
) -> tuple[Array, Array, Array, Array]:
    """The sum of two tensors (and a bias) divided by its root mean square along the last axis,
    times gamma.

    Also a mean of 0, 1 by the root mean square, and the sum.
    """
    total = _sum(data, skip, bias, gamma)
    made, scale = _scaled(total, gamma, epsilon)
    return (
        made.astype(data.dtype, copy=False),
        np.zeros(scale.shape, np.float32),
        _f32(scale),
        total.astype(data.dtype, copy=False),
    )


def simplified_layer_normalization(
    data: Array, gamma: Array, /, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Array, Array]:
    """Divided by the root mean square over all axes from ``axis`` on, times gamma; also 1 by
    that root.
    """
    first = axis + data.ndim if axis < 0 else axis
    if not 0 <= first < max(data.ndim, 1) or stash_type != 1:
        raise ValueError(
            f"axis is {axis} for data of shape {list(data.shape)}, and stash_type {stash_type}, expected an axis and 1"
        )
    before = data.shape[:first]
    rows = computable(data).reshape(*before, -1)
    scale = _reciprocal_of_root(rows, epsilon)
    made = (rows * scale).reshape(data.shape) * computable(gamma)
    return made.astype(data.dtype, copy=False), _f32(scale).reshape(
        *before, *[1] * (data.ndim - first)
    )


def _sum(data: Array, skip: Array, bias: Array | None, *each: Array | None) -> Array:
    """``ValueError`` where the skip does not repeat along leading axes, or something has not a
    number for each of the last axis.
    """
    if (
        not data.ndim
        or skip.shape[-1:] != data.shape[-1:]
        or skip.shape not in _repeating(data.shape)
    ):
        expected = " or ".join(str(list(one)) for one in _repeating(data.shape))
        raise ValueError(f"the skip has shape {list(skip.shape)}, expected {expected}")
    for one in (bias, *each):
        if one is not None and one.shape != data.shape[-1:]:
            raise ValueError(
                f"gamma, beta or bias has shape {list(one.shape)}, expected {list(data.shape[-1:])}"
            )
    total = computable(data) + computable(skip)
    return total if bias is None else total + computable(bias)


def _repeating(shape: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The shapes that a skip may have."""
    whole = tuple(shape)
    return (whole, (1, *whole[1:]), whole[1:]) if len(whole) == 3 else (whole,)


def _scaled(values: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    scale = _reciprocal_of_root(values, epsilon)
    return values * scale * computable(gamma), scale


def _reciprocal_of_root(values: Array, epsilon: float) -> Array:
    square = means(np.square(values), -1)
    return np.asarray(np.reciprocal(np.sqrt(square + values.dtype.type(epsilon))))


def _f32(values: Array) -> Array:
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
    """Rows of tables for words, positions and segments added, and layer normalization of that.

    ``[B, S] -> [B, S, H]``; also how many 1 each row of the mask has (0 without a mask), and the
    sum.
    """
    if words.ndim != 2 or (segments is None) != (segment_table is None):
        raise ValueError(
            f"the words have shape {list(words.shape)}, expected [batch, length], and segments come with their table"
        )
    tables = [word_table, position_table, *([] if segment_table is None else [segment_table])]
    if (
        gamma.ndim != 1
        or beta.shape != gamma.shape
        or any(one.ndim != 2 or one.shape[1:] != gamma.shape for one in tables)
    ):
        shapes = [list(one.shape) for one in (*tables, gamma, beta)]
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
    made, _ = _scaled(total - mean, gamma, epsilon)
    made += computable(beta)
    counted = np.zeros(len(words), np.int32) if mask is None else (mask == 1).sum(1, dtype=np.int32)
    return made.astype(gamma.dtype, copy=False), counted, total.astype(gamma.dtype, copy=False)


def _rows(table: Array, places: Array, name: str) -> Array:
    if places.size and (places.min() < 0 or places.max() >= len(table)):
        raise ValueError(
            f"a {name} is {places.min()} or {places.max()}, and the table has {len(table)} rows"
        )
    return table[places]


def infer_skip(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """As the data; mean and deviation with one number for each row."""
    kind, shape = common_type(inputs), inputs[0].shape
    each = Known(
        ElementType.F32,
        DYNAMIC if shape.dimensions is None else PartialShape((*shape.dimensions[:-1], static(1))),
    )
    whole = Known(kind, shape)
    return whole, each, each, whole


def infer_embedding(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """[B, S, H], a count for each of B, and the sum like the first."""
    words, width = inputs[0].shape, inputs[5].shape
    if words.rank not in (None, 2):
        raise ValueError(f"the words have shape {words}, expected [batch, length]")
    whole = Known(
        inputs[2].element_type,
        PartialShape(
            (*(words.at(axis) for axis in (0, 1)), width.at(0) if width.rank else DYNAMIC.at(0))
        ),
    )
    return whole, Known(ElementType.I32, PartialShape((words.at(0),))), whole


def infer_normalized(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """As the data."""
    return (Known(inputs[0].element_type, inputs[0].shape),)


_EPSILON = Attribute("epsilon", "float", 1e-12)
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
        types=(
            frozenset({ElementType.I32}),
            frozenset({ElementType.I32}),
            *[FLOATING] * 5,
            frozenset({ElementType.I32}),
        ),
    ),
)

_ALONE = (
    Attribute("axis", "int", -1),
    Attribute("epsilon", "float", 1e-5),
    Attribute("stash_type", "int", 1),
)
IN_ONNX: tuple[Operation, ...] = (
    row(
        "LayerNormalization",
        layer_normalization,
        infer=infer_normalized,
        inputs=(2, 3),
        outputs=3,
        attributes=_ALONE,
        types=(FLOATING,),
    ),
    row(
        "SimplifiedLayerNormalization",
        simplified_layer_normalization,
        infer=infer_normalized,
        inputs=(2, 2),
        outputs=2,
        attributes=_ALONE,
        types=(FLOATING,),
    ),
)
"""What ONNX Runtime adds to ONNX's own domain: files optimized at an opset before 17 hold
LayerNormalization as well.
"""
