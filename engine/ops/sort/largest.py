"""The k largest or smallest elements along an axis; ties go to the element that comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.ir.element_type import INDEX_TYPES, INTEGERS, NUMERIC, ElementType
from engine.ir.shape import Dimension, PartialShape, static
from engine.ops.declare import Array, Attribute, Known, Operation
from engine.ops.index import axis_within, whole_number
from engine.ops.infer import spelled_length

_FEW = 32
"""An axis so short is sorted whole: finding a threshold first would take longer."""


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
    """Values and positions of the ``k`` (scalar) largest or smallest elements along ``axis``, ordered by value or position.

    Equal elements keep their order whether ``stable`` asks for it or not; ``sort`` ``none`` gives them ordered by value.
    """
    along = axis_within(axis, data.ndim)
    count, length = whole_number(k), data.shape[along]
    if not 0 <= count <= length:
        raise ValueError(f"k is {count}, the axis has {length} elements")
    inner = along == data.ndim - 1
    keys = comparable(data)
    places = _best(keys if inner else np.moveaxis(keys, along, -1).copy(order="C"), count, mode == "max")
    if sort == "index":
        places = np.sort(places, -1)
    if not inner:
        places = np.moveaxis(places, -1, along)
    return np.take_along_axis(data, places, along), places.astype(index_element_type.dtype)


def comparable(data: Array) -> np.ndarray:
    """In a type that numpy sorts fast, in the same order."""
    if data.dtype.names:
        raise ValueError(f"elements of type {ElementType.of(data)} have no order")
    element_type = ElementType.of(data)
    if element_type.is_float:
        return data if data.dtype.itemsize >= 4 else data.astype(np.float32)
    return data.astype(np.int8) if element_type.bits < 8 else data


def _best(keys: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Positions along the last axis of the best ``count`` elements, the best first."""
    length = keys.shape[-1]
    if count > 0 and length > _FEW and 4 * count <= length:
        kth = length - count if largest else count - 1
        threshold = np.partition(keys, kth, -1)[..., kth : kth + 1]
        wanted = count * (keys.size // length)
        chosen = keys >= threshold if largest else keys <= threshold
        if np.count_nonzero(chosen) != wanted:
            chosen = _first_of_equals(keys, threshold, count, largest)
        # Neither number is right where a threshold is NaN; then everything is sorted.
        if np.count_nonzero(chosen) == wanted:
            places = np.nonzero(chosen)[-1].reshape((*keys.shape[:-1], count))
            order = _sorted_places(np.take_along_axis(keys, places, -1), largest)
            return np.take_along_axis(places, order, -1)
    return _sorted_places(keys, largest)[..., :count]


def _first_of_equals(keys: np.ndarray, threshold: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """All that are better than the threshold, and of those equal to it the first, so that ``count`` are chosen of each row."""
    better = keys > threshold if largest else keys < threshold
    equal = keys == threshold
    missing = count - better.sum(-1, keepdims=True, dtype=np.int64)
    return better | (equal & (equal.cumsum(-1) <= missing))


def _sorted_places(keys: np.ndarray, largest: bool) -> np.ndarray:
    if not largest:
        forwards: np.ndarray = keys.argsort(-1, kind="stable")
        return forwards
    backwards = keys[..., ::-1].argsort(-1, kind="stable")[..., ::-1]
    found: np.ndarray = keys.shape[-1] - 1 - backwards
    return found


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
_INDEX_TYPE = Attribute("index_element_type", "type", ElementType.I32, tuple(INDEX_TYPES))

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="TopK",
        version=1,
        opsets=(1, 2),
        page="sort/top-k-1",
        kernel=top_k,
        infer=_infer_top_k,
        inputs=(2, 2),
        outputs=2,
        types=(NUMERIC, INTEGERS),
        attributes=(_AXIS, _MODE, _SORT, _INDEX_TYPE),
    ),
    Operation(
        name="TopK",
        version=3,
        opsets=(3, 10),
        page="sort/top-k-3",
        kernel=top_k,
        infer=_infer_top_k,
        inputs=(2, 2),
        outputs=2,
        types=(NUMERIC, INTEGERS),
        attributes=(_AXIS, _MODE, _SORT, _INDEX_TYPE),
    ),
    Operation(
        name="TopK",
        version=11,
        opsets=(11, 16),
        page="sort/top-k-11",
        kernel=top_k,
        infer=_infer_top_k,
        inputs=(2, 2),
        outputs=2,
        types=(NUMERIC, INTEGERS),
        attributes=(_AXIS, _MODE, _SORT, Attribute("stable", "bool", False), _INDEX_TYPE),
    ),
)
