"""Derivatives of matrix operations."""

from __future__ import annotations

import numpy as np

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
        of_left = _product(
            node, adjoint, right_matrix, (False, not transpose_right), transposed=True
        )
    else:
        of_left = product_with_turned(node, adjoint, right_matrix, not transpose_right)
    of_right = _product(
        node, left_matrix, adjoint, (not transpose_left, False), transposed=transpose_right
    )
    return node.reshaped(node.sum_to(of_left, left_matrix), left), node.reshaped(
        node.sum_to(of_right, right_matrix), right
    )


def _product(
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
