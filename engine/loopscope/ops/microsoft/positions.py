"""Position encodings of com.microsoft: rotary embedding and position biases.

Pairs are rotated by position-dependent angles. Biases have binned distances as in T5, or a gate.
ONNX Runtime computes GatedRelativePositionBias on GPUs only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import same
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import check_elements, whole_number
from loopscope.ops.microsoft.attention_heads import join_heads, split_heads
from loopscope.ops.microsoft.row import FLOATING, row


def rotary_embedding(
    data: Array,
    positions: Array,
    cosines: Array,
    sines: Array,
    /,
    *,
    num_heads: int | None,
    rotary_embedding_dim: int | None,
    interleaved: int | None,
    is_packed_batching: int | None,
    scale: float | None,
) -> Array:
    """Rotate the first numbers of each head in ``[B, S, N H]`` or ``[B, N, S, H]``.

    Their number is twice the width of the tables. ``positions`` is the first position of all,
    ``[1]``, or a position per token, ``[B, S]``. Without ``rotary_embedding_dim``, a head is twice
    as wide as the tables. ``scale`` has no effect, as in ONNX Runtime, contrary to its
    documentation.
    """
    if rotary_embedding_dim and not num_heads:
        raise ValueError(
            f"rotary_embedding_dim is {rotary_embedding_dim}, "
            "and num_heads is missing, which goes with it"
        )
    if data.ndim == 4:
        return rotate(
            data,
            positions,
            cosines,
            sines,
            interleaved=bool(interleaved),
            width=rotary_embedding_dim or data.shape[3],
        )
    if data.ndim != 3 or cosines.ndim != 2:
        raise ValueError(
            f"the data has shape {list(data.shape)}, expected [B, S, N H] or [B, N, S, H]"
        )
    heads = (
        num_heads
        if rotary_embedding_dim and num_heads
        else data.shape[2] // max(2 * cosines.shape[1], 1)
    )
    split = split_heads(data, heads, "the data")
    rotated = rotate(
        split,
        positions,
        cosines,
        sines,
        interleaved=bool(interleaved),
        width=rotary_embedding_dim or split.shape[3],
    )
    return join_heads(rotated)


def rotate(
    data: Array, positions: Array, cosines: Array, sines: Array, *, interleaved: bool, width: int
) -> Array:
    """Rotate the first ``width`` numbers of each head in ``[B, N, S, H]``.

    A pair consists of neighbours if ``interleaved``, else of corresponding numbers of both halves.
    """
    batch, _, length, _ = data.shape
    if (
        cosines.shape != sines.shape
        or cosines.ndim != 2
        or 2 * cosines.shape[1] != width
        or width > data.shape[3]
    ):
        raise ValueError(
            f"tables of shape {list(cosines.shape)} and {list(sines.shape)} for heads of width "
            f"{data.shape[3]}, of which {width} numbers are turned: "
            f"expected [positions, {width // 2}] twice"
        )
    rows = _token_positions(positions, batch, length)
    if rows.size and not 0 <= rows.min() <= rows.max() < len(cosines):
        raise ValueError(
            f"positions of {rows.min()} to {rows.max()}, and the tables hold {len(cosines)}"
        )
    cosine, sine = (computable(table)[rows][:, None] for table in (cosines, sines))
    values = computable(data)
    pairs = (
        (slice(0, width, 2), slice(1, width, 2))
        if interleaved
        else (slice(0, width // 2), slice(width // 2, width))
    )
    real, imaginary = (values[..., part] for part in pairs)
    result = np.empty(values.shape, values.dtype)
    np.subtract(cosine * real, sine * imaginary, out=result[..., pairs[0]])
    np.add(sine * real, cosine * imaginary, out=result[..., pairs[1]])
    result[..., width:] = values[..., width:]
    return result.astype(data.dtype, copy=False)


def positions_after(
    before: Sequence[int], length: int, positions: Array | None, first_prompt: bool
) -> Array:
    """Return the position of each new token after the cached ones, ``[B, S]``.

    A first prompt has consecutive positions from the first given one, as ONNX Runtime documents.
    """
    if positions is None or (first_prompt and not positions.size):
        return np.array(before)[:, None] + np.arange(length)
    return (
        np.full((len(before), 1), positions.reshape(-1)[0]) + np.arange(length)
        if first_prompt
        else positions
    )


def rotate_queries_and_keys(
    queries: Array,
    keys: Array,
    places: Array,
    cosines: Array | None,
    sines: Array | None,
    interleaved: bool,
) -> tuple[Array, Array]:
    """Rotate as many numbers of each head as the tables are wide."""
    if cosines is None or sines is None:
        raise ValueError("do_rotary is 1, and cos_cache or sin_cache is left out")
    width = 2 * cosines.shape[-1]
    query, key = (
        rotate(tensor, places, cosines, sines, interleaved=interleaved, width=width)
        for tensor in (queries, keys)
    )
    return query, key


def _token_positions(positions: Array, batch: int, length: int) -> Array:
    """Return the position of each token, [B or 1, S]."""
    if positions.size == 1 and positions.ndim < 2:
        return (positions.reshape(1, 1) + np.arange(length)).astype(np.int64)
    if positions.shape != (batch, length):
        raise ValueError(
            f"position_ids has shape {list(positions.shape)}, expected [1] or [{batch}, {length}]"
        )
    return positions


OPERATIONS: tuple[Operation, ...] = (
    row(
        "RotaryEmbedding",
        rotary_embedding,
        infer=same,
        inputs=(4, 4),
        attributes=(
            Attribute("num_heads", "int", None),
            Attribute("rotary_embedding_dim", "int", None),
            Attribute("interleaved", "int", None),
            Attribute("is_packed_batching", "int", None),
            Attribute("scale", "float", None),
        ),
        types=(FLOATING, frozenset({ElementType.I64}), FLOATING, FLOATING),
    ),
)


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


BIASES: tuple[Operation, ...] = (
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
