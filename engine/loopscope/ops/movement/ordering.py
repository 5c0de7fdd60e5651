"""Reordering of elements along the same axes: transpose, reverse, roll, shuffle, and the distinct
elements in ascending order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import (
    ANY_TYPE,
    INDEX_CHOICES,
    INDEX_TYPES,
    INTEGERS,
    NUMERIC,
    ElementType,
)
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import images
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import same
from loopscope.ops.kernel_checks import (
    axes_within,
    axis_within,
    positions,
    whole_number,
    whole_numbers,
)


def transpose(data: Array, order: Array, /) -> Array:
    """Permute the axes: axis i of the result is axis ``order[i]``.

    An empty ``order`` reverses the axes.
    """
    axes = whole_numbers(order)
    return data.transpose(_permutation(axes, data.ndim) if axes else None)


def _permutation(order: list[int], rank: int) -> list[int]:
    if len(order) != rank:
        raise ValueError(
            f"order {order} is not a permutation of the axes of a tensor of rank {rank}"
        )
    return axes_within(order, rank)


def _infer_transpose(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, order = inputs
    dimensions = data.shape.dimensions
    if order.value is None or dimensions is None:
        rank = order.shape.at(0) if order.shape.rank == 1 else None
        if dimensions is None and rank is not None and rank.is_static and 0 < rank.least <= 64:
            return (Known(data.element_type, PartialShape.unknown(rank.length)),)
        return (
            Known(
                data.element_type,
                DYNAMIC if dimensions is None else PartialShape.unknown(len(dimensions)),
            ),
        )
    listed = whole_numbers(order.value)
    axes = _permutation(listed, len(dimensions)) if listed else list(range(len(dimensions)))[::-1]
    return (Known(data.element_type, PartialShape(tuple(dimensions[axis] for axis in axes))),)


def reverse(data: Array, axes: Array | None = None, /, *, mode: str) -> Array:
    """Reverse ``data`` along ``axes``.

    ``axes`` contains axis numbers in mode ``index``, and a boolean per axis in mode ``mask``.
    """
    if axes is None:
        return data
    if mode == "index":
        return np.flip(data, tuple(axes_within(whole_numbers(axes), data.ndim)))
    if axes.shape != (data.ndim,):
        raise ValueError(f"a mask of shape {list(axes.shape)} for a tensor of rank {data.ndim}")
    return np.flip(data, tuple(np.flatnonzero(axes).tolist()))


def reverse_sequence(
    data: Array, seq_lengths: Array, /, *, batch_axis: int = 0, seq_axis: int = 1
) -> Array:
    """Reverse the first ``seq_lengths[b]`` elements along ``seq_axis`` for each batch index b."""
    batch, along = axis_within(batch_axis, data.ndim), axis_within(seq_axis, data.ndim)
    steps = data.shape[along]
    lengths = np.asarray(positions(seq_lengths)).reshape(-1)
    if len(lengths) != data.shape[batch]:
        raise ValueError(f"{len(lengths)} sequence lengths for {data.shape[batch]} sequences")
    if lengths.size and (lengths.min() < 0 or lengths.max() > steps):
        raise ValueError(
            f"sequence lengths from {lengths.min()} to {lengths.max()} for {steps} steps"
        )
    if batch == along:
        raise ValueError(f"batch_axis and seq_axis are both {batch}")
    step = np.arange(steps)
    source = np.where(step < lengths[:, None], lengths[:, None] - 1 - step, step)
    moved = np.moveaxis(data, (batch, along), (0, 1))
    return np.moveaxis(moved[np.arange(len(lengths))[:, None], source], (0, 1), (batch, along))


def roll(data: Array, shift: Array, axes: Array, /) -> Array:
    """Rotate ``data`` by ``shift`` along ``axes``; repeated axes add up."""
    along = [axis_within(axis, data.ndim) for axis in whole_numbers(axes)]
    shifts = whole_numbers(shift)
    if len(shifts) == 1:
        shifts = shifts * len(along)
    if len(shifts) != len(along):
        raise ValueError(f"shifts {shifts} for axes {along}")
    return np.roll(data, shifts, along) if along else data


def shuffle_channels(data: Array, /, *, axis: int = 1, group: int = 1) -> Array:
    """Split ``axis`` into ``group`` groups and interleave their elements."""
    along = axis_within(axis, data.ndim)
    length = data.shape[along]
    if length % group:
        raise ValueError(f"{length} channels cannot be cut into {group} equal groups")
    before, after = data.shape[:along], data.shape[along + 1 :]
    grouped = data.reshape((*before, group, length // group, *after))
    return grouped.swapaxes(along, along + 1).reshape(data.shape)


row = family("movement")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Reverse",
        reverse,
        opsets=(1, 1),
        infer=same,
        inputs=(1, 2),
        types=(ANY_TYPE, INTEGERS | {ElementType.BOOLEAN}),
        attributes=(Attribute("mode", "str", allowed=("index", "mask")),),
        gradient=gradients.reverse,
    ),
    row(
        "ReverseSequence",
        reverse_sequence,
        infer=same,
        inputs=(2, 2),
        types=(ANY_TYPE, NUMERIC),
        attributes=(Attribute("batch_axis", "int", 0), Attribute("seq_axis", "int", 1)),
        gradient=gradients.reverse_sequence,
    ),
    row(
        "Roll",
        roll,
        version=7,
        infer=same,
        inputs=(3, 3),
        types=(ANY_TYPE, INTEGERS),
        gradient=gradients.roll,
    ),
    row(
        "ShuffleChannels",
        shuffle_channels,
        infer=same,
        attributes=(Attribute("axis", "int", 1), Attribute("group", "int", 1, least=1)),
        gradient=images.rearranged("shuffle_channels"),
    ),
    row(
        "Transpose",
        transpose,
        infer=_infer_transpose,
        inputs=(2, 2),
        types=(ANY_TYPE, INTEGERS),
        gradient=gradients.transpose,
    ),
)


def unique(
    data: Array,
    axis: Array | None = None,
    /,
    *,
    sorted: bool = True,
    index_element_type: ElementType = ElementType.I64,
    count_element_type: ElementType = ElementType.I64,
) -> tuple[Array, ...]:
    """Return the distinct elements (slices along ``axis``), with their positions and counts.

    The other outputs are the first position of each distinct element, the number of the distinct
    element for each input element, and the counts. Unsorted elements are in the order of their
    first occurrence. Slices are ordered by their first differing element.
    """
    if axis is None:
        data, along = data.reshape(-1), 0
    else:
        along = axis_within(whole_number(axis), data.ndim)
    slices = np.moveaxis(data, along, 0)
    rows = _ordinal(slices).reshape(len(slices), math.prod(slices.shape[1:]))
    first, inverse, counts = _distinct(rows)
    if not sorted:
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, inverse, counts = first[order], place[inverse], counts[order]
    index_type = index_element_type.dtype
    return (
        data.take(first, along),
        first.astype(index_type),
        inverse.astype(index_type),
        counts.astype(count_element_type.dtype),
    )


def _ordinal(data: Array) -> np.ndarray:
    """Return keys in the same order that numpy can compare: ranks of strings, codes of packed
    types.
    """
    if data.dtype.kind == "O":
        ranks = np.unique(np.asarray(data).reshape(-1), return_inverse=True)[1]
        return ranks.reshape(data.shape)
    if data.dtype.names:
        return np.asarray(data[data.dtype.names[0]])
    element_type = ElementType.of(data)
    if element_type.is_float and data.dtype.itemsize < 4:
        return data.astype(np.float32)
    return (
        data.astype(np.int8)
        if element_type.is_integer and element_type.bits < 8
        else np.asarray(data)
    )


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return first position, number and count of each distinct row, in ascending order."""
    count = len(rows)
    if count == 0 or rows.shape[1] == 0:
        kinds = min(count, 1)
        return np.zeros(kinds, np.int64), np.zeros(count, np.int64), np.full(kinds, count, np.int64)
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] > 1 else rows[:, 0].argsort(kind="stable")
    arranged = rows[order]
    starts = np.concatenate([[True], (arranged[1:] != arranged[:-1]).any(axis=1)])
    inverse = np.empty(count, np.int64)
    inverse[order] = np.cumsum(starts) - 1
    places = np.flatnonzero(starts)
    return order[places], inverse, np.diff(places, append=count)


