"""The derivative of attention: the weights are computed again from queries and keys."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.derivative import Adjoints, Reverse, Value

_LAST = np.array([-1])


def scaled_dot_product_attention(at: Reverse, /) -> Adjoints:
    """Of query, key, value, a mask of floats, the scale and the sink."""
    query, key, value, *rest = at.inputs
    mask, scale, sink = [*rest, None, None, None][:3]
    products = product(at, query, key, False, True)
    factor = scale_of(at, query, scale)
    scores = _masked(at, products * factor, mask)
    weights, of_sink = _weights(at, scores, mask, sink)
    of_weights = at.sum_to(product(at, at.adjoint, value, False, True), weights)
    pulled = at.ops.reduce_sum(of_weights * weights, _LAST, keep_dims=True)
    of_scores = weights * (of_weights - pulled)
    if (
        not at.attributes["causal"]
        and mask is not None
        and mask.rank != 0
        and mask.element_type is ElementType.BOOLEAN
    ):
        of_scores = at.where(mask, of_scores)
    of_products = at.sum_to(of_scores, products)
    scaled = of_products * factor
    found: list[Value | None] = [
        at.sum_to(product(at, scaled, key, False, False), query),
        at.sum_to(product(at, scaled, query, True, False), key),
        at.sum_to(product(at, weights, at.adjoint, True, False), value),
    ]
    if mask is not None:
        added = (
            not at.attributes["causal"]
            and mask.rank != 0
            and mask.element_type is not None
            and mask.element_type.is_float
        )
        found.append(at.sum_to(of_scores, mask) if added else None)
    if scale is not None:
        row = at.ops.reshape(of_products * products, _LAST, special_zero=False)
        found.append(at.reshaped(at.ops.reduce_sum(row, np.array([0]), keep_dims=False), scale))
    if sink is not None:
        assert of_sink is not None
        found.append(at.sum_to(-(of_sink * pulled), sink))
    return found


def product(
    at: Reverse, left: Value, right: Value, transpose_left: bool, transpose_right: bool
) -> Value:
    return at.ops.matmul(left, right, transpose_a=transpose_left, transpose_b=transpose_right)


def scale_of(at: Reverse, query: Value, scale: Value | None) -> Value | float:
    """One over the root of a head's size where none is given."""
    if scale is not None:
        return at.ops.reshape(scale, np.zeros(0, np.int64), special_zero=False)
    width = query.shape.at(-1)
    if width.is_static:
        return 1 / math.sqrt(width.length)
    length = at.ops.gather(at.shape_of(query), np.array(-1), np.array(0), batch_dims=0)
    return 1.0 / at.ops.sqrt(at.ops.convert_like(length, query))


def _masked(at: Reverse, scores: Value, mask: Value | None) -> Value:
    """The scores with minus infinity where nobody may look."""
    hidden = minus_infinity(scores)
    if at.attributes["causal"]:
        rows, columns = (
            at.ops.range(
                np.int64(0),
                at.ops.gather(at.shape_of(scores), np.array(axis), np.array(0), batch_dims=0),
                np.int64(1),
                output_type="i64",
            )
            for axis in (-2, -1)
        )
        return at.ops.select(
            at.ops.greater(columns, at.ops.unsqueeze(rows, np.array([1]))), hidden, scores
        )
    if mask is None or mask.rank == 0:
        return scores
    if mask.rank is None or mask.element_type is None:
        raise ValueError(
            "the rank or type of the mask is not known: give the model's inputs theirs"
        )
    if mask.element_type.is_float:
        return scores + mask
    lowest = np.full(
        (),
        np.finfo(hidden.dtype).min if hidden.dtype.isbuiltin else ml_dtypes.finfo(hidden.dtype).min,
        hidden.dtype,
    )
    return at.ops.select(mask, scores, lowest)


def minus_infinity(like: Value) -> np.ndarray:
    """Return minus infinity in the type of a tensor."""
    return np.full((), -np.inf, like.element_type.dtype if like.element_type else np.float32)


def weights_of_seen(at: Reverse, scores: Value) -> Value:
    """Apply softmax along the last axis; a row of minus infinities becomes zeros."""
    lowest = minus_infinity(scores)
    blind = at.ops.equal(at.ops.reduce_max(scores, _LAST, keep_dims=True), lowest)
    shares = at.ops.softmax(at.ops.select(blind, np.zeros_like(lowest), scores), axis=-1)
    return at.where(at.ops.logical_not(blind), shares)


def _weights(
    at: Reverse, scores: Value, mask: Value | None, sink: Value | None
) -> tuple[Value, Value | None]:
    """The weights, and that of the sink."""
    if sink is None:
        seen_by_all = at.attributes["causal"] or mask is None or mask.rank == 0
        return at.ops.softmax(scores, axis=-1) if seen_by_all else weights_of_seen(at, scores), None
    first = at.ops.slice(scores, np.array([0]), np.array([1]), np.array([1]), _LAST)
    column = at.ops.broadcast(sink, at.shape_of(first), mode="numpy")
    both = at.ops.softmax(at.ops.concat(scores, column, axis=-1), axis=-1)
    weights, of_sink = at.several("VariadicSplit", both, np.array(-1), np.array([-1, 1]))
    return weights, of_sink
