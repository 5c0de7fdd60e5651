"""Rotary position embedding of the domain com.microsoft: pairs of numbers turned by an angle
that follows from the position.
"""

from __future__ import annotations

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.infer import same
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.microsoft.scores import joined_heads, split_heads
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
    """``[B, S, N H]`` or ``[B, N, S, H]`` with the first numbers of each head turned, as wide as
    twice the tables.

    ``positions``: the first one of all, ``[1]``, or one for each token, ``[B, S]``. Without
    ``rotary_embedding_dim`` a head is as wide as twice the tables. ``scale`` has no effect, as in
    ONNX Runtime, whatever its page says.
    """
    if rotary_embedding_dim and not num_heads:
        raise ValueError(
            f"rotary_embedding_dim is {rotary_embedding_dim}, and num_heads is missing, which goes with it"
        )
    if data.ndim == 4:
        return turned(
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
    each = split_heads(data, heads, "the data")
    made = turned(
        each,
        positions,
        cosines,
        sines,
        interleaved=bool(interleaved),
        width=rotary_embedding_dim or each.shape[3],
    )
    return joined_heads(made)


def turned(
    data: Array, positions: Array, cosines: Array, sines: Array, *, interleaved: bool, width: int
) -> Array:
    """``[B, N, S, H]``: of each head the first ``width`` numbers, in pairs of neighbours or of
    the two halves.
    """
    batch, _, length, _ = data.shape
    if (
        cosines.shape != sines.shape
        or cosines.ndim != 2
        or 2 * cosines.shape[1] != width
        or width > data.shape[3]
    ):
        raise ValueError(
            f"tables of shape {list(cosines.shape)} and {list(sines.shape)} for heads of width {data.shape[3]}, "
            f"of which {width} numbers are turned: expected [positions, {width // 2}] twice"
        )
    places = _places(positions, batch, length)
    if places.size and not 0 <= places.min() <= places.max() < len(cosines):
        raise ValueError(
            f"positions of {places.min()} to {places.max()}, and the tables hold {len(cosines)}"
        )
    cosine, sine = (computable(table)[places][:, None] for table in (cosines, sines))
    wide = computable(data)
    pairs = (
        (slice(0, width, 2), slice(1, width, 2))
        if interleaved
        else (slice(0, width // 2), slice(width // 2, width))
    )
    real, imaginary = (wide[..., one] for one in pairs)
    made = np.empty(wide.shape, wide.dtype)
    np.subtract(cosine * real, sine * imaginary, out=made[..., pairs[0]])
    np.add(sine * real, cosine * imaginary, out=made[..., pairs[1]])
    made[..., width:] = wide[..., width:]
    return made.astype(data.dtype, copy=False)


def _places(positions: Array, batch: int, length: int) -> Array:
    """The position of each token, [B or 1, S]."""
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
