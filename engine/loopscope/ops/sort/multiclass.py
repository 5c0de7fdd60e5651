"""Suppression over all classes of an image at once: Matrix NMS, which lowers scores, and
multi-class NMS, which drops boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_CHOICES, INDEX_TYPES, REAL_FLOATS, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_checks import positions
from loopscope.ops.sort.overlapping_boxes import best_first, overlap, survivors

Chosen = tuple[np.ndarray, np.ndarray]
"""Positions of boxes, best first, and their scores."""


_BY_CLASS = ("classid", "class")
"""The spelling in files, and that in the specification."""


@dataclass(slots=True)
class _Image:
    """Selection of one image's classes: class, box index, score and corners, row by row."""

    classes: list[np.ndarray] = field(default_factory=list[np.ndarray])
    boxes: list[np.ndarray] = field(default_factory=list[np.ndarray])
    scores: list[np.ndarray] = field(default_factory=list[np.ndarray])
    corners: list[np.ndarray] = field(default_factory=list[np.ndarray])

    def add(self, number: int, corners: np.ndarray, chosen: Chosen) -> None:
        boxes, scores = chosen
        self.classes.append(np.full(len(boxes), number, np.int64))
        self.boxes.append(boxes)
        self.scores.append(scores)
        self.corners.append(corners[boxes])


@dataclass(frozen=True, slots=True)
class _Rows:
    """Selected boxes of all images, one row each; ``index`` is the box's position in the flattened
    input.
    """

    image: np.ndarray
    label: np.ndarray
    box: np.ndarray
    index: np.ndarray
    score: np.ndarray
    corner: np.ndarray

    def picked(self, order: np.ndarray) -> _Rows:
        return _Rows(
            self.image[order],
            self.label[order],
            self.box[order],
            self.index[order],
            self.score[order],
            self.corner[order],
        )


def _rows(image: _Image, number: int, index: Any, keep_top_k: int) -> _Rows:
    """Return an image's rows by score, then class, then box; at most ``keep_top_k`` rows (-1:
    all).
    """
    label = np.concatenate([np.empty(0, np.int64), *image.classes])
    box = np.concatenate([np.empty(0, np.int64), *image.boxes])
    score = np.concatenate([np.empty(0, np.float32), *image.scores])
    corner = np.concatenate([np.empty((0, 4), np.float32), *image.corners])
    rows = _Rows(np.full(len(box), number, np.int64), label, box, index(label, box), score, corner)
    order = np.lexsort((box, label, -score))
    return rows.picked(order if keep_top_k < 0 else order[:keep_top_k])


def _outputs(
    images: list[_Rows], sort: str, across: bool, dtype: np.dtype, output_type: ElementType
) -> tuple[Array, Array, Array]:
    counts = np.array([len(rows.box) for rows in images], output_type.dtype)
    if sort in _BY_CLASS and not across:
        images = [rows.picked(np.lexsort((rows.box, -rows.score, rows.label))) for rows in images]
    rows = _joined(images)
    if across and sort == "score":
        rows = rows.picked(np.lexsort((rows.box, rows.label, rows.image, -rows.score)))
    elif across and sort in _BY_CLASS:
        rows = rows.picked(np.lexsort((rows.box, -rows.score, rows.image, rows.label)))
    selected = np.column_stack([rows.label, rows.score, rows.corner]).astype(dtype)
    return selected, rows.index.astype(output_type.dtype)[:, None], counts


def _joined(images: list[_Rows]) -> _Rows:
    empty = _rows(_Image(), 0, lambda label, box: box, -1)
    every = [empty, *images]
    names = ("image", "label", "box", "index", "score", "corner")
    return _Rows(*(np.concatenate([getattr(rows, name) for rows in every]) for name in names))


def matrix_nms(
    boxes: Array,
    scores: Array,
    /,
    *,
    sort_result_type: str = "none",
    sort_result_across_batch: bool = False,
    output_type: ElementType = ElementType.I64,
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    background_class: int = -1,
    normalized: bool = True,
    decay_function: str = "linear",
    gaussian_sigma: float = 2.0,
    post_threshold: float = 0.0,
) -> tuple[Array, Array, Array]:
    """Select boxes [batch, n, 4] by scores [batch, classes, n]; each score is lowered by the
    overlaps with better boxes of its class.

    Return rows of class, score and corners; the index of each box among all boxes; the number of
    rows of each batch element.
    """
    _check_shared(boxes, scores)
    corner, score = np.asarray(boxes).astype(np.float32), np.asarray(scores).astype(np.float32)
    images = []
    for number in range(len(score)):
        image = _Image()
        for label in _foreground(score.shape[1], background_class):
            order = best_first(
                score[number, label], score_threshold, None if nms_top_k < 0 else nms_top_k
            )
            lowered = score[number, label, order] * _decay(
                corner[number, order], normalized, decay_function, gaussian_sigma
            )
            passing = lowered > np.float32(post_threshold)
            image.add(label, corner[number], (order[passing], lowered[passing]))
        images.append(
            _rows(
                image,
                number,
                lambda label, box, offset=number * corner.shape[1]: box + offset,
                keep_top_k,
            )
        )
    return _outputs(images, sort_result_type, sort_result_across_batch, boxes.dtype, output_type)


