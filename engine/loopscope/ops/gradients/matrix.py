"""Derivatives of matrix products."""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.einsum import subscripts


def matmul(at: Reverse, /) -> Adjoints:
    """Each operand's adjoint is the product of the output's adjoint with the other; operands of
    rank 1 get an axis for it.

    Axes of stacks of matrices broadcast as numpy does, so that adjoints are summed over them.
    """
    left, right = at.inputs
    if left.rank is None or right.rank is None:
        raise ValueError(
            f"the ranks of the operands are not known ({left.shape} and {right.shape}): give the model's inputs their ranks"
        )
    transpose_left, transpose_right = (
        at.attributes["transpose_a"] and left.rank > 1,
        at.attributes["transpose_b"] and right.rank > 1,
    )
    adjoint = at.adjoint
    one, other = left, right
    if right.rank == 1:
        other, adjoint = (
            at.ops.unsqueeze(right, np.array([1])),
            at.ops.unsqueeze(adjoint, np.array([-1])),
        )
    if left.rank == 1:
        one, adjoint = (
            at.ops.unsqueeze(left, np.array([0])),
            at.ops.unsqueeze(adjoint, np.array([-2])),
        )
    if transpose_left:
        of_one = _product(at, adjoint, other, (False, not transpose_right), transposed=True)
    else:
        of_one = product_with_turned(at, adjoint, other, not transpose_right)
    of_other = _product(at, one, adjoint, (not transpose_left, False), transposed=transpose_right)
    return at.reshaped(at.sum_to(of_one, one), left), at.reshaped(at.sum_to(of_other, other), right)


def _product(
    at: Reverse, left: Value, right: Value, transposes: tuple[bool, bool], *, transposed: bool
) -> Value:
    """The product, or its transpose: that of the operands in the other order, each transposed."""
    if transposed:
        left, right, transposes = right, left, (not transposes[1], not transposes[0])
    return at.ops.matmul(left, right, transpose_a=transposes[0], transpose_b=transposes[1])


def product_with_turned(at: Reverse, left: Value, right: Value, transpose_right: bool) -> Value:
    """A product whose right operand the forward pass has on the right as well, and turned the other
    way.

    OpenVINO's CPU plugin (2026.4) keeps one packed form of a square constant for both, so that one
    of the products is wrong without a word. On the left it packs nothing: there the product is
    computed turned.
    """
    rank = max(left.rank or 0, right.rank or 0)
    if not _is_square(right) or left.rank is None or left.rank < 2:
        return at.ops.matmul(left, right, transpose_a=False, transpose_b=transpose_right)
    turned = at.ops.matmul(right, left, transpose_a=not transpose_right, transpose_b=True)
    return at.ops.transpose(turned, np.array([*range(rank - 2), rank - 1, rank - 2]))


def _is_square(value: Value) -> bool:
    if value.rank is None or value.rank < 2:
        return False
    rows, columns = value.shape.at(value.rank - 2), value.shape.at(value.rank - 1)
    return rows.is_static and columns.is_static and rows.length == columns.length


def inverse(at: Reverse, /) -> Adjoints:
    """The adjoint between the transposed inverse on both sides, less than 0."""
    turned, given = at.outputs[0], at.adjoint
    if at.attributes["adjoint"]:
        inner = at.ops.matmul(turned, given, transpose_a=False, transpose_b=True)
        return (-at.ops.matmul(inner, turned, transpose_a=False, transpose_b=False),)
    inner = at.ops.matmul(turned, given, transpose_a=True, transpose_b=False)
    return (-at.ops.matmul(inner, turned, transpose_a=False, transpose_b=True),)


def einsum(at: Reverse, /) -> Adjoints:
    """Each operand's adjoint is the sum of products of the output's adjoint and the other
    operands, over the labels that it has not.
    """
    ranks = [one.rank for one in at.inputs]
    known = [rank for rank in ranks if rank is not None]
    if len(known) < len(ranks):
        raise ValueError(
            "the ranks of the operands are not all known: give the model's inputs their ranks"
        )
    labels, result = subscripts(at.attributes["equation"], known)
    return [_of_operand(at, number, labels, result) for number in range(len(labels))]


def _of_operand(at: Reverse, number: int, labels: list[str], result: str) -> Value:
    operand, mine = at.inputs[number], labels[number]
    others = [
        (one, label)
        for place, (one, label) in enumerate(zip(at.inputs, labels, strict=True))
        if place != number
    ]
    there = set(result).union(*(label for _, label in others))
    kept = [
        place for place, label in enumerate(mine) if label in there and label not in mine[:place]
    ]
    left = ",".join([result, *(label for _, label in others)])
    found = at.ops.einsum(
        at.adjoint,
        *(one for one, _ in others),
        equation=f"{left}->{''.join(mine[place] for place in kept)}",
    )
    added = [place for place in range(len(mine)) if place not in kept]
    if added:
        found = at.ops.unsqueeze(found, np.array(added, np.int64))
    if not (found.shape.is_static and found.shape == operand.shape):
        found = at.sum_to(
            at.ops.broadcast(found, at.shape_of(operand), mode="bidirectional"), operand
        )
    for place in range(len(mine)):
        if mine[place] in mine[:place]:
            found = at.where(_diagonal(at, operand, mine.index(mine[place]), place), found)
    return found


def _diagonal(at: Reverse, operand: Value, first: int, second: int) -> Value:
    """Where two axes are at the same place."""
    length = at.ops.gather(at.shape_of(operand), np.array(first), np.array(0), batch_dims=0)
    line = at.ops.range(np.int64(0), length, np.int64(1), output_type="i64")
    shapes = [
        np.array([-1 if axis == one else 1 for axis in range(operand.rank or 0)])
        for one in (first, second)
    ]
    return at.ops.equal(*(at.ops.reshape(line, shape, special_zero=False) for shape in shapes))
