"""Derivative of attention, which recomputes the weights from queries and keys."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.derivative import Adjoints, Reverse, Value

_LAST = np.array([-1])


def scaled_dot_product_attention(node: Reverse, /) -> Adjoints:
    """Return the adjoints of query, key, value, float mask, scale and sink."""
    query, key, value, *rest = node.inputs
    mask, scale, sink = [*rest, None, None, None][:3]
    products = product(node, query, key, False, True)
    factor = scale_of(node, query, scale)
    scores = _apply_mask(node, products * factor, mask)
    weights, of_sink = _weights(node, scores, mask, sink)
    of_weights = node.sum_to(product(node, node.adjoint, value, False, True), weights)
    weighted_mean = node.ops.reduce_sum(of_weights * weights, _LAST, keep_dims=True)
    of_scores = weights * (of_weights - weighted_mean)
    if (
        not node.attributes["causal"]
        and mask is not None
        and mask.rank != 0
        and mask.element_type is ElementType.BOOLEAN
    ):
        of_scores = node.where(mask, of_scores)
    of_products = node.sum_to(of_scores, products)
    scaled = of_products * factor
    adjoints: list[Value | None] = [
        node.sum_to(product(node, scaled, key, False, False), query),
        node.sum_to(product(node, scaled, query, True, False), key),
        node.sum_to(product(node, weights, node.adjoint, True, False), value),
    ]
    if mask is not None:
        added = (
            not node.attributes["causal"]
            and mask.rank != 0
            and mask.element_type is not None
            and mask.element_type.is_float
        )
        adjoints.append(node.sum_to(of_scores, mask) if added else None)
    if scale is not None:
        row = node.ops.reshape(of_products * products, _LAST, special_zero=False)
        adjoints.append(
            node.reshaped(node.ops.reduce_sum(row, np.array([0]), keep_dims=False), scale)
        )
    if sink is not None:
        assert of_sink is not None
        adjoints.append(node.sum_to(-(of_sink * weighted_mean), sink))
    return adjoints


def product(
    node: Reverse, left: Value, right: Value, transpose_left: bool, transpose_right: bool
) -> Value:
    return node.ops.matmul(left, right, transpose_a=transpose_left, transpose_b=transpose_right)


def scale_of(node: Reverse, query: Value, scale: Value | None) -> Value | float:
    """Return the scale as a scalar; the default is one over the root of a head's size."""
    if scale is not None:
        return node.ops.reshape(scale, np.zeros(0, np.int64), special_zero=False)
    width = query.shape.at(-1)
    if width.is_static:
        return 1 / math.sqrt(width.length)
    length = node.ops.gather(node.shape_of(query), np.array(-1), np.array(0), batch_dims=0)
    return 1.0 / node.ops.sqrt(node.ops.convert_like(length, query))


def _apply_mask(node: Reverse, scores: Value, mask: Value | None) -> Value:
    """Return the scores with minus infinity at masked positions."""
    hidden = minus_infinity(scores)
    if node.attributes["causal"]:
        rows, columns = (
            node.ops.range(
                np.int64(0),
                node.ops.gather(node.shape_of(scores), np.array(axis), np.array(0), batch_dims=0),
                np.int64(1),
                output_type="i64",
            )
            for axis in (-2, -1)
        )
        return node.ops.select(
            node.ops.greater(columns, node.ops.unsqueeze(rows, np.array([1]))), hidden, scores
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
    return node.ops.select(mask, scores, lowest)


def minus_infinity(like: Value) -> np.ndarray:
    """Return minus infinity in the type of a tensor."""
    return np.full((), -np.inf, like.element_type.dtype if like.element_type else np.float32)


def weights_of_seen(node: Reverse, scores: Value) -> Value:
    """Apply softmax along the last axis; a row of minus infinities becomes zeros."""
    lowest = minus_infinity(scores)
    is_masked_row = node.ops.equal(node.ops.reduce_max(scores, _LAST, keep_dims=True), lowest)
    shares = node.ops.softmax(
        node.ops.select(is_masked_row, np.zeros_like(lowest), scores), axis=-1
    )
    return node.where(node.ops.logical_not(is_masked_row), shares)


def _weights(
    node: Reverse, scores: Value, mask: Value | None, sink: Value | None
) -> tuple[Value, Value | None]:
    """Return the weights and the weight of the sink."""
    if sink is None:
        seen_by_all = node.attributes["causal"] or mask is None or mask.rank == 0
        return node.ops.softmax(scores, axis=-1) if seen_by_all else weights_of_seen(
            node, scores
        ), None
    first = node.ops.slice(scores, np.array([0]), np.array([1]), np.array([1]), _LAST)
    column = node.ops.broadcast(sink, node.shape_of(first), mode="numpy")
    extended = node.ops.softmax(node.ops.concat(scores, column, axis=-1), axis=-1)
    weights, of_sink = node.several("VariadicSplit", extended, np.array(-1), np.array([-1, 1]))
    return weights, of_sink
