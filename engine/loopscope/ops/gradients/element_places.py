"""Derivatives of gather and scatter operations: adjoints return to the source elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.reduction import FOLDS, Places, folded

_FLAT = np.array([-1])
_FIRST = np.array(0)


def slice_(node: Reverse, /) -> Adjoints:
    """Scatter the adjoint into the slice; 0 elsewhere."""
    return (
        node.ops.slice_scatter(node.zeros_like(node.inputs[0]), node.adjoint, *node.inputs[1:]),
        *[None] * (len(node.inputs) - 1),
    )


def slice_scatter(node: Reverse, /) -> Adjoints:
    """Return the adjoint without the overwritten elements, and the updates' slice of it."""
    _, updates, *bounds = node.inputs
    of_data = node.ops.slice_scatter(node.adjoint, node.zeros_like(updates), *bounds)
    return (
        of_data,
        node.sum_to(node.ops.slice(node.adjoint, *bounds), updates),
        *[None] * len(bounds),
    )


def strided_slice(node: Reverse, /) -> Adjoints:
    """Send the adjoint back by slicing the numbers of all elements in the same way."""
    source_numbers = node.ops.strided_slice(
        numbered(node, node.inputs[0]), *node.inputs[1:], **node.attributes
    )
    return (
        sent_back(node, source_numbers, node.inputs[0]).of_data,
        *[None] * (len(node.inputs) - 1),
    )


def gather(node: Reverse, /) -> Adjoints:
    """Sum the adjoint over all copies of a slice; indices must be inside the data."""
    data, indices, axis_input = node.inputs
    return _to_slices(node, data, indices, axis_input, node.adjoint), None, None


def gather_or_zero(node: Reverse, /) -> Adjoints:
    """Sum the adjoint over all copies of a slice.

    An index outside the data gave zeros, so its adjoint is replaced by 0 and added at index 0.
    """
    data, indices, axis_input = node.inputs
    rank = _rank_of(data)
    axis = whole_number(axis_input, "axis") % rank
    if _are_inside(data, indices, axis):
        return gather(node)
    batch = node.attributes["batch_dims"]
    batch += _rank_of(indices) if batch < 0 else 0
    numbers = node.ops.convert(indices, destination_type="i64")
    length = node.ops.gather(node.shape_of(data), np.array(axis), _FIRST, batch_dims=0)
    is_inside = node.ops.logical_and(
        node.ops.greater_equal(numbers, -length), node.ops.less(numbers, length)
    )
    output_rank = rank + _rank_of(indices) - batch - 1
    axes_of_data = [*range(batch, axis), *range(output_rank - (rank - axis - 1), output_rank)]
    aligned = node.ops.unsqueeze(is_inside, np.array(axes_of_data)) if axes_of_data else is_inside
    return (
        _to_slices(
            node,
            data,
            node.where(is_inside, numbers),
            axis_input,
            node.where(aligned, node.adjoint),
        ),
        None,
        None,
    )


def _are_inside(data: Value, indices: Value, axis: int) -> bool:
    """Return True if all indices are known to be inside the data."""
    values, dimension = indices.known.value, (data.shape.dimensions or ())[axis]
    if values is None or not dimension.is_static:
        return False
    return bool(((values >= -dimension.length) & (values < dimension.length)).all())


def _rank_of(value: Value) -> int:
    if value.rank is None:
        raise ValueError(
            f"the rank of a tensor of shape {value.shape} is not known: "
            "give the model's inputs their ranks"
        )
    return value.rank


def _to_slices(
    node: Reverse, data: Value, indices: Value, axis_input: Value, adjoint: Value
) -> Value:
    """Sum the adjoint of a Gather over all copies of each slice of ``data``."""
    rank, indices_rank = _rank_of(data), _rank_of(indices)
    batch = node.attributes.get("batch_dims", 0)
    axis = whole_number(axis_input, "axis") % rank
    batch = batch % indices_rank if batch < 0 else batch
    if axis == batch == 0:
        rows = node.ops.unsqueeze(indices, np.array([-1]))
        return node.ops.scatter_nd_update(node.zeros_like(data), rows, adjoint, reduction="sum")
    count = node.ops.reduce_prod(
        node.ops.slice(
            node.shape_of(indices), np.array([batch]), np.array([indices_rank]), np.array([1])
        ),
        np.array([0]),
        keep_dims=True,
    )
    adjoint = node.ops.reshape(adjoint, _with_length(node, data, axis, count), special_zero=False)
    aligned = node.ops.reshape(
        indices,
        np.array([*[0] * batch, *[1] * (axis - batch), -1, *[1] * (rank - axis - 1)]),
        special_zero=True,
    )
    positions = node.ops.broadcast(aligned, node.shape_of(adjoint), mode="numpy")
    return _sum_at(node, data, positions, adjoint, axis)


