"""Category sparse of the OpenVINO operation specs: reduced bags and segments of rows, filled empty
rows of sparse matrices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INDEX_TYPES, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import reduction as gradients
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_arithmetic import accumulator
from loopscope.ops.kernel_checks import check_elements, positions, positions_within, whole_number


def embedding_bag_offsets(
    emb_table: Array,
    indices: Array,
    offsets: Array,
    default_index: Array | None = None,
    per_sample_weights: Array | None = None,
    /,
    *,
    reduction: str = "sum",
) -> Array:
    """Reduce rows of ``emb_table`` at ``indices`` [n] within bags.

    The bags begin at ``offsets`` [batch]; the result is [batch, ...].
    """
    starts = np.asarray(positions(offsets))
    if starts.ndim != 1:
        raise ValueError(f"offsets of shape {list(starts.shape)}, expected [batch]")
    if starts.size and (
        starts.min() < 0 or starts.max() > indices.size or np.diff(starts).min(initial=0) < 0
    ):
        raise ValueError(
            f"offsets from {starts.min()} to {starts.max()} are not ascending "
            f"positions in {indices.size} indices"
        )
    # Indices before the first offset belong to no bag.
    sizes = np.diff(starts, append=indices.size)
    first = int(starts[0]) if starts.size else indices.size
    bags = np.repeat(np.arange(starts.size), sizes)
    weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)[first:]
    return _reduce_bags(
        emb_table, indices.reshape(-1)[first:], bags, starts.size, default_index, weights, reduction
    )


def embedding_bag_packed(
    emb_table: Array,
    indices: Array,
    per_sample_weights: Array | None = None,
    /,
    *,
    reduction: str = "sum",
) -> Array:
    """Reduce rows of ``emb_table`` at ``indices`` [batch, per bag] within each bag.

    The result is [batch, ...].
    """
    if indices.ndim != 2:
        raise ValueError(
            f"indices of shape {list(indices.shape)}, expected [batch, indices per bag]"
        )
    bags = np.repeat(np.arange(indices.shape[0]), indices.shape[1])
    weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    return _reduce_bags(
        emb_table, indices.reshape(-1), bags, indices.shape[0], None, weights, reduction
    )


def embedding_segments_sum(
    emb_table: Array,
    indices: Array,
    segment_ids: Array,
    num_segments: Array,
    default_index: Array | None = None,
    per_sample_weights: Array | None = None,
    /,
) -> Array:
    """Sum rows of ``emb_table`` at ``indices`` [n] within segments.

    ``segment_ids`` [n] is the segment of each index; the result is [num_segments, ...].
    """
    count = whole_number(num_segments)
    ids = np.asarray(positions(segment_ids))
    if (
        ids.shape != (indices.size,)
        or (per_sample_weights is not None and per_sample_weights.shape != ids.shape)
        or (ids.size and (ids.min() < 0 or np.diff(ids).min(initial=0) < 0))
    ):
        raise ValueError(
            f"segment ids of shape {list(ids.shape)} are not ascending numbers, one "
            f"for each of {indices.size} indices"
        )
    # Segments beyond num_segments are dropped, as in tf.sparse.segment_sum.
    inside = ids < count
    weights = None if per_sample_weights is None else per_sample_weights[inside]
    return _reduce_bags(
        emb_table, indices.reshape(-1)[inside], ids[inside], count, default_index, weights, "sum"
    )


def _reduce_bags(
    table: Array,
    indices: Array,
    bags: np.ndarray,
    count: int,
    default_index: Array | None,
    weights: Array | None,
    reduction: str,
) -> Array:
    """Reduce the rows of each bag.

    Bags are ascending, so that each is a run of rows. An empty bag is the default row, or zeros.
    """
    if weights is not None and reduction == "mean":
        raise ValueError("per_sample_weights are not supported with reduction 'mean'")
    if (
        table.ndim == 0
        or indices.ndim != 1
        or (weights is not None and weights.shape != indices.shape)
    ):
        raise ValueError(
            f"a table of shape {list(table.shape)}, {indices.size} indices, "
            f"{'no' if weights is None else weights.size} weights"
        )
    check_elements(count * max(math.prod(table.shape[1:]), 1), "the reduced embeddings")
    wide = accumulator(table.dtype)
    rows = table.take(positions_within(indices, len(table), "index"), 0).astype(wide)
    after = (1,) * (table.ndim - 1)
    if weights is not None:
        rows = rows * weights.astype(wide).reshape((-1, *after))
    result = np.zeros((count, *table.shape[1:]), wide)
    sizes = np.bincount(bags, minlength=count)
    filled = np.flatnonzero(sizes)
    if filled.size:
        result[filled] = _sums(rows, sizes[filled])
    if reduction == "mean":
        sums, divisor = result[filled], sizes[filled].reshape((-1, *after)).astype(wide)
        result[filled] = sums / divisor if wide.kind == "f" else np.fix(sums / divisor)
    default = -1 if default_index is None else whole_number(default_index)
    if default != -1:
        result[sizes == 0] = table[
            positions_within(np.asarray(default), len(table), "default index")
        ]
    return result.astype(table.dtype)


def _sums(rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sum runs of at least one row; runs of equal length take a path that is many times faster."""
    if sizes.min() == sizes.max():
        even: np.ndarray = rows.reshape((len(sizes), sizes[0], *rows.shape[1:])).sum(
            1, dtype=rows.dtype
        )
        return even
    return np.add.reduceat(rows, np.cumsum(sizes) - sizes, axis=0, dtype=rows.dtype)