def _decay(corner: np.ndarray, normalized: bool, decay_function: str, sigma: float) -> np.ndarray:
    """Return the factor that lowers each box's score: the smallest decay that a better box
    causes.
    """
    shared = np.triu(overlap(corner, corner) if normalized else _pixel_overlap(corner), 1)
    worst = shared.max(0, initial=0)[:, None]
    if decay_function == "gaussian":
        decay = np.exp((worst * worst - shared * shared) * np.float32(sigma))
    else:
        decay = (1 - shared) / (1 - worst + np.float32(1e-10))
    earlier = np.triu(np.ones_like(shared, np.bool_), 1)
    factors: np.ndarray = (
        np.where(earlier, decay, np.float32(1)).min(0, initial=1).astype(np.float32)
    )
    return factors


def _pixel_overlap(corner: np.ndarray) -> np.ndarray:
    """Return the overlap of boxes of whole pixels, which include their last row and column.
    Separate boxes share no pixel, even at a distance below 1.
    """
    apart = (corner[:, None, :2] > corner[None, :, 2:]).any(-1)
    return np.where(apart | apart.T, np.float32(0), overlap(corner, corner, 1.0))


def multiclass_nms(
    boxes: Array,
    scores: Array,
    roisnum: Array | None = None,
    /,
    *,
    sort_result_type: str = "none",
    sort_result_across_batch: bool = False,
    output_type: ElementType = ElementType.I64,
    iou_threshold: float = 0.0,
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    background_class: int = -1,
    normalized: bool = True,
    nms_eta: float = 1.0,
) -> tuple[Array, Array, Array]:
    """Select boxes greedily within each class. The threshold is multiplied by ``nms_eta`` with each
    selected box while it is above 0.5.

    Either boxes [batch, n, 4] are shared by the classes, with scores [batch, classes, n]; or boxes
    are [classes, n, 4] and scores [classes, n], and ``roisnum`` [batch] holds the number of boxes
    of each image. Outputs as ``matrix_nms``.
    """
    corner, score = np.asarray(boxes).astype(np.float32), np.asarray(scores).astype(np.float32)
    images = []
    for number, (mine, values, index) in enumerate(_images(corner, score, roisnum)):
        image = _Image()
        for label in _foreground(len(values), background_class):
            order = best_first(
                values[label], score_threshold, None if nms_top_k < 0 else nms_top_k, inclusive=True
            )
            own = mine if mine.ndim == 2 else mine[label]
            selected = order[
                _greedy(own[order], iou_threshold, nms_eta, 0.0 if normalized else 1.0)
            ]
            image.add(label, own, (selected, values[label, selected]))
        images.append(_rows(image, number, index, keep_top_k))
    return _outputs(images, sort_result_type, sort_result_across_batch, boxes.dtype, output_type)


def _images(
    corner: np.ndarray, score: np.ndarray, roisnum: Array | None
) -> list[tuple[np.ndarray, np.ndarray, Any]]:
    """Return for each image its boxes, its scores [classes, n], and a function that makes a flat
    index of class and box.
    """
    if roisnum is None:
        _check_shared(corner, score)
        count = corner.shape[1]
        return [
            (corner[number], score[number], lambda label, box, offset=number * count: box + offset)
            for number in range(len(score))
        ]
    if corner.ndim != 3 or corner.shape[:2] != score.shape or corner.shape[2] != 4:
        raise ValueError(
            f"boxes of shape {list(corner.shape)} and scores of shape {list(score.shape)}: "
            "expected [c, m, 4], [c, m]"
        )
    counts = np.maximum(positions(roisnum).reshape(-1), 0)
    if counts.sum() > corner.shape[1]:
        raise ValueError(
            f"the images have {counts.sum()} boxes together, there are {corner.shape[1]}"
        )
    ends = np.cumsum(counts).tolist()
    classes = len(score)
    return [
        (
            corner[:, end - count : end],
            score[:, end - count : end],
            lambda label, box, offset=end - count: (offset + box) * classes + label,
        )
        for count, end in zip(counts.tolist(), ends, strict=True)
    ]


