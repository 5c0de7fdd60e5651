"""Derivatives of embedding bags: each table row gets the sum of the adjoints of its bags."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value

_FIRST, _ROW = np.array(0), np.array([-1])


def embedding_bag_offsets(node: Reverse, /) -> Adjoints:
    """Return the adjoints of bags that begin at offsets.

    Indices before the first offset are unused.
    """
    table, indices, offsets, *rest = node.inputs
    flat = node.ops.reshape(indices, _ROW, special_zero=False)
    count = node.ops.reshape(node.shape_of(flat), np.zeros(0, np.int64), special_zero=False)
    positions = node.ops.range(np.int64(0), count, np.int64(1), output_type="i64")
    starts = node.ops.convert(offsets, destination_type="i64")
    bags = node.ops.bucketize(positions, starts, output_type="i64", with_right_bound=False) - 1
    of_table, of_weights = _adjoints(node, table, flat, bags, rest)
    return of_table, None, None, *[None] * len(rest[:1]), *of_weights


def embedding_bag_packed(node: Reverse, /) -> Adjoints:
    """Return the adjoints of bags that are rows of indices."""
    table, indices, *weights = node.inputs
    batch = node.ops.gather(node.shape_of(indices), _FIRST, _FIRST, batch_dims=0)
    rows = node.ops.unsqueeze(
        node.ops.range(np.int64(0), batch, np.int64(1), output_type="i64"), np.array([1])
    )
    bags = node.ops.reshape(
        node.ops.broadcast(rows, node.shape_of(indices), mode="numpy"), _ROW, special_zero=False
    )
    no_default = node.constant(np.array(-1, np.int64))
    flat = node.ops.reshape(indices, _ROW, special_zero=False)
    of_table, of_weights = _adjoints(node, table, flat, bags, [no_default, *weights])
    return of_table, None, *of_weights


def embedding_segments_sum(node: Reverse, /) -> Adjoints:
    """Return the adjoints of indices with segment numbers; segments beyond the last are dropped."""
    table, indices, segments, _, *rest = node.inputs
    bags = node.ops.convert(segments, destination_type="i64")
    of_table, of_weights = _adjoints(node, table, indices, bags, rest)
    return of_table, None, None, None, *[None] * len(rest[:1]), *of_weights


def _adjoints(
    node: Reverse, table: Value, indices: Value, bags: Value, rest: Sequence[Value]
) -> tuple[Value, list[Value]]:
    """Return the adjoints of the table and of the weights, if any.

    ``rest`` is the default index and the weights.
    """
    if node.attributes.get("reduction", "sum") != "sum":
        raise ValueError(
            f"reduction is {node.attributes['reduction']!r}: only 'sum' has a derivative here"
        )
    if table.rank is None:
        raise ValueError("the rank of the table is not known: give the model's inputs their ranks")
    inner = np.arange(1, table.rank)
    count = node.ops.gather(node.shape_of(node.outputs[0]), _FIRST, _FIRST, batch_dims=0)
    inside = node.ops.logical_and(
        node.ops.greater_equal(bags, np.int64(0)), node.ops.less(bags, count)
    )
    safe = node.ops.select(inside, bags, np.int64(0))
    of_rows = node.where(
        _expand(node, inside, inner), node.ops.gather(node.adjoint, safe, _FIRST, batch_dims=0)
    )
    weighted, of_weights = of_rows, []
    if len(rest) > 1:
        weights = node.ops.reshape(rest[1], _ROW, special_zero=False)
        weighted = of_rows * _expand(node, weights, inner)
        product = of_rows * node.ops.gather(table, indices, _FIRST, batch_dims=0)
        of_weights = [
            node.reshaped(
                node.ops.reduce_sum(product, inner, keep_dims=False) if inner.size else product,
                rest[1],
            )
        ]
    places = node.ops.unsqueeze(indices, _ROW)
    of_table = node.ops.scatter_nd_update(node.zeros_like(table), places, weighted, reduction="sum")
    return (
        _with_default(node, of_table, rest[0], inside, safe, count, inner) if rest else of_table
    ), of_weights


def _with_default(
    node: Reverse,
    of_table: Value,
    default: Value,
    inside: Value,
    bags: Value,
    count: Value,
    inner: np.ndarray,
) -> Value:
    """Add the adjoints of empty bags to the default row.

    The index -1 means that no default exists.
    """
    if default.known.value is not None and int(default.known.value.reshape(())) == -1:
        return of_table
    index = node.ops.reshape(
        node.ops.convert(default, destination_type="i64"), np.array([1, 1]), special_zero=False
    )
    has_default = node.ops.not_equal(
        node.ops.reshape(index, np.array([1]), special_zero=False), np.int64(-1)
    )
    ones = node.ops.select(inside, np.int64(1), np.int64(0))
    blank = node.ops.broadcast(
        np.int64(0), node.ops.reshape(count, np.array([1]), special_zero=False), mode="numpy"
    )
    sizes = node.ops.scatter_elements_update(
        blank, bags, ones, _FIRST, reduction="sum", use_init_val=True
    )
    empty = node.ops.logical_and(node.ops.equal(sizes, np.int64(0)), has_default)
    of_empty = node.ops.reduce_sum(
        node.where(_expand(node, empty, inner), node.adjoint), np.array([0]), keep_dims=True
    )
    safe = node.ops.maximum(index, np.int64(0))
    return node.ops.scatter_nd_update(of_table, safe, of_empty, reduction="sum")


def _expand(node: Reverse, row: Value, inner: np.ndarray) -> Value:
    """Append an axis of length 1 to ``[n]`` for each inner axis of the table."""
    return node.ops.unsqueeze(row, inner) if inner.size else row
