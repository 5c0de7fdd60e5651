"""``tensor[...]`` as StridedSlice, Slice and Gather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from loopscope.errors import BuildError, shorten
from loopscope.ir.shape import Dimension, static

if TYPE_CHECKING:
    from loopscope.builder.tensor import Tensor

_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Item:
    """One place of an index: what to take along one axis of the data (a new axis has none)."""

    what: Any
    axis: int | None


def indexed(data: Tensor, index: Any) -> Tensor:
    """What numpy means by ``data[index]``, for whole numbers, slices, ``...``, ``None``, and
    one-axis indices by tensors or lists.

    Numbers and plain slices become one StridedSlice; a slice with a tensor as a bound a Slice, a
    tensor as an index a Gather. ``BuildError`` for more indices than axes, a number out of range,
    or anything else.
    """
    items = _items(data, index if isinstance(index, tuple) else (index,))
    for item in items:
        if isinstance(item.what, slice) and _is_computed(item.what):
            data = _sliced(data, item.what, item.axis or 0)
    if sum(1 for item in items if _is_gathered(item.what)) > 1:
        raise BuildError(
            f"{data!r} is indexed by several tensors at once: index one axis after the other, or use ops.gather_nd"
        )
    plain = [
        _Item(slice(None), item.axis)
        if _is_gathered(item.what) or _is_computed(item.what)
        else item
        for item in items
    ]
    plain = [item for item in plain if item.what is not None]
    chosen = _strided(data, plain) if any(item.what != slice(None) for item in plain) else data
    # New axes come by an Unsqueeze: OpenVINO's CPU mistakes those of a StridedSlice that also drops
    # axes.
    kept = [item.what for item in items if not isinstance(item.what, int)]
    new = [place for place, what in enumerate(kept) if what is None]
    if new:
        chosen = data.graph.apply("Unsqueeze", (chosen, np.array(new)), {})[0]
    for place, item in reversed(list(enumerate(items))):
        if _is_gathered(item.what):
            axis = sum(1 for one in items[:place] if not isinstance(one.what, int))
            chosen = data.graph.apply("Gather", (chosen, item.what, np.int64(axis)), {})[0]
    return chosen


def _items(data: Tensor, index: tuple[Any, ...]) -> list[_Item]:
    """The index with its ellipsis written out, each with the axis that it is about."""
    index = tuple(int(one) if isinstance(one, np.integer) else one for one in index)
    taken = sum(1 for one in index if one is not None and one is not ...)
    if sum(1 for one in index if one is ...) > 1:
        raise BuildError(f"index {shorten(repr(index), 60)} of {data!r} has more than one '...'")
    rank = data.rank
    if rank is None and ... in [one for one in index if isinstance(one, EllipsisType)]:
        raise BuildError(f"'...' cannot stand in an index of {data!r}, whose rank is not known")
    if rank is not None and taken > rank:
        raise BuildError(f"{data!r} has {rank} axes, and is indexed along {taken}")
    items: list[_Item] = []
    axis = 0
    for one in index:
        if one is ...:
            for _ in range((rank or 0) - taken):
                items.append(_Item(slice(None), axis))
                axis += 1
        elif one is None:
            items.append(_Item(None, None))
        else:
            items.append(_Item(_checked(data, one, axis), axis))
            axis += 1
    return items


def _checked(data: Tensor, one: Any, axis: int) -> Any:
    if isinstance(one, bool) or not (
        isinstance(one, (int, slice, list, np.ndarray)) or _is_tensor(one)
    ):
        raise BuildError(
            f"{data!r} is indexed by {shorten(repr(one), 60)}, expected whole numbers, slices, None, '...', or whole tensors"
        )
    if isinstance(one, int):
        _must_lie_inside(data, axis, one, one)
    if isinstance(one, (list, np.ndarray)):
        return _places(data, one, axis)
    if _is_tensor(one) and str(one.element_type) == "boolean":
        raise BuildError(
            f"{data!r} is indexed by booleans, {one!r}: ops.select keeps its shape, ops.non_zero and ops.gather_nd take parts out"
        )
    if isinstance(one, slice):
        for bound in (one.start, one.stop, one.step):
            if (
                bound is not None
                and not isinstance(bound, (int, np.integer))
                and not _is_tensor(bound)
            ):
                raise BuildError(
                    f"a slice of {data!r} has the bound {shorten(repr(bound), 60)}, expected a whole number or a tensor"
                )
        if isinstance(one.step, int) and one.step == 0:
            raise BuildError(f"a slice of {data!r} has step 0")
    return one


def _must_lie_inside(data: Tensor, axis: int, least: int, most: int) -> None:
    length = data.shape.at(axis) if data.rank is not None else Dimension()
    if length.most is not None and not -length.most <= least <= most < length.most:
        wrong = least if least < -length.most else most
        raise BuildError(f"index {wrong} is out of range for axis {axis} of {data!r}")


def _places(data: Tensor, given: Any, axis: int) -> np.ndarray:
    """A list or array of whole numbers, or of a boolean for each place along the axis."""
    places = np.asarray(given) if len(given) else np.zeros(0, np.int64)
    if (
        places.dtype.kind == "b"
        and places.ndim == 1
        and data.rank is not None
        and data.shape.at(axis) == static(len(places))
    ):
        places = np.flatnonzero(places)
    if places.dtype.kind not in "iu":
        raise BuildError(
            f"axis {axis} of {data!r} is indexed by {shorten(repr(given), 60)}, expected whole numbers, or a boolean for each place"
        )
    if places.size:
        _must_lie_inside(data, axis, int(places.min()), int(places.max()))
    return places.astype(np.int64)


def _is_tensor(one: object) -> bool:
    return hasattr(one, "known") and hasattr(one, "graph")


def _is_gathered(one: object) -> bool:
    return isinstance(one, (list, np.ndarray)) or (not isinstance(one, slice) and _is_tensor(one))


def _is_computed(one: object) -> bool:
    return isinstance(one, slice) and any(
        _is_tensor(bound) for bound in (one.start, one.stop, one.step)
    )


def _sliced(data: Tensor, bounds: slice, axis: int) -> Tensor:
    """Slice-8 along one axis; its bounds are one-element tensors of one type."""
    step = bounds.step if bounds.step is not None else 1
    backwards = isinstance(step, int) and step < 0
    start = bounds.start if bounds.start is not None else (_MOST if backwards else 0)
    stop = bounds.stop if bounds.stop is not None else (-_MOST if backwards else _MOST)
    inputs = [_one_element(data, bound) for bound in (start, stop, step)]
    return data.graph.apply("Slice", (data, *inputs, np.array([axis])), {})[0]


def _one_element(data: Tensor, bound: Any) -> Any:
    if not _is_tensor(bound):
        return np.array([bound], np.int64)
    if str(bound.element_type) != "i64":
        bound = data.graph.apply("Convert", (bound,), {"destination_type": "i64"})[0]
    return data.graph.apply("Reshape", (bound, np.array([1])), {"special_zero": False})[0]


def _strided(data: Tensor, items: Sequence[_Item]) -> Tensor:
    """One StridedSlice: a mask bit says which bounds are left out, and which axes go away."""
    begin, end, step = [], [], []
    masks: dict[str, list[int]] = {
        name: [] for name in ("begin_mask", "end_mask", "shrink_axis_mask")
    }
    for item in items:
        what = item.what
        bounds = what if isinstance(what, slice) else slice(what, None if what == -1 else what + 1)
        begin.append(int(bounds.start or 0) if bounds.start is not None else 0)
        end.append(int(bounds.stop) if bounds.stop is not None else 0)
        step.append(int(bounds.step) if bounds.step is not None else 1)
        masks["begin_mask"].append(int(bounds.start is None))
        masks["end_mask"].append(int(bounds.stop is None))
        masks["shrink_axis_mask"].append(int(isinstance(what, int)))
    given = {
        name: bits
        for name, bits in masks.items()
        if name in ("begin_mask", "end_mask") or any(bits)
    }
    return data.graph.apply(
        "StridedSlice", (data, np.array(begin), np.array(end), np.array(step)), given
    )[0]
