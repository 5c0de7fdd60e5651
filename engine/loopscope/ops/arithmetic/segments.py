"""Arithmetic over segments of rows: the largest element of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.index import positions, whole_number
from loopscope.ops.precision import accumulator


def segment_max(
    data: Array, segment_ids: Array, num_segments: Array | None = None, /, *, fill_mode: str
) -> Array:
    """Return the largest element of each segment of rows of ``data``.

    ``segment_ids`` [rows] ascends. Empty segments are zero, or the lowest value.
    """
    ids = np.asarray(positions(segment_ids))
    if (
        ids.ndim != 1
        or ids.shape != data.shape[:1]
        or (ids.size and (ids.min() < 0 or np.diff(ids).min(initial=0) < 0))
    ):
        raise ValueError(
            f"segment ids of shape {list(ids.shape)} are not ascending numbers, one "
            f"for each row of {list(data.shape)}"
        )
    count = (
        whole_number(num_segments)
        if num_segments is not None
        else int(ids[-1]) + 1
        if ids.size
        else 0
    )
    check_elements(count * max(math.prod(data.shape[1:]), 1), "the segments")
    wide = accumulator(data.dtype)
    inside = ids < count
    sizes = np.bincount(ids[inside], minlength=count)
    result = np.full(
        (count, *data.shape[1:]), 0 if fill_mode == "zero" else _lowest(data.dtype), wide
    )
    filled = np.flatnonzero(sizes)
    if filled.size:
        starts = np.cumsum(sizes) - sizes
        result[filled] = np.maximum.reduceat(data[inside].astype(wide), starts[filled], axis=0)
    return result.astype(data.dtype)


def _lowest(dtype: np.dtype) -> Any:
    element_type = ElementType.of_dtype(dtype)
    if element_type is ElementType.BOOLEAN:
        return False
    if element_type.is_float:
        return ml_dtypes.finfo(dtype).min
    return -(2 ** (element_type.bits - 1)) if element_type.is_signed else 0


def _infer_segment_max(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, ids = inputs[:2]
    rows = UNKNOWN
    if len(inputs) > 2:
        rows = UNKNOWN if inputs[2].value is None else static(whole_number(inputs[2].value))
    elif ids.value is not None:
        rows = static(int(ids.value.reshape(-1)[-1]) + 1 if ids.value.size else 0)
    dimensions = data.shape.dimensions
    return (
        Known(
            data.element_type,
            DYNAMIC if dimensions is None else PartialShape((rows, *dimensions[1:])),
        ),
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="SegmentMax",
        version=16,
        opsets=(16, 16),
        page="arithmetic/segment-max-16",
        kernel=segment_max,
        infer=_infer_segment_max,
        inputs=(2, 3),
        types=(NUMERIC, INDEX_TYPES),
        attributes=(Attribute("fill_mode", "str", allowed=("zero", "lowest")),),
    ),
)
