"""Derivatives of operations that generate a tensor from a few numbers.

The adjoint of each number is a sum over the elements that depend on it.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value


def sequence(node: Reverse, /) -> Adjoints:
    """Return the adjoints of start and step of a Range; None for stop.

    Every element contains the start once, and the step as often as its index. The number of
    elements is constant.
    """
    start, _, step = node.inputs
    count = node.ops.reduce_prod(node.shape_of(node.adjoint), np.array([0]), keep_dims=False)
    indices = node.ops.convert_like(
        node.ops.range(np.int64(0), count, np.int64(1), output_type="i64"), node.adjoint
    )
    return (
        _to_number(node, _sum(node, node.adjoint), start),
        None,
        _to_number(node, _sum(node, node.adjoint * indices), step),
    )


def one_hot(node: Reverse, /) -> Adjoints:
    """Return the sums of the adjoint over the hot and the other elements (on and off value)."""
    indices, depth, on_value, off_value = node.inputs
    hot = node.ops.one_hot(indices, depth, np.array(True), np.array(False), **node.attributes)
    of_on, of_off = (
        _sum(node, node.where(mask, node.adjoint)) for mask in (hot, node.ops.logical_not(hot))
    )
    return None, None, _to_number(node, of_on, on_value), _to_number(node, of_off, off_value)


def _sum(node: Reverse, value: Value) -> Value:
    return node.ops.reduce_sum(
        node.ops.reshape(value, np.array([-1]), special_zero=False), np.array([0]), keep_dims=False
    )


def _to_number(node: Reverse, total: Value, like: Value) -> Value | None:
    """Convert a sum to the type and shape of a number; None for integers."""
    if like.element_type is None or not like.element_type.is_float:
        return None
    return node.reshaped(node.ops.convert_like(total, like), like)