def gather_elements(node: Reverse, /) -> Adjoints:
    """Sum the adjoint over all copies of an element."""
    data, indices = node.inputs
    return _sum_at(node, data, indices, node.adjoint, node.attributes["axis"]), None


def gather_nd(node: Reverse, /) -> Adjoints:
    """Sum the adjoint over all copies of a slice."""
    data, indices = node.inputs
    if node.attributes["batch_dims"] == 0:
        return node.ops.scatter_nd_update(
            node.zeros_like(data), indices, node.adjoint, reduction="sum"
        ), None
    # The result of version 5 has another shape, but the same order of elements.
    source_numbers = node.ops.gather_nd(
        numbered(node, data), indices, batch_dims=node.attributes["batch_dims"]
    )
    return sent_back(node, source_numbers, data).of_data, None


def scatter_update(node: Reverse, /) -> Adjoints:
    """Return the adjoints with 0 for overwritten values.

    These are slices of the data, and updates whose index occurs again later.
    """
    data, indices, updates, along = node.inputs
    axis = whole_number(along, "axis")
    of_data = node.ops.scatter_update(node.adjoint, indices, node.zeros_like(updates), along)
    of_updates = node.ops.gather(node.adjoint, indices, along, batch_dims=0)
    if not _are_distinct(indices):
        if data.rank is None:
            raise ValueError(
                f"the rank of the data is not known ({data.shape}): "
                "give the model's inputs their ranks"
            )
        flat = node.ops.reshape(indices, _FLAT, special_zero=False)
        length = node.ops.gather(node.shape_of(data), np.array([axis]), _FIRST, batch_dims=0)
        numbers = numbered(node, flat)
        written = node.ops.scatter_update(
            node.ops.broadcast(np.int64(0), length, mode="numpy"), flat, numbers, _FIRST
        )
        is_last = node.ops.equal(node.ops.gather(written, flat, _FIRST, batch_dims=0), numbers)
        shape = node.ops.concat(
            node.shape_of(indices), np.ones(data.rank - axis % data.rank - 1, np.int64), axis=0
        )
        of_updates = node.where(node.ops.reshape(is_last, shape, special_zero=False), of_updates)
    return of_data, None, node.reshaped(of_updates, updates), None


def scatter_elements(node: Reverse, /) -> Adjoints:
    """Return the adjoints of data and updates.

    With ``none``, overwritten values get 0. With ``sum``, all addends get the adjoint. Other
    reductions use ``folded``.
    """
    data, indices, updates, along = node.inputs
    reduction, axis = node.attributes.get("reduction", "none"), whole_number(along, "axis")

    def take(value: Value) -> Value:
        return node.ops.gather_elements(
            _crop_to_indices(node, value, indices, axis), indices, axis=axis
        )

    def put(target: Value, values: Value, reduction: str) -> Value:
        return node.ops.scatter_elements_update(
            target, indices, values, along, reduction=reduction, use_init_val=True
        )

    if reduction in FOLDS:
        if not node.attributes["use_init_val"]:
            raise ValueError(f"reduction is {reduction!r} without the initial values")
        of_data, of_updates = folded(node, Places(take, put), updates, reduction)
        return of_data, None, of_updates, None
    of_updates = take(node.adjoint)
    if reduction == "sum" and node.attributes["use_init_val"]:
        return node.adjoint, None, of_updates, None
    retained = put(node.adjoint, node.zeros_like(updates), "none")
    if reduction == "none" and not _are_distinct(indices):
        numbers = numbered(node, updates)
        blank = node.ops.broadcast(np.int64(0), node.shape_of(data), mode="numpy")
        is_last = node.ops.equal(take(put(blank, numbers, "none")), numbers)
        of_updates = node.where(is_last, of_updates)
    return retained, None, of_updates, None


def scatter_nd(node: Reverse, /) -> Adjoints:
    """Return the adjoints of data and updates.

    With ``none``, overwritten values get 0. With ``sum`` and ``sub``, all addends get the adjoint.
    Other reductions use ``folded``.
    """
    data, indices, updates = node.inputs
    reduction = node.attributes.get("reduction", "none")

    def take(value: Value) -> Value:
        return node.reshaped(node.ops.gather_nd(value, indices, batch_dims=0), updates)

    def put(target: Value, values: Value, reduction: str) -> Value:
        return node.ops.scatter_nd_update(target, indices, values, reduction=reduction)

    if reduction in FOLDS:
        of_data, of_updates = folded(node, Places(take, put), updates, reduction)
        return of_data, None, of_updates
    of_updates = take(node.adjoint)
    if reduction != "none":
        return node.adjoint, None, -of_updates if reduction == "sub" else of_updates
    if not _at_most_one(indices, -1):
        numbers = numbered(node, updates)
        blank = node.ops.broadcast(np.int64(0), node.shape_of(data), mode="numpy")
        is_last = node.ops.equal(take(put(blank, numbers, "none")), numbers)
        of_updates = node.where(is_last, of_updates)
    return put(node.adjoint, node.zeros_like(updates), "none"), None, of_updates


