"""The k largest or smallest elements along an axis; ties go to the element that comes first."""

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
from loopscope.ops.index import axis_within, whole_number
from loopscope.ops.infer import spelled_length

_FEW = 32
"""An axis so short is sorted whole: finding a threshold first would take longer."""
_MANY = 1 << 15
"""So many elements are worth a look at groups of them first: on some processors numpy partitions
slowly.
"""
_GROUPS, _LEAST_DEPTH = 64, 4
"""At least so many groups, of at least so many elements."""
_WORTH_NUMBERS, _PAIRS = 1 << 11, 8
"""From so many elements on, with more than so many along the axis, they are sorted together with
their positions, as numbers.
"""
_SMALL, _SHORT = 512, 255
"""So few elements, and an axis up to so long where elements and positions are one number, are
sorted whole as well.
"""
_BLOCK = 1 << 15
"""So many of these numbers stay in a processor's cache."""
_FEW_ROUNDS = 5
"""So few elements along a short axis, when it is not the last one, are found one after the
other.
"""
_TOGETHER = 1 << 19
"""So many elements at a time are searched for them."""


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
    """Values and positions of the ``k`` (scalar) largest or smallest elements along ``axis``,
    ordered by value or position.

    Equal elements keep their order whether ``stable`` asks for it or not; ``sort`` ``none`` gives
    them ordered by value.
    """
    along = axis_within(axis, data.ndim)
    count, length = whole_number(k), data.shape[along]
    if not 0 <= count <= length:
        raise ValueError(f"k is {count}, the axis has {length} elements")
    keys, largest = comparable(data), mode == "max"
    shape = (*data.shape[:along], count, *data.shape[along + 1 :])
    if not prod(shape):
        return np.empty(shape, data.dtype), np.empty(shape, index_element_type.dtype)
    few = along < data.ndim - 1 and 0 < count <= _FEW_ROUNDS and length <= _SHORT
    found = _in_rounds(keys, along, count, largest) if few else None
    values, places = (None, _places(keys, along, count, largest)) if found is None else found
    if sort == "index":
        values, places = None, np.sort(places, along).astype(np.int64)
    return _taken(data, places, along) if values is None else values.astype(
        data.dtype
    ), places.astype(index_element_type.dtype)


def comparable(data: Array) -> np.ndarray:
    """In a type that numpy sorts fast, in the same order."""
    if data.dtype.names:
        raise ValueError(f"elements of type {ElementType.of(data)} have no order")
    element_type = ElementType.of(data)
    if element_type.is_float:
        return data if data.dtype.itemsize >= 4 else data.astype(np.float32)
    return data.astype(np.int8) if element_type.bits < 8 else data


def _places(keys: np.ndarray, along: int, count: int, largest: bool) -> np.ndarray:
    """Positions along an axis of the best ``count`` elements, the best first."""
    place = _place(keys, along, largest) if count == 1 else None
    if place is not None:
        return place
    if along == keys.ndim - 1:
        return _best(keys, count, largest)
    return np.moveaxis(
        _best(np.moveaxis(keys, along, -1).copy(order="C"), count, largest), -1, along
    )


def _place(keys: np.ndarray, along: int, largest: bool) -> np.ndarray | None:
    """Positions of the best elements alone; None where the least is asked for among NaN, which
    numpy takes for less than all.
    """
    if largest:
        return np.asarray(keys.argmax(along, keepdims=True))
    places = keys.argmin(along, keepdims=True)
    unknown = keys.dtype.kind == "f" and np.isnan(np.take_along_axis(keys, places, along)).any()
    return None if unknown else np.asarray(places)


def _taken(data: Array, places: np.ndarray, along: int) -> np.ndarray:
    """The elements at places along an axis; where it is not the last one, by single numbers,
    which numpy follows faster than tuples.
    """
    if along == data.ndim - 1:
        return np.take_along_axis(data, places, along)
    inner, length = prod(data.shape[along + 1 :]), data.shape[along]
    flat = places.reshape(prod(data.shape[:along]), -1, inner) * inner
    flat += np.arange(len(flat)).reshape(-1, 1, 1) * (length * inner) + np.arange(inner)
    return data.reshape(-1).take(flat.reshape(places.shape))


