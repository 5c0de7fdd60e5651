"""SparseAttention of com.microsoft: causal attention to some blocks of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_checks import whole_number
from loopscope.ops.microsoft.grouped import group_query_attention
from loopscope.ops.microsoft.row import FLOATING, row


def sparse_attention(
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array,
    past_value: Array,
    block_rows: Array,
    block_columns: Array,
    total_length: Array,
    key_totals: Array,
    cosines: Array | None = None,
    sines: Array | None = None,
    /,
    *,
    num_heads: int,
    kv_num_heads: int,
    scale: float | None,
    do_rotary: int,
    rotary_interleaved: int,
    sparse_block_size: int,
) -> tuple[Array, ...]:
    """Compute causal attention over a buffer of keys and values, limited to blocks of tokens.

    Inputs are those of GroupQueryAttention. ``block_rows [L, blocks + 1]`` and ``block_columns [L,
    nonzeros]`` are the visible blocks of L layouts, by rows; heads use the layouts in turn.
    """
    layouts = _layouts(block_rows, block_columns)
    totals, longest = key_totals.reshape(-1).astype(np.int64), whole_number(total_length)
    if (totals != longest).any():
        raise ValueError(
            f"the sequences have {totals[:8].tolist()} tokens, expected {longest} in each: ONNX "
            "Runtime's CPU does not define what shorter ones attend to"
        )
    before, length = totals - query.shape[1], query.shape[1]
    visible = _visible_tokens(layouts, before, length, longest, num_heads, sparse_block_size)
    return group_query_attention(
        query,
        key,
        value,
        past_key,
        past_value,
        totals - 1,
        total_length,
        cosines,
        sines,
        None,
        np.where(visible, 0, -np.inf).astype(np.float32),
        outputs=3,
        num_heads=num_heads,
        kv_num_heads=kv_num_heads,
        do_rotary=do_rotary,
        rotary_interleaved=rotary_interleaved,
        scale=scale,
        softcap=None,
        smooth_softmax=0,
        causal=1,
        local_window_size=-1,
        sliding_window_cache=0,
        qk_output=0,
        k_quant_type="NONE",
        v_quant_type="NONE",
        kv_cache_bit_width=None,
        qk_norm_epsilon=0.0,
    )


def _visible_tokens(
    layouts: Array, before: Array, length: int, longest: int, heads: int, block_size: int
) -> Array:
    """Return True for the tokens in visible blocks, ``[B, N, S, T]``."""
    rows = (before[:, None] + np.arange(length)) // block_size
    columns = np.arange(longest) // block_size
    blocks = layouts.shape[1]
    if (rows >= blocks).any() or (columns >= blocks).any() or (rows < 0).any():
        raise ValueError(f"{longest} tokens are more than {blocks} blocks of {block_size} tokens")
    by_head = layouts[np.arange(heads) % len(layouts)]
    visible: Array = by_head[:, rows[:, :, None], columns[None, None]].swapaxes(0, 1)
    return visible


def _layouts(rows: Array, columns: Array) -> Array:
    """Return the visible blocks of each layout, ``[L, blocks, blocks]``."""
    if rows.ndim != 2 or columns.ndim != 2 or len(rows) != len(columns) or not len(rows):
        raise ValueError(
            f"the block mask has row indices {list(rows.shape)} and column indices "
            f"{list(columns.shape)}, expected [layouts, blocks + 1] and [layouts, nonzeros]"
        )
    blocks = rows.shape[1] - 1
    result = np.zeros((len(rows), blocks, blocks), np.bool_)
    for layout, (starts, indices) in enumerate(zip(rows, columns, strict=True)):
        counts = np.diff(starts)
        used = indices[: int(starts[-1])]
        if (counts < 0).any() or len(used) != counts.sum() or ((used < 0) | (used >= blocks)).any():
            raise ValueError(f"the row and column indices of layout {layout} are not a block mask")
        result[layout, np.repeat(np.arange(blocks), counts), used] = True
    return result


def infer_sparse_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch and length from the query, the width from separate queries, and the caches."""
    query, past_key, past_value = (inputs[number] for number in (0, 3, 4))
    key = inputs[1]
    is_packed = key.element_type is None and key.shape.rank is None
    width = UNKNOWN if is_packed else query.shape.at(2)
    heads = past_key.shape.at(3)
    if is_packed and heads.is_static:
        width = static(max(attributes["num_heads"], 0) * heads.length)
    shape = PartialShape((query.shape.at(0), query.shape.at(1), width))
    kind = query.element_type
    return Known(kind, shape), Known(kind, past_key.shape), Known(kind, past_value.shape)


_INDEX = frozenset({ElementType.I32})
OPERATIONS: tuple[Operation, ...] = (
    row(
        "SparseAttention",
        sparse_attention,
        infer=infer_sparse_attention,
        inputs=(9, 11),
        optional_inputs=frozenset({1, 2}),
        outputs=3,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("kv_num_heads", "int", least=1),
            Attribute("scale", "float", None),
            Attribute("do_rotary", "int", 0),
            Attribute("rotary_interleaved", "int", 0),
            Attribute("sparse_block_size", "int", least=1),
        ),
        types=(*[FLOATING] * 5, *[_INDEX] * 4, FLOATING),
    ),
)
