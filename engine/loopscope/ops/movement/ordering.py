"""Reordering of elements along the same axes: transpose, reverse, roll, shuffle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INTEGERS, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import images
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import same
from loopscope.ops.kernel_checks import axes_within, axis_within, positions, whole_numbers


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
