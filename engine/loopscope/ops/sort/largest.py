"""The k largest or smallest elements along an axis. Of equal elements, the first is selected
first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_CHOICES, INTEGERS, NUMERIC, ElementType
from loopscope.ir.shape import Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import element_places as gradients
from loopscope.ops.infer import spelled_length
from loopscope.ops.kernel_checks import axis_within, whole_number

_WHOLE_SORT_LENGTH = 32
"""Axis length up to which an axis is sorted whole, because finding a threshold first would take
longer.
"""
_GROUPED_FROM = 1 << 15
"""Number of elements from which groups of elements are compared first, because numpy partitions
slowly on some processors.
"""
_GROUPS, _MIN_DEPTH = 64, 4
"""Minimum number of groups, and of elements in a group."""
_PACKED_FROM, _PACKED_LENGTH = 1 << 11, 8
"""Numbers of elements, in all and along the axis, from which elements are sorted together with
their positions, packed into one integer.
"""
_WHOLE_SORT_ELEMENTS, _SHORT_AXIS = 512, 255
"""Number of elements up to which an array is sorted whole; axis length up to which an array of
packed integers is sorted whole.
"""
_PACKED_BLOCK = 1 << 15
"""Number of packed integers that stay in a processor's cache."""
_MAX_ROUNDS = 5
"""Largest k for which elements along a short axis that is not the last are found one after the
other.
"""
_ROUND_BLOCK = 1 << 19
"""Number of elements searched at a time when elements are found one after the other."""


def top_k(
    data: Array,
    k: Array,
    /,
    *,
    axis: int,
    mode: str,
    sort: str,
    stable: bool = True,
    index_element_type: ElementType = ElementType.I32,
) -> tuple[Array, Array]:
    """Return values and positions of the ``k`` (scalar) largest or smallest elements along
    ``axis``, ordered by value or position.

    Equal elements keep their order for both values of ``stable``. ``sort`` ``none`` orders them by
    value.
    """
    along = axis_within(axis, data.ndim)
    count, length = whole_number(k), data.shape[along]
    if not 0 <= count <= length:
        raise ValueError(f"k is {count}, the axis has {length} elements")
    keys, largest = comparable(data), mode == "max"
    shape = (*data.shape[:along], count, *data.shape[along + 1 :])
    if not prod(shape):
        return np.empty(shape, data.dtype), np.empty(shape, index_element_type.dtype)
    few = along < data.ndim - 1 and 0 < count <= _MAX_ROUNDS and length <= _SHORT_AXIS
    pair = _select_in_rounds(keys, along, count, largest) if few else None
    values, places = (None, _best_positions(keys, along, count, largest)) if pair is None else pair
    if sort == "index":
        values, places = None, np.sort(places, along).astype(np.int64)
    return _take_elements(data, places, along) if values is None else values.astype(
        data.dtype
    ), places.astype(index_element_type.dtype)


def comparable(data: Array) -> np.ndarray:
    """Return the elements in a type that numpy sorts fast, in the same order."""
    if data.dtype.names:
        raise ValueError(f"elements of type {ElementType.of(data)} have no order")
    element_type = ElementType.of(data)
    if element_type.is_float:
        return data if data.dtype.itemsize >= 4 else data.astype(np.float32)
    return data.astype(np.int8) if element_type.bits < 8 else data


def _best_positions(keys: np.ndarray, along: int, count: int, largest: bool) -> np.ndarray:
    """Return positions along an axis of the best ``count`` elements, the best first."""
    place = _best_position(keys, along, largest) if count == 1 else None
    if place is not None:
        return place
    if along == keys.ndim - 1:
        return _select(keys, count, largest)
    return np.moveaxis(
        _select(np.moveaxis(keys, along, -1).copy(order="C"), count, largest), -1, along
    )


def _best_position(keys: np.ndarray, along: int, largest: bool) -> np.ndarray | None:
    """Return positions of the best element of each row; None for the smallest among NaN, which
    numpy treats as smaller than all numbers.
    """
    if largest:
        return np.asarray(keys.argmax(along, keepdims=True))
    places = keys.argmin(along, keepdims=True)
    unknown = keys.dtype.kind == "f" and np.isnan(np.take_along_axis(keys, places, along)).any()
    return None if unknown else np.asarray(places)


def _take_elements(data: Array, places: np.ndarray, along: int) -> np.ndarray:
    """Return the elements at positions along an axis. For an axis that is not the last, the
    positions are flattened, because numpy indexes faster with single numbers than with tuples.
    """
    if along == data.ndim - 1:
        return np.take_along_axis(data, places, along)
    inner, length = prod(data.shape[along + 1 :]), data.shape[along]
    flat = places.reshape(prod(data.shape[:along]), -1, inner) * inner
    flat += np.arange(len(flat)).reshape(-1, 1, 1) * (length * inner) + np.arange(inner)
    return data.reshape(-1).take(flat.reshape(places.shape))


