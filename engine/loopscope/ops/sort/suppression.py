"""Non-maximum suppression, class by class: the best box, then the best box that does not overlap
it, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_CHOICES, INTEGERS, REAL_FLOATS, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.kernel_checks import whole_number
from loopscope.ops.sort.overlapping_boxes import (
    Overlap,
    best_first,
    corners,
    overlap,
    rotated_overlap,
    rotated_quads,
    soft_survivors,
    survivors,
)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Scalar inputs of a suppression."""

    count: int
    threshold: float
    min_score: float
    sigma: float = 0.0


@dataclass(slots=True)
class _Selection:
    """Selection of all classes up to now: rows of batch, class, box, and their scores."""

    rows: list[np.ndarray] = field(default_factory=list[np.ndarray])
    scores: list[np.ndarray] = field(default_factory=list[np.ndarray])

    def add(self, batch: int, number: int, boxes: np.ndarray, scores: np.ndarray) -> None:
        self.rows.append(
            np.stack([np.full_like(boxes, batch), np.full_like(boxes, number), boxes], -1)
        )
        self.scores.append(scores)

    def joined(self, by_score: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return rows [n, 3] and scores [n]; with ``by_score`` sorted by score, then batch, class
        and box.
        """
        rows = np.concatenate([np.empty((0, 3), np.int64), *self.rows])
        scores = np.concatenate([np.empty(0, np.float32), *self.scores])
        if by_score:
            order = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0], -scores))
            rows, scores = rows[order], scores[order]
        return rows, scores


def _scalar(array: Array | None, default: float = 0.0) -> float:
    if array is not None and array.size != 1:
        raise ValueError(f"expected one number, the tensor has shape {list(array.shape)}")
    return default if array is None else float(array.reshape(()))


def suppress(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    soft_nms_sigma: Array | None = None,
    /,
    *,
    box_encoding: str = "corner",
    sort_result_descending: bool = True,
    output_type: ElementType = ElementType.I64,
) -> tuple[Array, Array, Array]:
    """Select boxes [batch, n, 4] by scores [batch, classes, n]. Return rows of batch, class and
    box; rows of batch, class and score; and their number.

    A box is a candidate if its score is greater than the threshold, as in the runtimes (the page
    says: or equal).
    """
    limit = 0 if max_output_boxes_per_class is None else whole_number(max_output_boxes_per_class)
    limits = _Limits(
        limit, _scalar(iou_threshold), _scalar(score_threshold), _scalar(soft_nms_sigma)
    )
    prepared = partial(corners, encoding=box_encoding)
    rows, values = _select_all(boxes, scores, limits, prepared, overlap, 4).joined(
        sort_result_descending
    )
    return _outputs(rows, values, output_type, ElementType.F32.dtype)


def suppress_indices(*inputs: Array, **attributes: Any) -> Array:
    """Return only the rows of batch, class and box of NonMaxSuppression-9 without soft scores."""
    return suppress(*inputs, **attributes)[0]


def suppress_rotated(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array,
    iou_threshold: Array,
    score_threshold: Array,
    /,
    *,
    sort_result_descending: bool = True,
    output_type: ElementType = ElementType.I64,
    clockwise: bool = True,
) -> tuple[Array, Array, Array]:
    """Select as NonMaxSuppression-9, for boxes [batch, n, 5] of center x and y, width, height, and
    an angle in radians.
    """
    limits = _Limits(
        whole_number(max_output_boxes_per_class), _scalar(iou_threshold), _scalar(score_threshold)
    )
    prepared = partial(rotated_quads, clockwise=clockwise)
    rows, values = _select_all(boxes, scores, limits, prepared, rotated_overlap, 5).joined(
        sort_result_descending
    )
    return _outputs(rows, values, output_type, ElementType.F32.dtype)


def _select_all(
    boxes: Array, scores: Array, limits: _Limits, prepared: Any, overlaps: Overlap, size: int
) -> _Selection:
    if (
        boxes.ndim != 3
        or scores.ndim != 3
        or boxes.shape[0] != scores.shape[0]
        or boxes.shape[1:] != (scores.shape[2], size)
    ):
        raise ValueError(
            f"boxes of shape {list(boxes.shape)} and scores of shape {list(scores.shape)}: "
            f"expected [n, m, {size}], [n, c, m]"
        )
    selection = _Selection()
    if limits.count <= 0:
        return selection
    boxes, scores = np.asarray(boxes).astype(np.float32), np.asarray(scores).astype(np.float32)
    for batch in range(len(scores)):
        ready = prepared(boxes[batch])
        for number in range(scores.shape[1]):
            chosen, values = _select(ready, scores[batch, number], limits, overlaps)
            selection.add(batch, number, chosen, values)
    return selection


def _select(
    boxes: np.ndarray, scores: np.ndarray, limits: _Limits, overlaps: Overlap
) -> tuple[np.ndarray, np.ndarray]:
    order = best_first(scores, limits.min_score)
    if limits.sigma > 0:
        order = np.sort(order)
        selected, lowered = soft_survivors(
            boxes[order], scores[order], limits.min_score, limits.sigma, limits.count, overlaps
        )
        return order[selected], np.array(lowered, np.float32)
    chosen = order[survivors(boxes[order], limits.threshold, limits.count, overlaps)]
    return chosen, scores[chosen]


def _outputs(
    rows: np.ndarray, scores: np.ndarray, output_type: ElementType, score_type: np.dtype
) -> tuple[Array, Array, Array]:
    values = np.column_stack([rows[:, 0], rows[:, 1], scores]).astype(score_type)
    return rows.astype(output_type.dtype), values, np.array([len(rows)], output_type.dtype)


def _selected_shape(inputs: Sequence[Known]) -> PartialShape:
    boxes, scores = inputs[:2]
    limit = inputs[2].value if len(inputs) > 2 else np.zeros((), np.int64)
    each = boxes.shape.at(1) if boxes.shape.rank == 3 else UNKNOWN
    count = each.most
    if limit is not None:
        count = (
            max(whole_number(limit), 0)
            if count is None
            else max(min(count, whole_number(limit)), 0)
        )
    per_class = Dimension(0, count)
    if scores.shape.rank == 3:
        return PartialShape(
            (Dimension(0, (scores.shape.at(0) * scores.shape.at(1) * per_class).most), static(3))
        )
    return PartialShape((Dimension(0, 0) if count == 0 else UNKNOWN, static(3)))


def _infer_suppress(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    shape, element_type = _selected_shape(inputs), attributes["output_type"]
    return (
        Known(element_type, shape),
        Known(ElementType.F32, shape),
        Known(element_type, PartialShape.of([1])),
    )


def _infer_indices(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    return (Known(attributes.get("output_type", ElementType.I64), _selected_shape(inputs)),)


_ENCODING = Attribute("box_encoding", "str", "corner", ("corner", "center"))
_DESCENDING = Attribute("sort_result_descending", "bool", True)
_OUTPUT_TYPE = Attribute("output_type", "type", ElementType.I64, INDEX_CHOICES)
_TYPES = (REAL_FLOATS, REAL_FLOATS, INTEGERS, REAL_FLOATS)

_ATTRIBUTES = (_ENCODING, _DESCENDING, _OUTPUT_TYPE)
row = family(
    "sort", infer=_infer_suppress, inputs=(2, 6), outputs=3, attributes=_ATTRIBUTES, types=_TYPES
)
indices = family("sort", infer=_infer_indices, inputs=(2, 5), attributes=_ATTRIBUTES, types=_TYPES)
_OF_ROTATED = (_DESCENDING, _OUTPUT_TYPE, Attribute("clockwise", "bool", True))

OPERATIONS: tuple[Operation, ...] = (
    row("NMSRotated", suppress_rotated, version=13, inputs=(5, 5), attributes=_OF_ROTATED),
    indices(
        "NonMaxSuppression", suppress_indices, opsets=(1, 2), attributes=(_ENCODING, _DESCENDING)
    ),
    indices("NonMaxSuppression", suppress_indices, version=3, opsets=(3, 3)),
    indices("NonMaxSuppression", suppress_indices, version=4, opsets=(4, 4)),
    row("NonMaxSuppression", suppress, version=5, opsets=(5, 8), page="sort/no-max-suppression-5"),
    row("NonMaxSuppression", suppress, version=9),
)