def _in_rounds(
    keys: np.ndarray, along: int, count: int, largest: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """Values and positions: the best of all, then the best of the others, and so on.

    None where no other can be told from what was found before: it is as bad as an element can be,
    or NaN.
    """
    length, inner = keys.shape[along], prod(keys.shape[along + 1 :])
    shape, parts = (
        (*keys.shape[:along], count, *keys.shape[along + 1 :]),
        keys.reshape(-1, length, inner),
    )
    values, places = (
        np.empty((len(parts), count, inner), keys.dtype),
        np.empty((len(parts), count, inner), np.uint8),
    )
    together = max(1, _TOGETHER // (length * inner))
    for start in range(0, len(parts), together):
        # The axis first, so that numpy goes along long rows; a copy, in which what was found is
        # made the worst.
        rows = (
            parts[start : start + together].transpose(1, 0, 2).copy(order="C").reshape(length, -1)
        )
        for number, found in enumerate(_rounds(rows, count, largest)):
            if found is None:
                return None
            values[start : start + together, number] = found[0].reshape(-1, inner)
            places[start : start + together, number] = found[1].reshape(-1, inner)
    return values.reshape(shape), places.reshape(shape)


def _rounds(
    rows: np.ndarray, count: int, largest: bool
) -> Iterator[tuple[np.ndarray, np.ndarray] | None]:
    """The best elements of the columns and their rows, then the next best ones. Writes to
    ``rows``.
    """
    length, width = rows.shape
    worst, best_of = _worst(rows.dtype, largest), np.maximum if largest else np.minimum
    # Greatest for the first row, so that of equal elements the first is found.
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


def _worst(dtype: np.dtype, largest: bool) -> float | int:
    """What no element is worse than; NaN apart, which compares with nothing."""
    if dtype.kind == "f":
        return -np.inf if largest else np.inf
    limits = np.iinfo(dtype)
    return int(limits.min if largest else limits.max)


def _best(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Positions along the last axis of the best ``count`` elements, the best first."""
    length = keys.shape[-1]
    whole = length <= _FEW or keys.size <= _SMALL or (length <= _SHORT and _are_numbers(keys))
    if count > 0 and not whole and 4 * count <= length:
        threshold = _threshold(keys, count, largest)
        wanted = count * (keys.size // length)
        chosen = keys >= threshold if largest else keys <= threshold
        if np.count_nonzero(chosen) != wanted:
            chosen = _first_of_equals(keys, threshold, count, largest)
        # Neither number is right where a threshold is NaN; then everything is sorted.
        if np.count_nonzero(chosen) == wanted:
            places = (np.flatnonzero(chosen) % length).reshape((*keys.shape[:-1], count))
            order = _sorted_places(np.take_along_axis(keys, places, -1), count, largest)
            return np.take_along_axis(places, order, -1)
    return _sorted_places(keys, count, largest)


def _threshold(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """The worst of the best ``count`` elements along the last axis, which stays with length 1."""
    rows = _candidates(keys, count, largest) if keys.size >= _MANY else keys
    kth = rows.shape[-1] - count if largest else count - 1
    return np.partition(rows, kth, -1)[..., kth : kth + 1]


def _candidates(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Some elements of each row, the best ``count`` among them, which take less time to partition;
    all where they would be too many.

    A row is cut into groups: the worst of the best ``count`` groups, judged by their best, is no
    better than the element looked for.
    """
    length = keys.shape[-1]
    groups = max(4 * count, _GROUPS)
    depth = length // groups
    if depth < _LEAST_DEPTH:
        return keys
    parts = keys[..., : depth * groups].reshape(*keys.shape[:-1], depth, groups)
    bests = parts.max(-2) if largest else parts.min(-2)
    kth = groups - count if largest else count - 1
    bound = np.partition(bests, kth, -1)[..., kth : kth + 1]
    found = keys >= bound if largest else keys <= bound
    numbers = np.count_nonzero(found, axis=-1, keepdims=True)
    most = int(numbers.max(initial=0))
    if (
        numbers.min(initial=count) < count
        or most > length // 4
        or (bests.dtype.kind == "f" and np.isnan(bests).any())
    ):
        return keys
    # The rows of a rectangle, filled up with the bound, which is never better than the element
    # looked for.
    rows = np.empty((*keys.shape[:-1], most), keys.dtype)
    rows[...] = bound
    rows[np.arange(most) < numbers] = keys[found]
    return rows


def _first_of_equals(
    keys: np.ndarray, threshold: np.ndarray, count: int, largest: bool
) -> np.ndarray:
    """All that are better than the threshold, and of those equal to it the first, so that
    ``count`` are chosen of each row.
    """
    better = keys > threshold if largest else keys < threshold
    equal = keys == threshold
    missing = count - better.sum(-1, keepdims=True, dtype=np.int64)
    return better | (equal & (equal.cumsum(-1) <= missing))


def _sorted_places(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Positions along the last axis of the first ``count`` elements of a stable sort."""
    if _are_numbers(keys):
        return _sorted_numbers(keys, count, largest)
    if not largest:
        forwards: np.ndarray = keys.argsort(-1, kind="stable")
        return forwards[..., :count]
    backwards = keys[..., ::-1].argsort(-1, kind="stable")[..., ::-1]
    found: np.ndarray = keys.shape[-1] - 1 - backwards[..., :count]
    return found


def _are_numbers(keys: np.ndarray) -> bool:
    """Whether an element and its position make one number, and it is worth to make it."""
    return (
        keys.size >= _WORTH_NUMBERS
        and keys.dtype.itemsize <= 4
        and _PAIRS < keys.shape[-1] < 1 << 32
    )


def _sorted_numbers(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """As ``_sorted_places``, some rows at a time, which stay in a processor's cache."""
    rows = keys.reshape(-1, keys.shape[-1])
    places = np.empty((len(rows), count), np.int64)
    together = max(1, _BLOCK // rows.shape[-1])
    for start in range(0, len(rows), together):
        numbers = _numbers(rows[start : start + together], largest)
        numbers.sort(-1)
        np.bitwise_and(numbers[:, :count], 0xFFFF_FFFF, out=places[start : start + together])
    return places.reshape(*keys.shape[:-1], count)


def _numbers(keys: np.ndarray, largest: bool) -> np.ndarray:
    """Each element and its position in one number, which numpy sorts many times as fast as it
    sorts positions by elements.
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
    asked = spelled_length(k) if k.value is None else static(whole_number(k.value))
    length = asked.intersect(Dimension(0, dimensions[along].most))
    if length is None:
        raise ValueError(f"k is {asked}, the axis has {dimensions[along]} elements")
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