def _check_shared(boxes: Array, scores: Array) -> None:
    if (
        boxes.ndim != 3
        or scores.ndim != 3
        or boxes.shape[0] != scores.shape[0]
        or boxes.shape[1:] != (scores.shape[2], 4)
    ):
        raise ValueError(
            f"boxes of shape {list(boxes.shape)} and scores of shape {list(scores.shape)}: "
            "expected [n, m, 4], [n, c, m]"
        )


def _foreground(classes: int, background: int) -> list[int]:
    return [label for label in range(classes) if label != background]


def _greedy(corner: np.ndarray, threshold: float, eta: float, margin: float) -> list[int]:
    if not (eta < 1 and threshold > 0.5):
        return survivors(
            corner, threshold, len(corner), lambda ones, others: overlap(ones, others, margin)
        )
    selected: list[int] = []
    worst = np.zeros(len(corner), np.float32)
    for position in range(len(corner)):
        if worst[position] > np.float32(threshold):
            continue
        selected.append(position)
        np.maximum(worst, overlap(corner[position : position + 1], corner, margin)[0], out=worst)
        threshold *= eta if threshold > 0.5 else 1.0
    return selected


def _infer_shared(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    boxes, scores = inputs[:2]
    batch, classes, each = (
        scores.shape.at(axis) if scores.shape.rank == 3 else UNKNOWN for axis in range(3)
    )
    return _infer_rows(
        common_type([boxes, scores]), batch, (batch * classes * each).most, attributes
    )


def _infer_multiclass(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    if len(inputs) < 3:
        return _infer_shared(inputs, attributes)
    boxes, scores, counts = inputs
    batch = counts.shape.at(0) if counts.shape.rank == 1 else UNKNOWN
    limit = (scores.shape.at(0) * scores.shape.at(1)).most if scores.shape.rank == 2 else None
    return _infer_rows(common_type([boxes, scores]), batch, limit, attributes)


def _infer_rows(
    element_type: ElementType | None,
    batch: Dimension,
    limit: int | None,
    attributes: Mapping[str, Any],
) -> tuple[Known, ...]:
    rows, index_type = Dimension(0, limit), attributes["output_type"]
    return (
        Known(element_type, PartialShape((rows, static(6)))),
        Known(index_type, PartialShape((rows, static(1)))),
        Known(index_type, PartialShape((batch,))),
    )


_SHARED = (
    Attribute("sort_result_type", "str", "none", ("classid", "class", "score", "none")),
    Attribute("sort_result_across_batch", "bool", False),
    Attribute("output_type", "type", ElementType.I64, INDEX_CHOICES),
    Attribute("score_threshold", "float", 0.0),
    Attribute("nms_top_k", "int", -1, least=-1),
    Attribute("keep_top_k", "int", -1, least=-1),
    Attribute("background_class", "int", -1),
    Attribute("normalized", "bool", True),
)
_MULTICLASS = (
    *_SHARED,
    Attribute("iou_threshold", "float", 0.0),
    Attribute("nms_eta", "float", 1.0),
)

row = family("sort")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "MatrixNms",
        matrix_nms,
        version=8,
        page="sort/matrix-non-max-suppression-8",
        infer=_infer_shared,
        inputs=(2, 2),
        outputs=3,
        types=(REAL_FLOATS,),
        attributes=(
            *_SHARED,
            Attribute("decay_function", "str", "linear", ("gaussian", "linear")),
            Attribute("gaussian_sigma", "float", 2.0),
            Attribute("post_threshold", "float", 0.0),
        ),
    ),
    row(
        "MulticlassNms",
        multiclass_nms,
        version=8,
        opsets=(8, 8),
        page="sort/multiclass-non-max-suppression-8",
        infer=_infer_multiclass,
        inputs=(2, 2),
        outputs=3,
        types=(REAL_FLOATS,),
        attributes=_MULTICLASS,
    ),
    row(
        "MulticlassNms",
        multiclass_nms,
        version=9,
        page="sort/multiclass-non-max-suppression-9",
        infer=_infer_multiclass,
        inputs=(2, 3),
        outputs=3,
        types=(REAL_FLOATS, REAL_FLOATS, INDEX_TYPES),
        attributes=_MULTICLASS,
    ),
)
