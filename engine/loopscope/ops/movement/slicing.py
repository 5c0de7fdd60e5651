"""Selection and replacement of parts of a tensor by start, stop and step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INTEGERS
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, Interval, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import element_places as gradients
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_checks import axes_within, whole_numbers


def bounded_slice(start: int | None, stop: int | None, step: int, length: int) -> slice:
    """Return the Python slice of an axis; None is the open end.

    Unlike in Python, a start far before the beginning of a backward slice is element 0.
    """
    if step == 0:
        raise ValueError("a slice's step is 0")
    if step < 0 and start is not None and start < -length:
        start = 0
    return slice(start, stop, step)


def slice_length(start: int | None, stop: int | None, step: int, whole: Dimension) -> Dimension:
    """Return the bounds of the number of elements that a slice selects from an axis with bounded
    length.
    """
    if not whole.is_static and _may_shrink(start, stop, step):
        return Dimension(0, whole.most)
    longest = _ENDLESS if whole.most is None else whole.most
    lower, upper = (
        _count(bounded_slice(start, stop, step, length), length)
        for length in (whole.least, longest)
    )
    return Dimension(lower, upper if upper < _UNBOUNDED else None)


_UNBOUNDED, _ENDLESS = 2**53, 2**80
"""A length above that of every axis, and a length above every bound of a slice."""


def _may_shrink(start: int | None, stop: int | None, step: int) -> bool:
    """Return True if the slice may select fewer elements from a longer axis.

    This happens from near one end towards the other, or backwards from the begin.
    """
    if start is None or stop is None:
        return False
    return (
        (start < 0) == (step > 0) if (start < 0) != (stop < 0) else step < 0 and start <= stop < 0
    )


def _count(part: slice, length: int) -> int:
    start, stop, step = part.indices(length)
    return max(-((start - stop) // step), 0)


def _length_between(
    start: Interval | None, stop: Interval | None, step: int, whole: Dimension
) -> Dimension:
    """Return the bounds as ``slice_length`` does, for start and stop in intervals; None is the open
    end.
    """
    if any(ends is not None and ends[0] < 0 <= ends[1] for ends in (start, stop)):
        return Dimension(0, whole.most)
    low, high = (0, 1) if step > 0 else (1, 0)
    shortest = slice_length(_bound(start, high), _bound(stop, low), step, whole)
    longest = slice_length(_bound(start, low), _bound(stop, high), step, whole)
    return Dimension(shortest.least, longest.most)


def _bound(ends: Interval | None, side: int) -> int | None:
    return None if ends is None else int(min(max(ends[side], -_ENDLESS), _ENDLESS))


def slice_(
    data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None, /
) -> Array:
    """Select the elements of ``data`` from ``start`` to before ``stop`` by ``step`` along ``axes``.

    ``start``, ``stop`` and ``step`` are [n]; ``axes`` is [n], by default the first n axes.
    """
    return data[_slices(data.shape, start, stop, step, axes)]


def _slices(
    shape: tuple[int, ...], start: Array, stop: Array, step: Array, axes: Array | None
) -> tuple[slice, ...]:
    starts, stops, steps = whole_numbers(start), whole_numbers(stop), whole_numbers(step)
    along = _sliced_axes(len(shape), starts, stops, steps, axes)
    parts = [slice(None)] * len(shape)
    for axis, first, last, stride in zip(along, starts, stops, steps, strict=True):
        parts[axis] = bounded_slice(first, last, stride, shape[axis])
    return tuple(parts)


def _sliced_axes(
    rank: int, starts: Sequence, stops: Sequence, steps: Sequence, axes: Array | None
) -> list[int]:
    along = list(range(len(starts))) if axes is None else whole_numbers(axes)
    if not len(starts) == len(stops) == len(steps) == len(along):
        raise ValueError(
            f"starts {starts}, stops {stops}, steps {steps} and axes {along} are not equally many"
        )
    return axes_within(along, rank)


def _infer_slice(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data = inputs[0]
    dimensions = data.shape.dimensions
    if dimensions is None:
        return (Known(data.element_type),)
    axes = inputs[4].value if len(inputs) > 4 else None
    start, stop, step = inputs[1].elements, inputs[2].elements, inputs[3].value
    if len(inputs) > 4 and axes is None:
        return (
            Known(
                data.element_type,
                PartialShape(tuple(Dimension(0, length.most) for length in dimensions)),
            ),
        )
    if start is None or stop is None or step is None:
        along = _possible_axes(len(dimensions), inputs[1], axes)
        lengths = tuple(
            Dimension(0, length.most) if axis in along else length
            for axis, length in enumerate(dimensions)
        )
        return (Known(data.element_type, PartialShape(lengths)),)
    starts, stops, steps = start.intervals, stop.intervals, whole_numbers(step)
    lengths_of_axes = list(dimensions)
    for axis, first, last, stride in zip(
        _sliced_axes(len(dimensions), starts, stops, steps, axes), starts, stops, steps, strict=True
    ):
        lengths_of_axes[axis] = _length_between(first, last, stride, dimensions[axis])
    return (Known(data.element_type, PartialShape(tuple(lengths_of_axes))),)


def _possible_axes(rank: int, start: Known, axes: np.ndarray | None) -> set[int]:
    """Return the axes that a slice of unknown bounds may shorten."""
    if axes is not None:
        return set(axes_within(whole_numbers(axes), rank))
    count = start.shape.at(0) if start.shape.rank == 1 else UNKNOWN
    return set(range(min(rank, count.length) if count.is_static else rank))


_Bound = TypeVar("_Bound", int, Interval)
"""Bound of a slice: a position, or an interval of it."""


@dataclass(frozen=True, slots=True)
class _Pick(Generic[_Bound]):
    """One entry of a strided slice, after ellipsis and masks: an axis of the data, or a new
    axis.
    """

    axis: int | None
    start: _Bound | None = None
    stop: _Bound | None = None
    step: int = 1
    shrinks: bool = False


def strided_slice(
    data: Array,
    begin: Array,
    end: Array,
    stride: Array | None = None,
    /,
    *,
    begin_mask: tuple[int, ...],
    end_mask: tuple[int, ...],
    new_axis_mask: tuple[int, ...] = (),
    shrink_axis_mask: tuple[int, ...] = (),
    ellipsis_mask: tuple[int, ...] = (),
) -> Array:
    """Select slices of ``data`` by ``begin``, ``end`` and ``stride`` (each [n]).

    Masks select open ends, new axes, dropped axes and the ellipsis.
    """
    begins, ends = whole_numbers(begin), whole_numbers(end)
    strides = [1] * len(begins) if stride is None else whole_numbers(stride)
    masks = (begin_mask, end_mask, new_axis_mask, shrink_axis_mask, ellipsis_mask)
    index: list[Any] = []
    for pick in _picks(data.ndim, begins, ends, strides, masks):
        if pick.axis is None:
            index.append(None)
        elif pick.shrinks:
            index.append(_single_position(pick, data.shape[pick.axis]))
        else:
            index.append(bounded_slice(pick.start, pick.stop, pick.step, data.shape[pick.axis]))
    return data[(*index, ...)]


def _single_position(pick: _Pick[int], length: int) -> int:
    position = (0 if pick.step > 0 else -1) if pick.start is None else pick.start
    if not -length <= position < length:
        raise ValueError(
            f"position {position} is out of range for axis {pick.axis} of length {length}"
        )
    return position


def _picks(
    rank: int,
    begins: list[_Bound],
    ends: list[_Bound],
    strides: list[int],
    masks: tuple[tuple[int, ...], ...],
) -> list[_Pick[_Bound]]:
    count = len(begins)
    if not count == len(ends) == len(strides):
        raise ValueError(f"begins {begins}, ends {ends} and strides {strides} are not equally many")
    opens, closes, added, shrinks, ellipses = (
        tuple(mask[:count]) + (0,) * (count - len(mask)) for mask in masks
    )
    if sum(ellipses) > 1:
        raise ValueError(f"ellipsis_mask {list(ellipses)} has more than one ellipsis")
    used = sum(1 for entry in range(count) if ellipses[entry] or not added[entry])
    covered = rank - (used - sum(ellipses))
    if covered < 0:
        raise ValueError(f"a slice of {used - sum(ellipses)} axes of a tensor of rank {rank}")
    picks: list[_Pick[_Bound]] = []
    axis = 0
    for entry in range(count):
        if ellipses[entry]:
            picks.extend(_Pick(axis + offset) for offset in range(covered))
            axis += covered
        elif added[entry]:
            picks.append(_Pick(None))
        else:
            start = None if opens[entry] else begins[entry]
            picks.append(
                _Pick(
                    axis,
                    start,
                    None if closes[entry] else ends[entry],
                    strides[entry],
                    bool(shrinks[entry]),
                )
            )
            axis += 1
    return picks + [_Pick(rest) for rest in range(axis, rank)]


def _infer_strided_slice(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, begin, end = inputs[:3]
    dimensions = data.shape.dimensions
    starts, stops = begin.elements, end.elements
    stride = inputs[3].value if len(inputs) > 3 else None
    masks = tuple(
        attributes[name]
        for name in ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    )
    if (
        dimensions is None
        or starts is None
        or stops is None
        or (len(inputs) > 3 and stride is None)
    ):
        return (Known(data.element_type, _strided_rank(data.shape, begin, end, masks)),)
    begins = starts.intervals
    strides = [1] * len(begins) if stride is None else whole_numbers(stride)
    lengths = [
        static(1)
        if pick.axis is None
        else _length_between(pick.start, pick.stop, pick.step, dimensions[pick.axis])
        for pick in _picks(len(dimensions), begins, stops.intervals, strides, masks)
        if not pick.shrinks
    ]
    return (Known(data.element_type, PartialShape(tuple(lengths))),)


def _strided_rank(
    shape: PartialShape, begin: Known, end: Known, masks: tuple[tuple[int, ...], ...]
) -> PartialShape:
    """Infer from the number of unknown bounds which axes are new, dropped, or untouched."""
    count = begin.shape.intersect(end.shape)
    if (
        shape.dimensions is None
        or count is None
        or count.rank != 1
        or not count.is_static
        or count.at(0).least > 64
    ):
        return DYNAMIC
    unknown = [0] * count.at(0).length
    strides = [2] * len(unknown)
    lengths = []
    for pick in _picks(len(shape.dimensions), unknown, unknown, strides, masks):
        if pick.axis is None:
            lengths.append(static(1))
        elif not pick.shrinks:
            whole = shape.dimensions[pick.axis]
            lengths.append(whole if pick.step == 1 else Dimension(0, whole.most))
    return PartialShape(tuple(lengths))


def slice_scatter(
    data: Array,
    updates: Array,
    start: Array,
    stop: Array,
    step: Array,
    axes: Array | None = None,
    /,
) -> Array:
    """Replace the slice that Slice-8 would select by ``updates``, which has the slice's shape."""
    if data.ndim == 0:
        raise ValueError("a scalar has no slices")
    result = data.copy()
    target = result[_slices(data.shape, start, stop, step, axes)]
    if np.broadcast_shapes(target.shape, updates.shape) != target.shape:
        raise ValueError(
            f"updates of shape {list(updates.shape)} do not fit a slice of shape "
            f"{list(target.shape)}"
        )
    target[...] = updates
    return result


def _infer_slice_scatter(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    return (Known(common_type(inputs[:2]), inputs[0].shape),)


_BITS = (0, 1)

row = family("movement")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Slice",
        slice_,
        version=8,
        infer=_infer_slice,
        inputs=(4, 5),
        types=(ANY_TYPE, INTEGERS),
        gradient=gradients.slice_,
    ),
    row(
        "SliceScatter",
        slice_scatter,
        version=15,
        infer=_infer_slice_scatter,
        inputs=(5, 6),
        types=(ANY_TYPE, ANY_TYPE, INTEGERS),
        gradient=gradients.slice_scatter,
    ),
    row(
        "StridedSlice",
        strided_slice,
        infer=_infer_strided_slice,
        inputs=(3, 4),
        types=(ANY_TYPE, INTEGERS),
        attributes=(
            Attribute("begin_mask", "ints", allowed=_BITS),
            Attribute("end_mask", "ints", allowed=_BITS),
            Attribute("new_axis_mask", "ints", (), allowed=_BITS),
            Attribute("shrink_axis_mask", "ints", (), allowed=_BITS),
            Attribute("ellipsis_mask", "ints", (), allowed=_BITS),
        ),
        gradient=gradients.strided_slice,
    ),
)
