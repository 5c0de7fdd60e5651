"""Derivatives of what takes elements from places or writes them there: adjoints go back to where
the elements came from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.scattered_folds import FOLDS, Places, folded

_FLAT = np.array([-1])
_FIRST = np.array(0)


def slice_(at: Reverse, /) -> Adjoints:
    """The adjoint in the slice, 0 elsewhere."""
    return (
        at.ops.slice_scatter(at.zeros_like(at.inputs[0]), at.adjoint, *at.inputs[1:]),
        *[None] * (len(at.inputs) - 1),
    )


def slice_scatter(at: Reverse, /) -> Adjoints:
    """What was overwritten counts no longer; the updates get the slice of the adjoint."""
    _, updates, *bounds = at.inputs
    kept = at.ops.slice_scatter(at.adjoint, at.zeros_like(updates), *bounds)
    return (kept, at.sum_to(at.ops.slice(at.adjoint, *bounds), updates), *[None] * len(bounds))


def strided_slice(at: Reverse, /) -> Adjoints:
    """The same slice of the numbers of all elements says where each came from."""
    came_from = at.ops.strided_slice(numbered(at, at.inputs[0]), *at.inputs[1:], **at.attributes)
    return (sent_back(at, came_from, at.inputs[0]).of_data, *[None] * (len(at.inputs) - 1))


def gather(at: Reverse, /) -> Adjoints:
    """The sum over all copies of a slice. Indices outside the data, which gather zeros, are
    refused when the gradient runs.
    """
    data, indices, along = at.inputs
    rank, picked, batch = data.rank, indices.rank, at.attributes.get("batch_dims", 0)
    if rank is None or picked is None:
        raise ValueError(
            f"the ranks of data and indices are not known ({data.shape} and {indices.shape}): give the model's inputs their ranks"
        )
    axis, batch = whole_number(along, "axis") % rank, batch % picked if batch < 0 else batch
    if axis == batch == 0:
        rows = at.ops.unsqueeze(indices, np.array([-1]))
        return (
            at.ops.scatter_nd_update(at.zeros_like(data), rows, at.adjoint, reduction="sum"),
            None,
            None,
        )
    count = at.ops.reduce_prod(
        at.ops.slice(at.shape_of(indices), np.array([batch]), np.array([picked]), np.array([1])),
        np.array([0]),
        keep_dims=True,
    )
    adjoint = at.ops.reshape(at.adjoint, _with_length(at, data, axis, count), special_zero=False)
    line = at.ops.reshape(
        indices,
        np.array([*[0] * batch, *[1] * (axis - batch), -1, *[1] * (rank - axis - 1)]),
        special_zero=True,
    )
    places = at.ops.broadcast(line, at.shape_of(adjoint), mode="numpy")
    return _summed_at(at, data, places, adjoint, axis), None, None


def gather_elements(at: Reverse, /) -> Adjoints:
    """The sum over all copies of an element."""
    data, indices = at.inputs
    return _summed_at(at, data, indices, at.adjoint, at.attributes["axis"]), None


def gather_nd(at: Reverse, /) -> Adjoints:
    """The sum over all copies of a slice."""
    data, indices = at.inputs
    if at.attributes["batch_dims"] == 0:
        return at.ops.scatter_nd_update(
            at.zeros_like(data), indices, at.adjoint, reduction="sum"
        ), None
    # Of version 5 the result has another shape, but its elements are in the same order.
    came_from = at.ops.gather_nd(
        numbered(at, data), indices, batch_dims=at.attributes["batch_dims"]
    )
    return sent_back(at, came_from, data).of_data, None


def scatter_update(at: Reverse, /) -> Adjoints:
    """What was overwritten counts no longer: the data's slices, and updates whose index comes
    again later.
    """
    data, indices, updates, along = at.inputs
    axis = whole_number(along, "axis")
    kept = at.ops.scatter_update(at.adjoint, indices, at.zeros_like(updates), along)
    of_updates = at.ops.gather(at.adjoint, indices, along, batch_dims=0)
    if not _different(indices):
        if data.rank is None:
            raise ValueError(
                f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
            )
        flat = at.ops.reshape(indices, _FLAT, special_zero=False)
        length = at.ops.gather(at.shape_of(data), np.array([axis]), _FIRST, batch_dims=0)
        numbers = numbered(at, flat)
        written = at.ops.scatter_update(
            at.ops.broadcast(np.int64(0), length, mode="numpy"), flat, numbers, _FIRST
        )
        last = at.ops.equal(at.ops.gather(written, flat, _FIRST, batch_dims=0), numbers)
        shape = at.ops.concat(
            at.shape_of(indices), np.ones(data.rank - axis % data.rank - 1, np.int64), axis=0
        )
        of_updates = at.where(at.ops.reshape(last, shape, special_zero=False), of_updates)
    return kept, None, at.reshaped(of_updates, updates), None


def scatter_elements(at: Reverse, /) -> Adjoints:
    """Of ``none`` what was overwritten counts no longer, of ``sum`` everything that was added
    does, of a fold what went into it.
    """
    data, indices, updates, along = at.inputs
    reduction, axis = at.attributes.get("reduction", "none"), whole_number(along, "axis")

    def take(value: Value) -> Value:
        return at.ops.gather_elements(_within(at, value, indices, axis), indices, axis=axis)

    def put(into: Value, written: Value, reduction: str) -> Value:
        return at.ops.scatter_elements_update(
            into, indices, written, along, reduction=reduction, use_init_val=True
        )

    if reduction in FOLDS:
        if not at.attributes["use_init_val"]:
            raise ValueError(f"reduction is {reduction!r} without the initial values")
        of_data, of_updates = folded(at, Places(take, put), updates, reduction)
        return of_data, None, of_updates, None
    of_updates = take(at.adjoint)
    if reduction == "sum" and at.attributes["use_init_val"]:
        return at.adjoint, None, of_updates, None
    kept = put(at.adjoint, at.zeros_like(updates), "none")
    if reduction == "none" and not _different(indices):
        numbers = numbered(at, updates)
        blank = at.ops.broadcast(np.int64(0), at.shape_of(data), mode="numpy")
        last = at.ops.equal(take(put(blank, numbers, "none")), numbers)
        of_updates = at.where(last, of_updates)
    return kept, None, of_updates, None


def scatter_nd(at: Reverse, /) -> Adjoints:
    """Of ``none`` what was overwritten counts no longer, of ``sum`` and ``sub`` everything that
    was added does, of a fold what went in.
    """
    data, indices, updates = at.inputs
    reduction = at.attributes.get("reduction", "none")

    def take(value: Value) -> Value:
        return at.reshaped(at.ops.gather_nd(value, indices, batch_dims=0), updates)

    def put(into: Value, written: Value, reduction: str) -> Value:
        return at.ops.scatter_nd_update(into, indices, written, reduction=reduction)

    if reduction in FOLDS:
        of_data, of_updates = folded(at, Places(take, put), updates, reduction)
        return of_data, None, of_updates
    of_updates = take(at.adjoint)
    if reduction != "none":
        return at.adjoint, None, -of_updates if reduction == "sub" else of_updates
    if not _at_most_one(indices, -1):
        numbers = numbered(at, updates)
        blank = at.ops.broadcast(np.int64(0), at.shape_of(data), mode="numpy")
        last = at.ops.equal(take(put(blank, numbers, "none")), numbers)
        of_updates = at.where(last, of_updates)
    return put(at.adjoint, at.zeros_like(updates), "none"), None, of_updates


@dataclass(frozen=True, slots=True)
class SentBack:
    """An adjoint at the elements that it came from, summed over their copies."""

    of_data: Value
    of_nothing: Value
    """The sum, [1], of what came from no element."""


def numbered(at: Reverse, data: Value) -> Value:
    """The numbers of all elements from 1 on, i64, in the shape of a tensor; 0 is for what comes
    from none.
    """
    shape = at.shape_of(data)
    count = at.ops.reduce_prod(shape, _FIRST, keep_dims=False)
    return at.ops.reshape(
        at.ops.range(np.int64(1), count + 1, np.int64(1), output_type="i64"),
        shape,
        special_zero=False,
    )


def sent_back(at: Reverse, came_from: Value, data: Value, given: Value | None = None) -> SentBack:
    """The adjoint of output 0, or what is given in its stead, whose elements came from those
    with the numbers ``came_from``.
    """
    count = at.ops.reduce_prod(at.shape_of(data), np.array([0]), keep_dims=True)
    blank = at.ops.broadcast(
        np.zeros((), data.element_type.dtype if data.element_type else np.float32),
        count + 1,
        mode="numpy",
    )
    places, adjoint = (
        at.ops.reshape(one, _FLAT, special_zero=False)
        for one in (came_from, at.adjoint if given is None else given)
    )
    sums = at.ops.scatter_elements_update(
        blank, places, adjoint, _FIRST, reduction="sum", use_init_val=True
    )
    of_nothing, rest = at.several("VariadicSplit", sums, _FIRST, np.array([1, -1]))
    return SentBack(at.ops.reshape(rest, at.shape_of(data), special_zero=False), of_nothing)


def whole_number(value: Value, name: str) -> int:
    """The number that is known of an input such as an axis."""
    if value.known.value is None:
        raise ValueError(f"{name} is not known before the model runs: make it a constant")
    return int(np.asarray(value.known.value).reshape(()))


def whole_numbers(value: Value, name: str) -> tuple[int, ...]:
    """The numbers that are known of an input such as sizes."""
    if value.known.value is None:
        raise ValueError(f"{name} is not known before the model runs: make it a constant")
    return tuple(int(one) for one in np.asarray(value.known.value).reshape(-1))


def _summed_at(at: Reverse, data: Value, places: Value, adjoint: Value, axis: int) -> Value:
    return at.ops.scatter_elements_update(
        at.zeros_like(data), places, adjoint, np.array(axis), reduction="sum", use_init_val=True
    )


def _with_length(at: Reverse, data: Value, axis: int, length: Value) -> Value:
    """The shape of a tensor with another length of an axis."""
    shape, one = at.shape_of(data), np.array([1])
    parts: Sequence[Value] = (
        at.ops.slice(shape, np.array([0]), np.array([axis]), one),
        length,
        at.ops.slice(shape, np.array([axis + 1]), np.array([data.rank]), one),
    )
    return at.ops.concat(*parts, axis=0)


def _within(at: Reverse, data: Value, indices: Value, axis: int) -> Value:
    """The data as far as the indices reach, which are shorter along other axes than the one they
    count along.
    """
    rank = data.rank
    if rank is None:
        raise ValueError(
            f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
        )
    others = np.array([one for one in range(rank) if one != axis % rank], np.int64)
    if (
        data.shape.is_static
        and indices.shape.is_static
        and all(data.shape.lengths[one] == indices.shape.lengths[one] for one in others)
    ):
        return data
    if not others.size:
        return data
    ends = at.ops.gather(at.shape_of(indices), others, _FIRST, batch_dims=0)
    return at.ops.slice(
        data, np.zeros(len(others), np.int64), ends, np.ones(len(others), np.int64), others
    )


def _different(indices: Value) -> bool:
    """Whether no two of them are known to name one place."""
    value = indices.known.value
    if value is not None and indices.rank in (0, 1):
        return value.size < 2 or (value.min() >= 0 and len(np.unique(value)) == value.size)
    return _at_most_one(indices, indices.rank)


def _at_most_one(indices: Value, axes: int | None) -> bool:
    """Whether the first axes surely hold no more than one place."""
    return indices.shape.is_static and math.prod(indices.shape.lengths[:axes]) < 2


def top_k(at: Reverse, /) -> Adjoints:
    """What was taken gets the adjoint of its place among the greatest or least; which ones are
    taken does not change.
    """
    data = at.inputs[0]
    return _summed_at(at, data, at.outputs[1], at.adjoint, at.attributes["axis"]), None
