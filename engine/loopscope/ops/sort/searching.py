"""Insertion positions in sorted sequences, and the regions with the greatest probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_CHOICES, NUMERIC, REAL_FLOATS, ElementType
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.sort.largest import comparable


def search_sorted(
    sorted_sequence: Array,
    values: Array,
    /,
    *,
    right_mode: bool = False,
    output_type: ElementType = ElementType.I64,
) -> Array:
    """Return the position at which each of ``values`` [..., m] would be inserted in its row of
    ``sorted_sequence`` ([..., n], or [n] for all rows).
    """
    rows, keys = comparable(sorted_sequence), comparable(values)
    if rows.ndim == 0:
        raise ValueError("a scalar is not a sorted sequence")
    if rows.ndim == 1:
        return np.searchsorted(rows, keys, "right" if right_mode else "left").astype(
            output_type.dtype
        )
    if rows.ndim != keys.ndim or rows.shape[:-1] != keys.shape[:-1]:
        raise ValueError(
            f"values of shape {list(values.shape)} have no rows in a sequence "
            f"of shape {list(sorted_sequence.shape)}"
        )
    lower, upper = np.zeros(keys.shape, np.int64), np.full(keys.shape, rows.shape[-1], np.int64)
    for _ in range(rows.shape[-1].bit_length()):
        middle = (lower + upper) // 2
        met = np.take_along_axis(rows, np.minimum(middle, rows.shape[-1] - 1), -1)
        after = (met <= keys if right_mode else met < keys) & (lower < upper)
        lower, upper = np.where(after, middle + 1, lower), np.where(after, upper, middle)
    return lower.astype(output_type.dtype)


def _infer_search_sorted(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    common_type(inputs)
    return (Known(attributes["output_type"], inputs[1].shape),)


def top_k_regions(regions: Array, probabilities: Array, /, *, max_rois: int = 0) -> Array:
    """Return the ``max_rois`` rows of ``regions`` [n, 4] with the greatest ``probabilities`` [n],
    best first, filled up with zeros.
    """
    if regions.ndim != 2 or regions.shape[1] != 4 or probabilities.shape != regions.shape[:1]:
        raise ValueError(
            f"regions of shape {list(regions.shape)}, "
            f"probabilities of shape {list(probabilities.shape)}"
        )
    check_elements(max_rois * regions.shape[1], "the regions")
    order = np.argsort(-comparable(probabilities), kind="stable")[:max_rois]
    result = np.zeros((max_rois, regions.shape[1]), regions.dtype)
    result[: len(order)] = regions[order]
    return result


def _infer_top_k_regions(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    return (Known(common_type(inputs), PartialShape((static(attributes["max_rois"]), static(4)))),)


row = family("sort")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "ExperimentalDetectronTopKROIs",
        top_k_regions,
        version=6,
        page="sort/experimental-detectron-top-krois-6",
        infer=_infer_top_k_regions,
        inputs=(2, 2),
        types=(REAL_FLOATS,),
        attributes=(Attribute("max_rois", "int", 0, least=0),),
    ),
    row(
        "SearchSorted",
        search_sorted,
        version=15,
        infer=_infer_search_sorted,
        inputs=(2, 2),
        types=(NUMERIC,),
        attributes=(
            Attribute("right_mode", "bool", False),
            Attribute("output_type", "type", ElementType.I64, INDEX_CHOICES),
        ),
    ),
)