@dataclass(frozen=True, slots=True)
class SentBack:
    """An adjoint at its source elements, summed over their copies."""

    of_data: Value
    of_nothing: Value
    """Sum [1] of the adjoints of elements without a source."""


def numbered(node: Reverse, data: Value) -> Value:
    """Return the numbers of all elements from 1, i64, in the shape of a tensor.

    0 represents elements without a source.
    """
    shape = node.shape_of(data)
    count = node.ops.reduce_prod(shape, _FIRST, keep_dims=False)
    return node.ops.reshape(
        node.ops.range(np.int64(1), count + 1, np.int64(1), output_type="i64"),
        shape,
        special_zero=False,
    )


def sent_back(
    node: Reverse, came_from: Value, data: Value, values: Value | None = None
) -> SentBack:
    """Sum an adjoint at the source elements with the numbers ``came_from``.

    The default adjoint is that of output 0.
    """
    count = node.ops.reduce_prod(node.shape_of(data), np.array([0]), keep_dims=True)
    blank = node.ops.broadcast(
        np.zeros((), data.element_type.dtype if data.element_type else np.float32),
        count + 1,
        mode="numpy",
    )
    positions, flat_adjoint = (
        node.ops.reshape(tensor, _FLAT, special_zero=False)
        for tensor in (came_from, node.adjoint if values is None else values)
    )
    sums = node.ops.scatter_elements_update(
        blank, positions, flat_adjoint, _FIRST, reduction="sum", use_init_val=True
    )
    of_nothing, rest = node.several("VariadicSplit", sums, _FIRST, np.array([1, -1]))
    return SentBack(node.ops.reshape(rest, node.shape_of(data), special_zero=False), of_nothing)


def whole_number(value: Value, name: str) -> int:
    """Return the known value of an input such as an axis; ``ValueError`` if it is unknown."""
    if value.known.value is None:
        raise ValueError(f"{name} is not known before the model runs: make it a constant")
    return int(np.asarray(value.known.value).reshape(()))


def whole_numbers(value: Value, name: str) -> tuple[int, ...]:
    """Return the known values of an input such as sizes; ``ValueError`` if they are unknown."""
    if value.known.value is None:
        raise ValueError(f"{name} is not known before the model runs: make it a constant")
    return tuple(int(number) for number in np.asarray(value.known.value).reshape(-1))


def _sum_at(node: Reverse, data: Value, places: Value, adjoint: Value, axis: int) -> Value:
    return node.ops.scatter_elements_update(
        node.zeros_like(data), places, adjoint, np.array(axis), reduction="sum", use_init_val=True
    )


def _with_length(node: Reverse, data: Value, axis: int, length: Value) -> Value:
    """Return the shape of a tensor with another length of an axis."""
    shape, step = node.shape_of(data), np.array([1])
    parts: Sequence[Value] = (
        node.ops.slice(shape, np.array([0]), np.array([axis]), step),
        length,
        node.ops.slice(shape, np.array([axis + 1]), np.array([data.rank]), step),
    )
    return node.ops.concat(*parts, axis=0)


def _crop_to_indices(node: Reverse, data: Value, indices: Value, axis: int) -> Value:
    """Crop the data along the other axes to the lengths of the indices, which may be shorter."""
    rank = data.rank
    if rank is None:
        raise ValueError(
            f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
        )
    others = np.array(
        [other_axis for other_axis in range(rank) if other_axis != axis % rank], np.int64
    )
    if (
        data.shape.is_static
        and indices.shape.is_static
        and all(
            data.shape.lengths[other_axis] == indices.shape.lengths[other_axis]
            for other_axis in others
        )
    ):
        return data
    if not others.size:
        return data
    ends = node.ops.gather(node.shape_of(indices), others, _FIRST, batch_dims=0)
    return node.ops.slice(
        data, np.zeros(len(others), np.int64), ends, np.ones(len(others), np.int64), others
    )


def _are_distinct(indices: Value) -> bool:
    """Return True if the indices are known to be distinct."""
    value = indices.known.value
    if value is not None and indices.rank in (0, 1):
        return value.size < 2 or (value.min() >= 0 and len(np.unique(value)) == value.size)
    return _at_most_one(indices, indices.rank)


def _at_most_one(indices: Value, axes: int | None) -> bool:
    """Return True if the first axes are known to contain at most one position."""
    return indices.shape.is_static and math.prod(indices.shape.lengths[:axes]) < 2


def top_k(node: Reverse, /) -> Adjoints:
    """Send the adjoint back to the selected elements; the selection counts as constant."""
    data = node.inputs[0]
    return _sum_at(node, data, node.outputs[1], node.adjoint, node.attributes["axis"]), None