def _infer_bag_offsets(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    table, offsets = inputs[0], inputs[2]
    element_type = common_type([table, *inputs[4:5]])
    batch = offsets.shape.at(0) if offsets.shape.rank == 1 else UNKNOWN
    return (Known(element_type, _with_rows(table.shape, batch)),)


def _infer_bag_packed(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    table, indices = inputs[:2]
    element_type = common_type([table, *inputs[2:3]])
    batch = indices.shape.at(0) if indices.shape.rank == 2 else UNKNOWN
    return (Known(element_type, _with_rows(table.shape, batch)),)


def _infer_segments_sum(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    table, count = inputs[0], inputs[3]
    element_type = common_type([table, *inputs[5:6]])
    return (
        Known(
            element_type,
            _with_rows(
                table.shape, UNKNOWN if count.value is None else static(whole_number(count.value))
            ),
        ),
    )


def _with_rows(shape: PartialShape, rows: Dimension) -> PartialShape:
    return DYNAMIC if not shape.dimensions else PartialShape((rows, *shape.dimensions[1:]))


def sparse_fill_empty_rows(
    values: Array, dense_shape: Array, indices: Array, default_value: Array, /
) -> tuple[Array, ...]:
    """Put ``default_value`` into column 0 of each empty row of a sparse matrix.

    The matrix is ``values`` [n] at ``indices`` [n, 2]. Return indices and values in row order, and
    [rows] booleans that are true for the rows that were empty.
    """
    if indices.shape != (values.size, 2) or dense_shape.size != 2:
        raise ValueError(
            f"{values.size} values, indices of shape {list(indices.shape)}: expected [values, 2]"
        )
    rows, columns = positions(dense_shape).reshape(-1).tolist()
    check_elements(max(rows, 0), "the row indicator")
    cells = np.asarray(positions(indices))
    if cells.size and (
        cells.min() < 0 or cells[:, 0].max() >= rows or cells[:, 1].max() >= columns
    ):
        raise ValueError(f"indices lie outside a matrix of {rows} rows and {columns} columns")
    empty = np.bincount(cells[:, 0], minlength=rows) == 0
    added = np.flatnonzero(empty)
    all_cells = np.concatenate([cells, np.stack([added, np.zeros_like(added)], 1)])
    all_values = np.concatenate(
        [values.reshape(-1), np.broadcast_to(default_value.reshape(()), added.shape)]
    )
    order = np.lexsort((all_cells[:, 1], all_cells[:, 0]))
    return all_cells[order].astype(indices.dtype), all_values[order].astype(values.dtype), empty


def _infer_fill(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    values, dense_shape, indices, default_value = inputs
    element_type = common_type([values, default_value])
    count = values.shape.at(0) if values.shape.rank == 1 else UNKNOWN
    rows = (
        UNKNOWN
        if dense_shape.value is None or dense_shape.value.size != 2
        else static(max(int(dense_shape.value.reshape(-1)[0]), 0))
    )
    known = Dimension(
        max(count.least, rows.least),
        None if count.most is None or rows.most is None else count.most + rows.most,
    )
    return (
        Known(indices.element_type, PartialShape((known, static(2)))),
        Known(element_type, PartialShape((known,))),
        Known(ElementType.BOOLEAN, PartialShape((rows,))),
    )


_REDUCTION = Attribute("reduction", "str", "sum", ("sum", "mean"))

row = family("sparse")
offsets_row = family(
    "sparse",
    infer=_infer_bag_offsets,
    inputs=(3, 5),
    types=(NUMERIC, INDEX_TYPES, INDEX_TYPES, INDEX_TYPES, NUMERIC),
    gradient=gradients.embedding_bag_offsets,
)
packed_row = family(
    "sparse",
    infer=_infer_bag_packed,
    inputs=(2, 3),
    types=(NUMERIC, INDEX_TYPES, NUMERIC),
    gradient=gradients.embedding_bag_packed,
)

OPERATIONS: tuple[Operation, ...] = (
    offsets_row("EmbeddingBagOffsetsSum", embedding_bag_offsets, version=3),
    offsets_row("EmbeddingBagOffsets", embedding_bag_offsets, version=15, attributes=(_REDUCTION,)),
    packed_row("EmbeddingBagPackedSum", embedding_bag_packed, version=3),
    packed_row("EmbeddingBagPacked", embedding_bag_packed, version=15, attributes=(_REDUCTION,)),
    row(
        "EmbeddingSegmentsSum",
        embedding_segments_sum,
        version=3,
        infer=_infer_segments_sum,
        inputs=(4, 6),
        types=(NUMERIC, INDEX_TYPES, INDEX_TYPES, INDEX_TYPES, INDEX_TYPES, NUMERIC),
        gradient=gradients.embedding_segments_sum,
    ),
    row(
        "SparseFillEmptyRows",
        sparse_fill_empty_rows,
        version=16,
        page="sparse/fill-empty-rows-16",
        infer=_infer_fill,
        inputs=(4, 4),
        outputs=3,
        types=(ANY_TYPE, INDEX_TYPES, INDEX_TYPES, ANY_TYPE),
    ),
)