def _infer_unique(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data = inputs[0]
    dimensions = data.shape.dimensions
    shape, whole = PartialShape(None), UNKNOWN
    if len(inputs) < 2:
        whole = (
            math.prod(dimensions or (UNKNOWN,), start=static(1)) if dimensions != () else static(1)
        )
        shape = PartialShape((_kinds(whole),))
    elif dimensions is not None and inputs[1].value is not None:
        along = axis_within(whole_number(inputs[1].value), len(dimensions))
        whole = dimensions[along]
        shape = PartialShape((*dimensions[:along], _kinds(whole), *dimensions[along + 1 :]))
    index_type, count_type = attributes["index_element_type"], attributes["count_element_type"]
    kinds = PartialShape((_kinds(whole),))
    return (
        Known(data.element_type, shape),
        Known(index_type, kinds),
        Known(index_type, PartialShape((whole,))),
        Known(count_type, kinds),
    )


def _kinds(whole: Dimension) -> Dimension:
    return Dimension(min(whole.least, 1), whole.most)


DISTINCT: tuple[Operation, ...] = (
    Operation(
        name="Unique",
        version=10,
        opsets=(10, 16),
        page="movement/unique-10",
        kernel=unique,
        infer=_infer_unique,
        inputs=(1, 2),
        outputs=4,
        types=(ANY_TYPE, INDEX_TYPES),
        attributes=(
            Attribute("sorted", "bool", True),
            Attribute("index_element_type", "type", ElementType.I64, INDEX_CHOICES),
            Attribute("count_element_type", "type", ElementType.I64, INDEX_CHOICES),
        ),
    ),
)
