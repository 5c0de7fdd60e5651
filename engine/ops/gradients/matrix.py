"""Derivatives of matrix products."""

from __future__ import annotations

import numpy as np

from engine.ops.derivative import Adjoints, Reverse, Value


def matmul(at: Reverse, /) -> Adjoints:
    """Each operand's adjoint is the product of the output's adjoint with the other; operands of rank 1 get an axis for it.

    Axes of stacks of matrices broadcast as numpy does, so that adjoints are summed over them.
    """
    left, right = at.inputs
    if left.rank is None or right.rank is None:
        raise ValueError(f"the ranks of the operands are not known ({left.shape} and {right.shape}): give the model's inputs their ranks")
    transpose_left, transpose_right = at.attributes["transpose_a"] and left.rank > 1, at.attributes["transpose_b"] and right.rank > 1
    adjoint = at.adjoint
    one, other = left, right
    if right.rank == 1:
        other, adjoint = at.ops.unsqueeze(right, np.array([1])), at.ops.unsqueeze(adjoint, np.array([-1]))
    if left.rank == 1:
        one, adjoint = at.ops.unsqueeze(left, np.array([0])), at.ops.unsqueeze(adjoint, np.array([-2]))
    of_one = _product(at, adjoint, other, (False, not transpose_right), transposed=transpose_left)
    of_other = _product(at, one, adjoint, (not transpose_left, False), transposed=transpose_right)
    return at.reshaped(at.sum_to(of_one, one), left), at.reshaped(at.sum_to(of_other, other), right)


def _product(at: Reverse, left: Value, right: Value, transposes: tuple[bool, bool], *, transposed: bool) -> Value:
    """The product, or its transpose: that of the operands in the other order, each transposed."""
    if transposed:
        left, right, transposes = right, left, (not transposes[1], not transposes[0])
    return at.ops.matmul(left, right, transpose_a=transposes[0], transpose_b=transposes[1])
