"""Derivatives of matrix products, Inverse and Einsum, and of attention, which consists of products.

The weights of attention are computed again from queries and keys.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.einsum import subscripts


def matmul(node: Reverse, /) -> Adjoints:
    """Multiply the output's adjoint by the other operand to obtain each operand's adjoint.

    An operand of rank 1 gets an additional axis. Stack axes broadcast as in numpy, so that adjoints
    are summed over them.
    """
    left, right = node.inputs
    if left.rank is None or right.rank is None:
        raise ValueError(
            f"the ranks of the operands are not known ({left.shape} and {right.shape}): "
            "give the model's inputs their ranks"
        )
    transpose_left = node.attributes["transpose_a"] and left.rank > 1
    transpose_right = node.attributes["transpose_b"] and right.rank > 1
    adjoint = node.adjoint
    left_matrix, right_matrix = left, right
    if right.rank == 1:
        right_matrix = node.ops.unsqueeze(right, np.array([1]))
        adjoint = node.ops.unsqueeze(adjoint, np.array([-1]))
    if left.rank == 1:
        left_matrix = node.ops.unsqueeze(left, np.array([0]))
        adjoint = node.ops.unsqueeze(adjoint, np.array([-2]))
    if transpose_left:
        of_left = _product_or_transpose(
            node, adjoint, right_matrix, (False, not transpose_right), transposed=True
        )
    else:
        of_left = product_with_turned(node, adjoint, right_matrix, not transpose_right)
    of_right = _product_or_transpose(
        node, left_matrix, adjoint, (not transpose_left, False), transposed=transpose_right
    )
    return node.reshaped(node.sum_to(of_left, left_matrix), left), node.reshaped(
        node.sum_to(of_right, right_matrix), right
    )


def _product_or_transpose(
    node: Reverse, left: Value, right: Value, transposes: tuple[bool, bool], *, transposed: bool
) -> Value:
    """Return the product, or its transpose (both operands transposed, in the opposite order)."""
    if transposed:
        left, right, transposes = right, left, (not transposes[1], not transposes[0])
    return node.ops.matmul(left, right, transpose_a=transposes[0], transpose_b=transposes[1])


def product_with_turned(node: Reverse, left: Value, right: Value, transpose_right: bool) -> Value:
    """Return a product with a right operand that the forward pass uses transposed the other way.

    OpenVINO's CPU plugin (2026.4) shares one packed form of a square constant between both
    products, so that one result is silently wrong. It does not pack a left operand, so the
    transpose of the product is computed there.
    """
    rank = max(left.rank or 0, right.rank or 0)
    if not _is_square(right) or left.rank is None or left.rank < 2:
        return node.ops.matmul(left, right, transpose_a=False, transpose_b=transpose_right)
    transposed = node.ops.matmul(right, left, transpose_a=not transpose_right, transpose_b=True)
    return node.ops.transpose(transposed, np.array([*range(rank - 2), rank - 1, rank - 2]))


def _is_square(value: Value) -> bool:
    if value.rank is None or value.rank < 2:
        return False
    rows, columns = value.shape.at(value.rank - 2), value.shape.at(value.rank - 1)
    return rows.is_static and columns.is_static and rows.length == columns.length


def inverse(node: Reverse, /) -> Adjoints:
    """Return the negated product of transposed inverse, adjoint and transposed inverse."""
    inverted, adjoint = node.outputs[0], node.adjoint
    if node.attributes["adjoint"]:
        inner = node.ops.matmul(inverted, adjoint, transpose_a=False, transpose_b=True)
        return (-node.ops.matmul(inner, inverted, transpose_a=False, transpose_b=False),)
    inner = node.ops.matmul(inverted, adjoint, transpose_a=True, transpose_b=False)
    return (-node.ops.matmul(inner, inverted, transpose_a=False, transpose_b=True),)


def einsum(node: Reverse, /) -> Adjoints:
    """Return for each operand the Einsum of the output's adjoint with the other operands.

    Labels that only this operand has are broadcast.
    """
    ranks = [operand.rank for operand in node.inputs]
    known = [rank for rank in ranks if rank is not None]
    if len(known) < len(ranks):
        raise ValueError(
            "the ranks of the operands are not all known: give the model's inputs their ranks"
        )
    labels, result = subscripts(node.attributes["equation"], known)
    return [_operand_adjoint(node, number, labels, result) for number in range(len(labels))]


def _operand_adjoint(node: Reverse, number: int, labels: list[str], result: str) -> Value:
    operand, label = node.inputs[number], labels[number]
    other_operands = [
        (value, other_label)
        for index, (value, other_label) in enumerate(zip(node.inputs, labels, strict=True))
        if index != number
    ]
    available = set(result).union(*(other_label for _, other_label in other_operands))
    shared = [
        axis
        for axis, letter in enumerate(label)
        if letter in available and letter not in label[:axis]
    ]
    subscripts_left = ",".join([result, *(other_label for _, other_label in other_operands)])
    adjoint = node.ops.einsum(
        node.adjoint,
        *(value for value, _ in other_operands),
        equation=f"{subscripts_left}->{''.join(label[axis] for axis in shared)}",
    )
    missing = [axis for axis in range(len(label)) if axis not in shared]
    if missing:
        adjoint = node.ops.unsqueeze(adjoint, np.array(missing, np.int64))
    if not (adjoint.shape.is_static and adjoint.shape == operand.shape):
        adjoint = node.sum_to(
            node.ops.broadcast(adjoint, node.shape_of(operand), mode="bidirectional"), operand
        )
    for axis in range(len(label)):
        if label[axis] in label[:axis]:
            adjoint = node.where(_diagonal(node, operand, label.index(label[axis]), axis), adjoint)
    return adjoint


def _diagonal(node: Reverse, operand: Value, first: int, second: int) -> Value:
    """Return a mask of the elements at which two axes have the same index."""
    length = node.ops.gather(node.shape_of(operand), np.array(first), np.array(0), batch_dims=0)
    line = node.ops.range(np.int64(0), length, np.int64(1), output_type="i64")
    shapes = [
        np.array([-1 if axis == selected else 1 for axis in range(operand.rank or 0)])
        for selected in (first, second)
    ]
    return node.ops.equal(*(node.ops.reshape(line, shape, special_zero=False) for shape in shapes))


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
