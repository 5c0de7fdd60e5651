"""Position biases of com.microsoft: binned distances as in T5, and biases with a gate.

ONNX Runtime computes GatedRelativePositionBias on GPUs only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.index import whole_number
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.precision import computable

_LENGTHS = frozenset({ElementType.I64})


def relative_position_bias(
    table: Array,
    query_length: Array,
    key_length: Array,
    /,
    *,
    max_distance: int,
    is_bidirectional: int,
) -> Array:
    """Return the bias of each distance between a query and a key.

    ``[buckets, heads], [], [] -> [1, heads, Q, K]``. The table is stored column by column. Half of
    the buckets hold one distance each; the others hold logarithmic ranges up to ``max_distance``.
    """
    queries, keys = whole_number(query_length), whole_number(key_length)
    if table.ndim != 2 or queries < 1 or keys < 1 or max_distance < 1:
        raise ValueError(
            f"a table of shape {list(table.shape)}, lengths {queries} and {keys} and the largest "
            f"distance {max_distance}, expected [buckets, heads] and positive numbers"
        )
    check_elements(queries * keys * table.shape[1], "the position bias")
    distance = np.arange(queries)[:, None] - np.arange(keys)
    bucket = _buckets(distance, len(table), max_distance, bool(is_bidirectional))
    return table.reshape(table.shape[::-1])[:, bucket][None]


def _buckets(distance: Array, count: int, max_distance: int, is_bidirectional: bool) -> Array:
    """Return the bucket of each distance (query minus key), as Mesh TensorFlow defines it."""
    base = np.zeros_like(distance)
    if is_bidirectional:
        count //= 2
        base = np.where(distance < 0, count, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(distance, 0)
    exact = count // 2
    with np.errstate(divide="ignore"):
        scale = np.log(distance.astype(np.float32) / np.float32(exact)) / np.float32(
            math.log(max_distance / exact)
        )
    large = exact + np.where(distance > 0, scale * (count - exact), 0).astype(np.int64)
    return base + np.where(distance < exact, distance, np.minimum(large, count - 1))


def gated_relative_position_bias(
    query: Array,
    query_bias: Array,
    relative: Array,
    weight: Array,
    bias: Array,
    factor: Array,
    offsets: Array | None = None,
    /,
    *,
    num_heads: int,
) -> Array:
    """Return a position bias times a gate that is computed from the queries (WavLM).

    ``[B, S, N H], [N H], [1, N, S, S], [H, D], [D], [1, N, 1, 1] -> [B, N, S, S]``. With
    ``offsets``, the queries are rows of tokens ``[T, N H]``.
    """
    if offsets is not None:
        padded = np.zeros((offsets.size, query.shape[-1]), query.dtype)
        padded[offsets.reshape(-1)[: len(query)]] = query
        query = padded.reshape(*offsets.shape, -1)
    if query.ndim != 3 or num_heads < 1 or query.shape[2] % num_heads or weight.shape[-1] % 2:
        raise ValueError(
            f"the query has shape {list(query.shape)}, and the weight {list(weight.shape)}, "
            f"expected [batch, length, a multiple of {num_heads} heads] and an even last length"
        )
    batch, length, width = query.shape
    layer = (computable(query) + computable(query_bias)).reshape(
        batch, length, num_heads, width // num_heads
    )
    projected = layer.swapaxes(1, 2) @ computable(weight) + computable(bias)
    halves = projected.reshape(batch, num_heads, length, 2, -1).sum(-1)
    gate, reset = (1 / (1 + np.exp(-halves[..., number])) for number in range(2))
    scale = gate[..., None] * (reset[..., None] * computable(factor) - 1) + 2
    return (scale * computable(relative)).astype(query.dtype, copy=False)


def infer_binned(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the number of heads, and the lengths if they are known."""
    heads = inputs[0].shape.at(1) if inputs[0].shape.rank == 2 else None
    lengths = [None if known.value is None else whole_number(known.value) for known in inputs[1:3]]
    return (Known(inputs[0].element_type, PartialShape.of((static(1), heads, *lengths))),)


def infer_gated(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the batch of the queries and the shape of the relative bias."""
    query, relative = inputs[0].shape, inputs[2].shape
    batch = query.at(0) if query.rank == 3 else None
    rest = [relative.at(axis) if relative.rank == 4 else None for axis in (1, 2, 3)]
    return (Known(inputs[0].element_type, PartialShape.of((batch, *rest))),)


OPERATIONS: tuple[Operation, ...] = (
    row(
        "RelativePositionBias",
        relative_position_bias,
        infer=infer_binned,
        inputs=(3, 3),
        attributes=(
            Attribute("max_distance", "int"),
            Attribute("is_bidirectional", "int", 0),
        ),
        types=(FLOATING, _LENGTHS, _LENGTHS),
    ),
    row(
        "GatedRelativePositionBias",
        gated_relative_position_bias,
        infer=infer_gated,
        inputs=(6, 7),
        attributes=(Attribute("num_heads", "int"),),
        types=(*[FLOATING] * 6, frozenset({ElementType.I32})),
    ),
)
