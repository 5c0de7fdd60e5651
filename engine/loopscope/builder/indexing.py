"""``tensor[...]`` as StridedSlice, Slice and Gather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, shorten
from loopscope.ir.shape import Dimension, static

_MAX_INDEX = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Item:
    """One item of an index: the selection along one axis of the data (None for a new axis)."""

    what: Any
    axis: int | None


def index_tensor(data: Tensor, index: Any) -> Tensor:
    """Return ``data[index]`` with the meaning of numpy, for integers, slices, ``...``, ``None``,
    and one-axis indices by tensors or lists.

    Integers and plain slices become one StridedSlice. A slice with a tensor as a bound becomes a
    Slice, and a tensor as an index a Gather. ``BuildError`` for more indices than axes, an integer
    out of range, or anything else.
    """
    items = _parse_index(data, index if isinstance(index, tuple) else (index,))
    for item in items:
        if isinstance(item.what, slice) and _is_computed(item.what):
            data = _computed_slice(data, item.what, item.axis or 0)
    if sum(1 for item in items if _is_gathered(item.what)) > 1:
        raise BuildError(
            f"{data!r} is indexed by several tensors at once: index the axes one by one, or use "
            "ops.gather_nd"
        )
    plain = [
        _Item(slice(None), item.axis)
        if _is_gathered(item.what) or _is_computed(item.what)
        else item
        for item in items
    ]
    plain = [item for item in plain if item.what is not None]
    result = (
        _strided_slice(data, plain) if any(item.what != slice(None) for item in plain) else data
    )
    # New axes are added with an Unsqueeze: OpenVINO's CPU computes a StridedSlice that both adds
    # and drops axes incorrectly.
    remaining = [item.what for item in items if not isinstance(item.what, int)]
    new_axes = [place for place, selection in enumerate(remaining) if selection is None]
    if new_axes:
        result = data.graph.apply("Unsqueeze", (result, np.array(new_axes)), {})[0]
    for place, item in reversed(list(enumerate(items))):
        if _is_gathered(item.what):
            axis = sum(1 for previous in items[:place] if not isinstance(previous.what, int))
            result = data.graph.apply("Gather", (result, item.what, np.int64(axis)), {})[0]
    return result


def _parse_index(data: Tensor, index: tuple[Any, ...]) -> list[_Item]:
    """Return the index items with the ellipsis expanded, each with its axis."""
    index = tuple(int(item) if isinstance(item, np.integer) else item for item in index)
    axis_count = sum(1 for item in index if item is not None and item is not ...)
    if sum(1 for item in index if item is ...) > 1:
        raise BuildError(f"index {shorten(repr(index), 60)} of {data!r} has more than one '...'")
    rank = data.rank
    if rank is None and ... in [item for item in index if isinstance(item, EllipsisType)]:
        raise BuildError(
            f"'...' cannot be used in an index of {data!r}, because its rank is not known"
        )
    if rank is not None and axis_count > rank:
        raise BuildError(f"{data!r} has {rank} axes, but is indexed along {axis_count}")
    items: list[_Item] = []
    axis = 0
    for item in index:
        if item is ...:
            for _ in range((rank or 0) - axis_count):
                items.append(_Item(slice(None), axis))
                axis += 1
        elif item is None:
            items.append(_Item(None, None))
        else:
            items.append(_Item(_check_item(data, item, axis), axis))
            axis += 1
    return items


def _check_item(data: Tensor, item: Any, axis: int) -> Any:
    if isinstance(item, bool) or not (
        isinstance(item, (int, slice, list, np.ndarray)) or _is_tensor(item)
    ):
        raise BuildError(
            f"{data!r} is indexed by {shorten(repr(item), 60)}, expected whole numbers, slices, "
            "None, '...', or whole tensors"
        )
    if isinstance(item, int):
        _check_range(data, axis, item, item)
    if isinstance(item, (list, np.ndarray)):
        return _index_array(data, item, axis)
    if _is_tensor(item) and str(item.element_type) == "boolean":
        raise BuildError(
            f"{data!r} is indexed by booleans, {item!r}: ops.select preserves its shape, "
            "ops.non_zero and ops.gather_nd extract elements"
        )
    if isinstance(item, slice):
        for bound in (item.start, item.stop, item.step):
            if (
                bound is not None
                and not isinstance(bound, (int, np.integer))
                and not _is_tensor(bound)
            ):
                raise BuildError(
                    f"a slice of {data!r} has the bound {shorten(repr(bound), 60)}, expected a "
                    "whole number or a tensor"
                )
        if isinstance(item.step, int) and item.step == 0:
            raise BuildError(f"a slice of {data!r} has step 0")
    return item


def _check_range(data: Tensor, axis: int, lower: int, upper: int) -> None:
    length = data.shape.at(axis) if data.rank is not None else Dimension()
    if length.most is not None and not -length.most <= lower <= upper < length.most:
        position = lower if lower < -length.most else upper
        raise BuildError(f"index {position} is out of range for axis {axis} of {data!r}")


def _index_array(data: Tensor, indices: Any, axis: int) -> np.ndarray:
    """Return integer indices from a list or array of integers, or of one boolean per position along
    the axis.
    """
    places = np.asarray(indices) if len(indices) else np.zeros(0, np.int64)
    if (
        places.dtype.kind == "b"
        and places.ndim == 1
        and data.rank is not None
        and data.shape.at(axis) == static(len(places))
    ):
        places = np.flatnonzero(places)
    if places.dtype.kind not in "iu":
        raise BuildError(
            f"axis {axis} of {data!r} is indexed by {shorten(repr(indices), 60)}, expected whole "
            "numbers, or a boolean for each position"
        )
    if places.size:
        _check_range(data, axis, int(places.min()), int(places.max()))
    return places.astype(np.int64)


def _is_tensor(value: object) -> bool:
    return hasattr(value, "known") and hasattr(value, "graph")


def _is_gathered(value: object) -> bool:
    return isinstance(value, (list, np.ndarray)) or (
        not isinstance(value, slice) and _is_tensor(value)
    )


def _is_computed(value: object) -> bool:
    return isinstance(value, slice) and any(
        _is_tensor(bound) for bound in (value.start, value.stop, value.step)
    )


def _computed_slice(data: Tensor, bounds: slice, axis: int) -> Tensor:
    """Return a Slice-8 along one axis, with bounds as one-element tensors of one type."""
    step = bounds.step if bounds.step is not None else 1
    backwards = isinstance(step, int) and step < 0
    start = bounds.start if bounds.start is not None else (_MAX_INDEX if backwards else 0)
    stop = bounds.stop if bounds.stop is not None else (-_MAX_INDEX if backwards else _MAX_INDEX)
    inputs = [_one_element(data, bound) for bound in (start, stop, step)]
    return data.graph.apply("Slice", (data, *inputs, np.array([axis])), {})[0]


def _one_element(data: Tensor, bound: Any) -> Any:
    if not _is_tensor(bound):
        return np.array([bound], np.int64)
    if str(bound.element_type) != "i64":
        bound = data.graph.apply("Convert", (bound,), {"destination_type": "i64"})[0]
    return data.graph.apply("Reshape", (bound, np.array([1])), {"special_zero": False})[0]


def _strided_slice(data: Tensor, items: Sequence[_Item]) -> Tensor:
    """Return a StridedSlice; mask bits mark absent bounds and axes to drop."""
    begin, end, step = [], [], []
    masks: dict[str, list[int]] = {
        name: [] for name in ("begin_mask", "end_mask", "shrink_axis_mask")
    }
    for item in items:
        selection = item.what
        bounds = (
            selection
            if isinstance(selection, slice)
            else slice(selection, None if selection == -1 else selection + 1)
        )
        begin.append(int(bounds.start or 0) if bounds.start is not None else 0)
        end.append(int(bounds.stop) if bounds.stop is not None else 0)
        step.append(int(bounds.step) if bounds.step is not None else 1)
        masks["begin_mask"].append(int(bounds.start is None))
        masks["end_mask"].append(int(bounds.stop is None))
        masks["shrink_axis_mask"].append(int(isinstance(selection, int)))
    attributes = {
        name: bits
        for name, bits in masks.items()
        if name in ("begin_mask", "end_mask") or any(bits)
    }
    return data.graph.apply(
        "StridedSlice", (data, np.array(begin), np.array(end), np.array(step)), attributes
    )[0]
