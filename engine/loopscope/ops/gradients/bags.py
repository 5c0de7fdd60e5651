"""Derivatives of embedding bags: each row of the table gets the sum of what the bags it is in
got.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value

_FIRST, _ROW = np.array(0), np.array([-1])


def embedding_bag_offsets(at: Reverse, /) -> Adjoints:
    """Bags begin at offsets; indices before the first one are in none."""
    table, indices, offsets, *rest = at.inputs
    flat = at.ops.reshape(indices, _ROW, special_zero=False)
    count = at.ops.reshape(at.shape_of(flat), np.zeros(0, np.int64), special_zero=False)
    places = at.ops.range(np.int64(0), count, np.int64(1), output_type="i64")
    starts = at.ops.convert(offsets, destination_type="i64")
    bags = at.ops.bucketize(places, starts, output_type="i64", with_right_bound=False) - 1
    of_table, of_weights = _through(at, table, flat, bags, rest)
    return of_table, None, None, *[None] * len(rest[:1]), *of_weights


def embedding_bag_packed(at: Reverse, /) -> Adjoints:
    """Each row of indices is a bag."""
    table, indices, *weights = at.inputs
    batch = at.ops.gather(at.shape_of(indices), _FIRST, _FIRST, batch_dims=0)
    rows = at.ops.unsqueeze(
        at.ops.range(np.int64(0), batch, np.int64(1), output_type="i64"), np.array([1])
    )
    bags = at.ops.reshape(
        at.ops.broadcast(rows, at.shape_of(indices), mode="numpy"), _ROW, special_zero=False
    )
    none = at.constant(np.array(-1, np.int64))
    flat = at.ops.reshape(indices, _ROW, special_zero=False)
    of_table, of_weights = _through(at, table, flat, bags, [none, *weights])
    return of_table, None, *of_weights


def embedding_segments_sum(at: Reverse, /) -> Adjoints:
    """Each index has the number of its segment; those beyond the last are dropped."""
    table, indices, segments, _, *rest = at.inputs
    bags = at.ops.convert(segments, destination_type="i64")
    of_table, of_weights = _through(at, table, indices, bags, rest)
    return of_table, None, None, None, *[None] * len(rest[:1]), *of_weights


def _through(
    at: Reverse, table: Value, indices: Value, bags: Value, rest: Sequence[Value]
) -> tuple[Value, list[Value]]:
    """Of the table and of the weights, where there are any; ``rest`` is the default index and
    the weights.
    """
    if at.attributes.get("reduction", "sum") != "sum":
        raise ValueError(
            f"reduction is {at.attributes['reduction']!r}: only 'sum' has a derivative here"
        )
    if table.rank is None:
        raise ValueError("the rank of the table is not known: give the model's inputs their ranks")
    inner = np.arange(1, table.rank)
    count = at.ops.gather(at.shape_of(at.outputs[0]), _FIRST, _FIRST, batch_dims=0)
    inside = at.ops.logical_and(at.ops.greater_equal(bags, np.int64(0)), at.ops.less(bags, count))
    safe = at.ops.select(inside, bags, np.int64(0))
    got = at.where(_after(at, inside, inner), at.ops.gather(at.adjoint, safe, _FIRST, batch_dims=0))
    weighed, of_weights = got, []
    if len(rest) > 1:
        weights = at.ops.reshape(rest[1], _ROW, special_zero=False)
        weighed = got * _after(at, weights, inner)
        product = got * at.ops.gather(table, indices, _FIRST, batch_dims=0)
        of_weights = [
            at.reshaped(
                at.ops.reduce_sum(product, inner, keep_dims=False) if inner.size else product,
                rest[1],
            )
        ]
    places = at.ops.unsqueeze(indices, _ROW)
    of_table = at.ops.scatter_nd_update(at.zeros_like(table), places, weighed, reduction="sum")
    return (
        _with_default(at, of_table, rest[0], inside, safe, count, inner) if rest else of_table
    ), of_weights


def _with_default(
    at: Reverse,
    of_table: Value,
    default: Value,
    inside: Value,
    bags: Value,
    count: Value,
    inner: np.ndarray,
) -> Value:
    """The default row got what the empty bags got; -1 says that there is none."""
    if default.known.value is not None and int(default.known.value.reshape(())) == -1:
        return of_table
    index = at.ops.reshape(
        at.ops.convert(default, destination_type="i64"), np.array([1, 1]), special_zero=False
    )
    there = at.ops.not_equal(at.ops.reshape(index, np.array([1]), special_zero=False), np.int64(-1))
    ones = at.ops.select(inside, np.int64(1), np.int64(0))
    blank = at.ops.broadcast(
        np.int64(0), at.ops.reshape(count, np.array([1]), special_zero=False), mode="numpy"
    )
    sizes = at.ops.scatter_elements_update(
        blank, bags, ones, _FIRST, reduction="sum", use_init_val=True
    )
    empty = at.ops.logical_and(at.ops.equal(sizes, np.int64(0)), there)
    got = at.ops.reduce_sum(
        at.where(_after(at, empty, inner), at.adjoint), np.array([0]), keep_dims=True
    )
    safe = at.ops.maximum(index, np.int64(0))
    return at.ops.scatter_nd_update(of_table, safe, got, reduction="sum")


def _after(at: Reverse, row: Value, inner: np.ndarray) -> Value:
    """``[n]`` with an axis of length 1 for each inner one of the table."""
    return at.ops.unsqueeze(row, inner) if inner.size else row
