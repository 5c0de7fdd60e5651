"""Derivatives of reductions, and of operations that generate a tensor from a few numbers.

The adjoint of a reduced result is passed to every element of its group. The adjoint of a number is
a sum over the elements that depend on it.
"""

from __future__ import annotations

import math

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value


def spread(node: Reverse, reduced: Value) -> Value:
    """Broadcast a tensor of the output's shape along the reduced axes to the input's shape."""
    data, axes = node.inputs
    known = axes.shape.dimensions
    folds_nothing = (
        known is not None
        and all(dimension.is_static and not dimension.length for dimension in known[:1])
        and len(known) == 1
    )
    # OpenVINO refuses an Unsqueeze without axes.
    if not node.attributes["keep_dims"] and not folds_nothing:
        # Unsqueeze counts negative axes in its output rank, which is the rank in which the
        # reduction counted them.
        reduced = node.ops.unsqueeze(reduced, axes)
    return node.ops.broadcast(reduced, node.shape_of(data), mode="bidirectional")


def reduce_sum(node: Reverse, /) -> Adjoints:
    """Pass the adjoint to each element."""
    return spread(node, node.adjoint), None


def reduce_mean(node: Reverse, /) -> Adjoints:
    """Pass an equal share of the adjoint to each element."""
    return spread(node, node.adjoint) / _count(node), None


def reduce_extreme(node: Reverse, /) -> Adjoints:
    """Pass the adjoint of ReduceMax and ReduceMin to the selected elements, in equal parts.

    PyTorch's ``amax`` and ``amin`` do the same.
    """
    data = node.inputs[0]
    selected = node.where(node.ops.equal(data, spread(node, node.outputs[0])), node.filled(1, data))
    count = node.ops.reduce_sum(selected, node.inputs[1], keep_dims=node.attributes["keep_dims"])
    return selected * spread(node, node.adjoint / count), None


def reduce_prod(node: Reverse, /) -> Adjoints:
    """Multiply the adjoint by the product of the other elements.

    That is the product divided by the element, or, for the only 0, the product of the non-zero
    elements. Where two or more elements are 0, the first derivative is exact, and the second (the
    product of the remaining elements) is taken as 0.
    """
    data, axes = node.inputs
    keep = node.attributes["keep_dims"]
    zero, unit = node.ops.equal(data, node.zeros_like(data)), node.filled(1, data)
    safe = node.ops.select(zero, unit, data)
    zeros = node.ops.reduce_sum(node.where(zero, unit), axes, keep_dims=keep)
    nonzero_product = node.where(zeros < 1.5, node.ops.reduce_prod(safe, axes, keep_dims=keep))
    others = node.ops.select(
        zero, spread(node, nonzero_product), spread(node, node.outputs[0]) / safe
    )
    return spread(node, node.adjoint) * others, None


def reduce_l1(node: Reverse, /) -> Adjoints:
    """Multiply the adjoint by the sign of each element (0 at 0)."""
    return spread(node, node.adjoint) * node.ops.sign(node.inputs[0]), None


def reduce_l2(node: Reverse, /) -> Adjoints:
    """Multiply the adjoint by each element divided by the length.

    The result is 0 if the length is 0, as in PyTorch.
    """
    length = node.outputs[0]
    safe = node.ops.select(length > 0.0, length, node.filled(1, length))
    return node.inputs[0] * spread(node, node.adjoint / safe), None


def _count(node: Reverse) -> Value | float:
    """Return the number of elements that are reduced to one."""
    data, folded = node.inputs[0], node.outputs[0]
    if data.shape.is_static and folded.shape.is_static:
        return math.prod(data.shape.lengths) / max(math.prod(folded.shape.lengths), 1)
    whole, parts = (
        node.ops.reduce_prod(node.shape_of(tensor), np.array([0]), keep_dims=False)
        for tensor in (data, folded)
    )
    return node.ops.convert_like(node.ops.divide(whole, node.ops.maximum(parts, np.int64(1))), data)


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
