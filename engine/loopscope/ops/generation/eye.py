"""Shifted and batched identity matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape
from loopscope.ops.bounds import check_elements
from loopscope.ops.casting import cast
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import spelled, spelled_length


def eye(
    rows: Array,
    columns: Array,
    diagonal: Array,
    batch: Array | None = None,
    /,
    *,
    output_type: ElementType,
) -> Array:
    """Return zeros with ones on one diagonal, shape (*batch, rows, columns). Page generation/eye-9.

    ``rows``, ``columns`` and ``diagonal`` are scalars or have one element; a positive diagonal lies
    above the main one.
    """
    shape = (
        *([] if batch is None else batch.reshape(-1).tolist()),
        _single_number(rows, "num_rows"),
        _single_number(columns, "num_columns"),
    )
    if min(shape) < 0:
        raise ValueError(f"shape {shape} has a negative length")
    check_elements(math.prod(shape), f"the matrix of shape {shape}")
    offset = min(max(_single_number(diagonal, "diagonal_index"), -shape[-2]), shape[-1])
    matrix = cast(np.eye(shape[-2], shape[-1], offset, np.uint8), output_type)
    return np.broadcast_to(matrix, shape).copy() if len(shape) > 2 else matrix


def _single_number(value: Array, name: str) -> int:
    if value.size != 1:
        raise ValueError(f"{name} has shape {value.shape}, expected one element")
    return int(value.item())


def _rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    matrix = (spelled_length(inputs[0]), spelled_length(inputs[1]))
    return (
        Known(
            attributes["output_type"], _with_batch(inputs[3] if len(inputs) > 3 else None, matrix)
        ),
    )


def _with_batch(batch: Known | None, matrix: tuple[Dimension, Dimension]) -> PartialShape:
    if batch is None:
        return PartialShape(matrix)
    batches = spelled(batch).dimensions
    return DYNAMIC if batches is None else PartialShape((*batches, *matrix))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="Eye",
        version=9,
        opsets=(9, 16),
        page="generation/eye-9",
        kernel=eye,
        infer=_rule,
        inputs=(3, 4),
        attributes=(
            Attribute(
                "output_type",
                "type",
                allowed=tuple(kind for kind in ElementType if kind in NUMERIC),
            ),
        ),
        types=(INDEX_TYPES,),
    ),
)