def _select_in_rounds(
    keys: np.ndarray, along: int, count: int, largest: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return values and positions: the best of all elements, then the best of the rest, and so on.

    Return None if the best of the rest cannot be distinguished from the elements that are already
    taken: it has the worst possible value, or is NaN.
    """
    length, inner = keys.shape[along], prod(keys.shape[along + 1 :])
    shape = (*keys.shape[:along], count, *keys.shape[along + 1 :])
    parts = keys.reshape(-1, length, inner)
    values = np.empty((len(parts), count, inner), keys.dtype)
    places = np.empty((len(parts), count, inner), np.uint8)
    block = max(1, _ROUND_BLOCK // (length * inner))
    for start in range(0, len(parts), block):
        # The axis comes first, so that numpy runs along long rows. The rows are copied, because
        # each element found is overwritten with the worst value.
        rows = parts[start : start + block].transpose(1, 0, 2).copy(order="C").reshape(length, -1)
        for number, pair in enumerate(_rounds(rows, count, largest)):
            if pair is None:
                return None
            values[start : start + block, number] = pair[0].reshape(-1, inner)
            places[start : start + block, number] = pair[1].reshape(-1, inner)
    return values.reshape(shape), places.reshape(shape)


def _rounds(
    rows: np.ndarray, count: int, largest: bool
) -> Iterator[tuple[np.ndarray, np.ndarray] | None]:
    """Yield the best elements of the columns and their rows, then the next best ones. Writes to
    ``rows``.
    """
    length, width = rows.shape
    worst, best_of = _worst_value(rows.dtype, largest), np.maximum if largest else np.minimum
    # The first row has the greatest number, so that of equal elements the first is selected.
    remaining = np.arange(length, 0, -1).astype(np.uint8).reshape(-1, 1)
    flat, ends = rows.reshape(-1), np.arange(length * width, (length + 1) * width)
    for _ in range(count):
        best = best_of.reduce(rows, 0)
        if not (best > worst if largest else best < worst).all():
            yield None
            return
        equal = (rows == best).view(np.uint8)
        equal *= remaining
        before_end = equal.max(0)
        place = ends - before_end.astype(np.int64) * width
        yield (
            flat[place],
            length - before_end,
        )  # zeros of both signs are equal: the value is the one that is there
        flat[place] = worst


def _worst_value(dtype: np.dtype, largest: bool) -> float | int:
    """Return the value that no element is worse than, apart from NaN, which does not compare."""
    if dtype.kind == "f":
        return -np.inf if largest else np.inf
    limits = np.iinfo(dtype)
    return int(limits.min if largest else limits.max)


def _select(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Return positions along the last axis of the best ``count`` elements, the best first."""
    length = keys.shape[-1]
    whole = (
        length <= _WHOLE_SORT_LENGTH
        or keys.size <= _WHOLE_SORT_ELEMENTS
        or (length <= _SHORT_AXIS and _are_packable(keys))
    )
    if count > 0 and not whole and 4 * count <= length:
        threshold = _threshold(keys, count, largest)
        expected = count * (keys.size // length)
        chosen = keys >= threshold if largest else keys <= threshold
        if np.count_nonzero(chosen) != expected:
            chosen = _select_first_equals(keys, threshold, count, largest)
        # Both counts differ from the expected one if a threshold is NaN; then everything is sorted.
        if np.count_nonzero(chosen) == expected:
            places = (np.flatnonzero(chosen) % length).reshape((*keys.shape[:-1], count))
            order = _sort_positions(np.take_along_axis(keys, places, -1), count, largest)
            return np.take_along_axis(places, order, -1)
    return _sort_positions(keys, count, largest)


def _threshold(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Return the worst of the best ``count`` elements along the last axis, which remains with
    length 1.
    """
    rows = _candidates(keys, count, largest) if keys.size >= _GROUPED_FROM else keys
    kth = rows.shape[-1] - count if largest else count - 1
    return np.partition(rows, kth, -1)[..., kth : kth + 1]


def _candidates(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Return some elements of each row that include the best ``count``, because they take less time
    to partition; all elements if there would be too many.

    A row is cut into groups. The best element of the worst of the best ``count`` groups is not
    better than the threshold.
    """
    length = keys.shape[-1]
    groups = max(4 * count, _GROUPS)
    depth = length // groups
    if depth < _MIN_DEPTH:
        return keys
    parts = keys[..., : depth * groups].reshape(*keys.shape[:-1], depth, groups)
    bests = parts.max(-2) if largest else parts.min(-2)
    kth = groups - count if largest else count - 1
    bound = np.partition(bests, kth, -1)[..., kth : kth + 1]
    chosen = keys >= bound if largest else keys <= bound
    numbers = np.count_nonzero(chosen, axis=-1, keepdims=True)
    widest = int(numbers.max(initial=0))
    if (
        numbers.min(initial=count) < count
        or widest > length // 4
        or (bests.dtype.kind == "f" and np.isnan(bests).any())
    ):
        return keys
    # Rows of a rectangle, filled up with the bound, which is never better than the threshold.
    rows = np.empty((*keys.shape[:-1], widest), keys.dtype)
    rows[...] = bound
    rows[np.arange(widest) < numbers] = keys[chosen]
    return rows


def _select_first_equals(
    keys: np.ndarray, threshold: np.ndarray, count: int, largest: bool
) -> np.ndarray:
    """Select all elements better than the threshold, and the first ones equal to it, so that
    ``count`` are selected in each row.
    """
    better = keys > threshold if largest else keys < threshold
    equal = keys == threshold
    missing = count - better.sum(-1, keepdims=True, dtype=np.int64)
    return better | (equal & (equal.cumsum(-1) <= missing))


def _sort_positions(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Return positions along the last axis of the first ``count`` elements of a stable sort."""
    if _are_packable(keys):
        return _sort_packed(keys, count, largest)
    if not largest:
        forwards: np.ndarray = keys.argsort(-1, kind="stable")
        return forwards[..., :count]
    backwards = keys[..., ::-1].argsort(-1, kind="stable")[..., ::-1]
    positions: np.ndarray = keys.shape[-1] - 1 - backwards[..., :count]
    return positions


def _are_packable(keys: np.ndarray) -> bool:
    """Return True if an element and its position fit into one integer and the array is large enough
    for it.
    """
    return (
        keys.size >= _PACKED_FROM
        and keys.dtype.itemsize <= 4
        and _PACKED_LENGTH < keys.shape[-1] < 1 << 32
    )


def _sort_packed(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Return the same as ``_sorted_places``, for blocks of rows that stay in a processor's
    cache.
    """
    rows = keys.reshape(-1, keys.shape[-1])
    places = np.empty((len(rows), count), np.int64)
    block = max(1, _PACKED_BLOCK // rows.shape[-1])
    for start in range(0, len(rows), block):
        numbers = _pack(rows[start : start + block], largest)
        numbers.sort(-1)
        np.bitwise_and(numbers[:, :count], 0xFFFF_FFFF, out=places[start : start + block])
    return places.reshape(*keys.shape[:-1], count)


def _pack(keys: np.ndarray, largest: bool) -> np.ndarray:
    """Return each element and its position as one integer. numpy sorts these many times faster than
    it sorts positions by elements.
    """
    order = keys
    if keys.dtype.kind == "f":
        bits = (keys + keys.dtype.type(0)).view(np.int32)  # -0 becomes 0
        order = bits >> 31
        order &= 0x7FFF_FFFF
        order ^= bits
        np.putmask(order, np.isnan(keys), 0x7FFF_FFFF)
    numbers = order.astype(np.int64)
    if keys.dtype == np.uint32:
        numbers -= 1 << 31
    if largest:
        np.invert(numbers, out=numbers)
    numbers <<= 32
    numbers |= np.arange(keys.shape[-1])
    return numbers


def _infer_top_k(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, k = inputs
    index_type = attributes.get("index_element_type", ElementType.I32)
    dimensions = data.shape.dimensions
    if dimensions is None:
        return Known(data.element_type), Known(index_type)
    along = axis_within(attributes["axis"], len(dimensions))
    count = spelled_length(k) if k.value is None else static(whole_number(k.value))
    length = count.intersect(Dimension(0, dimensions[along].most))
    if length is None:
        raise ValueError(f"k is {count}, the axis has {dimensions[along]} elements")
    shape = PartialShape((*dimensions[:along], length, *dimensions[along + 1 :]))
    return Known(data.element_type, shape), Known(index_type, shape)


_AXIS = Attribute("axis", "int")
_MODE = Attribute("mode", "str", allowed=("max", "min"))
_SORT = Attribute("sort", "str", allowed=("value", "index", "none"))
_INDEX_TYPE = Attribute("index_element_type", "type", ElementType.I32, INDEX_CHOICES)

row = family(
    "sort",
    infer=_infer_top_k,
    inputs=(2, 2),
    outputs=2,
    types=(NUMERIC, INTEGERS),
    attributes=(_AXIS, _MODE, _SORT, _INDEX_TYPE),
    gradient=gradients.top_k,
)

OPERATIONS: tuple[Operation, ...] = (
    row("TopK", top_k, opsets=(1, 2)),
    row("TopK", top_k, version=3, opsets=(3, 10)),
    row(
        "TopK",
        top_k,
        version=11,
        attributes=(_AXIS, _MODE, _SORT, Attribute("stable", "bool", False), _INDEX_TYPE),
    ),
)
