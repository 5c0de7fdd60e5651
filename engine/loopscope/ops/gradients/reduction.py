"""Derivatives of reductions, of scatters with a reduction, of embedding bags, and of operations
that generate a tensor.

Each row of the table of an embedding bag gets the sum of the adjoints of its bags. The adjoint of
a reduced result is passed to every element of its group. The adjoint of a number from which a
tensor is generated is a sum over the elements that depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


FOLDS = ("prod", "min", "max", "mean")


@dataclass(frozen=True, slots=True)
class Places:
    """Functions that access the target positions of a scatter.

    ``take`` reads these positions of a tensor. ``put`` reduces updates into them.
    """

    take: Callable[[Value], Value]
    put: Callable[[Value, Value, str], Value]
    """Function of data, updates and the name of a reduction."""


def folded(node: Reverse, places: Places, updates: Value, reduction: str) -> tuple[Value, Value]:
    """Return the adjoints of data and updates."""
    match reduction:
        case "prod":
            return _product(node, places, updates)
        case "mean":
            ones = node.filled(1, node.inputs[0]), node.filled(1, updates)
            share = node.adjoint / places.put(*ones, "sum")
            return share, places.take(share)
        case _:
            return _extreme(node, places, updates)


def _product(node: Reverse, places: Places, updates: Value) -> tuple[Value, Value]:
    """Multiply the adjoint by the product of the other factors, which is 0 if one of them is 0."""
    operands = node.inputs[0], updates
    zeros = [node.ops.equal(operand, node.zeros_like(operand)) for operand in operands]
    zero_counts = [
        node.ops.convert_like(zero, operand) for zero, operand in zip(zeros, operands, strict=True)
    ]
    factors = [
        node.ops.select(zero, node.filled(1, operand), operand)
        for zero, operand in zip(zeros, operands, strict=True)
    ]
    product = places.put(factors[0], factors[1], "prod")
    count = places.put(zero_counts[0], zero_counts[1], "sum")
    others = product, places.take(product)
    counts = count, places.take(count)
    adjoints = node.adjoint, places.take(node.adjoint)
    of_operands = [
        node.where(
            counts[index] - zero_counts[index] < 0.5,
            adjoints[index] * others[index] / factors[index],
        )
        for index in range(2)
    ]
    return of_operands[0], of_operands[1]


def _extreme(node: Reverse, places: Places, updates: Value) -> tuple[Value, Value]:
    """Pass the adjoint to the minimum or maximum; equal elements share it."""
    operands, result = (node.inputs[0], updates), node.outputs[0]
    matches = [
        node.ops.equal(operand, extreme)
        for operand, extreme in zip(operands, (result, places.take(result)), strict=True)
    ]
    counts = [node.ops.convert_like(match, node.adjoint) for match in matches]
    share = node.adjoint / node.ops.maximum(
        places.put(counts[0], counts[1], "sum"), node.filled(1, result)
    )
    return node.where(matches[0], share), node.where(matches[1], places.take(share))
