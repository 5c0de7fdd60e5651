"""Rotary position embedding of com.microsoft: rotation of pairs by position-dependent angles."""

from __future__ import annotations

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.infer import same
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.microsoft.scores import join_heads, split_heads
from loopscope.ops.precision import computable


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
