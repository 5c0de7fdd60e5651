"""Distinct elements, or slices, of a tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INDEX_CHOICES, INDEX_TYPES, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_checks import axis_within, whole_number


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


OPERATIONS: tuple[Operation, ...] = (
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
