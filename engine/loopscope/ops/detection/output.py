"""Selection of detections from box offsets and class scores: DetectionOutput and the Detectron
variant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.kernel_arithmetic import to_element_type, widened
from loopscope.ops.kernel_checks import check_elements, check_rank, shape_of_rank
from loopscope.ops.sort.overlapping_boxes import best_first, select_boxes

_F32 = np.float32
_CORNER, _CENTER = "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"


@dataclass(frozen=True, slots=True)
class _Detections:
    """Labels, priors and scores of the detections of one image, in the order of the output."""

    labels: np.ndarray
    priors: np.ndarray
    scores: np.ndarray

    def ordered(self, order: np.ndarray) -> _Detections:
        return _Detections(self.labels[order], self.priors[order], self.scores[order])

    def best(self, limit: int) -> _Detections:
        """Return the detections with the highest scores; equal scores are ordered by prior."""
        return self.ordered(np.lexsort((self.priors, -self.scores))[:limit])


def detection_output(
    offsets: Array,
    confidences: Array,
    priors: Array,
    objectness: Array | None = None,
    first_offsets: Array | None = None,
    /,
    *,
    keep_top_k: tuple[int, ...],
    nms_threshold: float,
    num_classes: int = 0,
    background_label_id: int = 0,
    top_k: int = -1,
    variance_encoded_in_target: bool = False,
    code_type: str = _CORNER,
    share_location: bool = True,
    confidence_threshold: float = 0.0,
    clip_after_nms: bool = False,
    clip_before_nms: bool = False,
    decrease_label_id: bool = False,
    normalized: bool = False,
    input_height: int = 1,
    input_width: int = 1,
    objectness_score: float = 0.0,
) -> Array:
    """Return rows [1, 1, n, 7] of image, class, score and corners of the detections.

    A row that begins with -1 follows the last detection. Boxes are offsets [N, priors * classes *
    4] from priors [1 or N, 1 or 2, priors * 4 or 5]. With five inputs they are offset twice, and
    priors with low ``objectness`` count as background.
    """
    images, size, keep = len(offsets), 4 if normalized else 5, keep_top_k[0] if keep_top_k else -1
    count, classes, box_sets = _counts(
        offsets, confidences, priors, size, num_classes, share_location
    )
    length = _rows(images, count, classes, keep, top_k)
    check_elements(length * 7, "the detections")
    scores = _wide(confidences).reshape(images, count, classes)
    boxes, variances = _prior_boxes(
        _wide(priors), count, size, (input_width, input_height), variance_encoded_in_target
    )
    decode = partial(_decode, variances=variances, code=code_type, clip=clip_before_nms)
    if objectness is not None and first_offsets is not None:
        scores = _with_objectness(
            scores,
            _wide(objectness).reshape(images, count, 2),
            objectness_score,
            background_label_id,
        )
        # Decoded boxes are divided by the image size again, as in OpenVINO, which treats them as
        # pixels.
        pixels = np.array(
            [1 if normalized else side for side in (input_width, input_height)] * 2, _F32
        )
        boxes = decode(boxes, _wide(first_offsets).reshape(images, count, box_sets, 4)) / pixels
    decoded = decode(boxes, _wide(offsets).reshape(images, count, box_sets, 4))
    pick = partial(
        _by_best_class if decrease_label_id else _by_class,
        background=background_label_id,
        min_score=confidence_threshold,
        top=top_k,
        threshold=nms_threshold,
    )
    first_label, rows = int(decrease_label_id), []
    for image, image_boxes in enumerate(decoded):
        detections = _limit(pick(image_boxes, scores[image]), keep)
        rows.append(_rows_of(image, detections, image_boxes, first_label, clip_after_nms))
    return to_element_type(_with_end_row(rows, length).reshape(1, 1, length, 7), offsets.dtype)


def _counts(
    offsets: Array, scores: Array, priors: Array, size: int, num_classes: int, shared: bool
) -> tuple[int, int, int]:
    """Return the number of priors, of classes, and of classes for which a prior has separate
    offsets.
    """
    for array, rank, what in (
        (offsets, 2, "the table of offsets"),
        (scores, 2, "the table of scores"),
        (priors, 3, "the priors"),
    ):
        check_rank(array, rank, what)
    images, count = len(offsets), priors.shape[2] // size
    classes = num_classes or (scores.shape[1] // count if count else 0)
    box_sets = 1 if shared else classes
    if (
        not count
        or offsets.size != images * count * box_sets * 4
        or scores.size != images * count * classes
    ):
        raise ValueError(
            f"offsets {offsets.shape}, scores {scores.shape} and priors "
            f"{priors.shape} do not fit together"
        )
    return count, classes, box_sets


def _rows_of(
    image: int, detections: _Detections, boxes: np.ndarray, first_label: int, clip: bool
) -> np.ndarray:
    """Return the output rows of the detections of an image, with corners from its boxes [priors,
    box sets, 4].
    """
    corners = boxes[detections.priors, detections.labels if boxes.shape[1] > 1 else 0]
    corners = np.clip(corners, 0, 1) if clip else corners
    return np.column_stack(
        [np.full(len(corners), image), detections.labels - first_label, detections.scores, corners]
    )


def _with_end_row(rows: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Return a table of ``length`` rows; a row that begins with -1 follows the last detection."""
    table = np.zeros((length, 7), _F32)
    detections = np.concatenate([np.zeros((0, 7), _F32), *rows])[:length]
    table[: len(detections)] = detections
    table[len(detections) : len(detections) + 1, 0] = -1
    return table


def _wide(array: Array) -> np.ndarray:
    return np.asarray(widened(np.asarray(array))).astype(_F32)


def _rows(images: int, priors: int, classes: int, keep: int, top: int) -> int:
    if keep > 0:
        return images * keep
    return images * (top if top > 0 else priors) * classes


def _prior_boxes(
    priors: np.ndarray, count: int, size: int, image: tuple[int, int], encoded: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return corners [1 or N, priors, 1, 4] as fractions of the image, and variances of the same
    shape.
    """
    if priors.shape[1] < (1 if encoded else 2):
        raise ValueError(f"priors of shape {list(priors.shape)} have no variances")
    boxes = priors[:, 0, : count * size].reshape(-1, count, 1, size)[..., size - 4 :]
    if size == 5:
        boxes = boxes / np.array(image * 2, _F32)
    return boxes, None if encoded else priors[:, 1, : count * 4].reshape(-1, count, 1, 4)


def _decode(
    boxes: np.ndarray, offsets: np.ndarray, *, variances: np.ndarray | None, code: str, clip: bool
) -> np.ndarray:
    """Return corners [N, priors, box sets, 4]."""
    moves = offsets if variances is None else offsets * variances
    if code == _CORNER:
        corners = boxes + moves
    else:
        size = boxes[..., 2:] - boxes[..., :2]
        centre = moves[..., :2] * size + (boxes[..., :2] + boxes[..., 2:]) / 2
        half = np.exp(moves[..., 2:]) * size / 2
        corners = np.concatenate([centre - half, centre + half], -1)
    return np.clip(corners, 0, 1) if clip else corners


def _with_objectness(
    scores: np.ndarray, objectness: np.ndarray, threshold: float, background: int
) -> np.ndarray:
    empty = np.zeros(scores.shape[2], _F32)
    if 0 <= background < len(empty):
        empty[background] = 1
    return np.where(objectness[..., 1:] < _F32(threshold), empty, scores)


def _by_class(
    boxes: np.ndarray,
    scores: np.ndarray,
    background: int,
    min_score: float,
    top: int,
    threshold: float,
) -> _Detections:
    """Suppress overlapping boxes within each class, as in Caffe."""
    parts = []
    for label in range(scores.shape[1]):
        if label != background:
            order = best_first(scores[:, label], float(_F32(min_score)), None if top < 0 else top)
            class_boxes = boxes[:, label if boxes.shape[1] > 1 else 0]
            parts.append(
                (
                    label,
                    order[select_boxes(class_boxes[order], threshold, len(order), pixels=False)],
                )
            )
    return _join(parts, scores)


def _by_best_class(
    boxes: np.ndarray,
    scores: np.ndarray,
    background: int,
    min_score: float,
    top: int,
    threshold: float,
) -> _Detections:
    """Suppress overlapping boxes, with only the best class of each prior, as in MXNet; class 0 is
    excluded.
    """
    chances = scores.copy()
    chances[:, [label for label in {0, background} if 0 <= label < scores.shape[1]]] = -1
    labels = chances.argmax(1)
    values = chances[np.arange(len(labels)), labels]
    order = best_first(
        np.where(values > -1, values, -math.inf),
        float(_F32(min_score)),
        None if top < 0 else top,
        inclusive=True,
    )
    parts = []
    for label in range(1, scores.shape[1]):
        members = order[labels[order] == label]
        class_boxes = boxes[:, label if boxes.shape[1] > 1 else 0]
        parts.append(
            (
                label,
                members[select_boxes(class_boxes[members], threshold, len(members), pixels=False)],
            )
        )
    return _join(parts, scores)


def _join(parts: Sequence[tuple[int, np.ndarray]], scores: np.ndarray) -> _Detections:
    priors = np.concatenate([np.zeros(0, np.int64), *[selected for _, selected in parts]])
    labels = np.concatenate(
        [np.zeros(0, np.int64), *[np.full(len(selected), label) for label, selected in parts]]
    )
    return _Detections(labels, priors, scores[priors, labels])


def _limit(detections: _Detections, limit: int) -> _Detections:
    """Return the ``limit`` best detections of all classes, ordered by class; all of them if it is
    negative.
    """
    if limit < 0 or len(detections.labels) <= limit:
        return detections
    selected = detections.best(limit)
    return selected.ordered(np.argsort(selected.labels, kind="stable"))


def detectron_output(
    regions: Array,
    deltas: Array,
    scores: Array,
    image_info: Array,
    /,
    *,
    score_threshold: float,
    nms_threshold: float,
    max_delta_log_wh: float,
    num_classes: int,
    post_nms_count: int,
    max_detections_per_image: int,
    class_agnostic_box_regression: bool = False,
    deltas_weights: tuple[float, ...],
) -> tuple[Array, Array, Array]:
    """Return boxes [m, 4], classes [m] and scores [m] of the detections of one image.

    m is ``max_detections_per_image``; zeros follow the last detection. Class 0 is the background.
    """
    del class_agnostic_box_regression  # The background has no detections with either setting.
    _check_detectron(regions, deltas, scores, image_info, deltas_weights, num_classes)
    check_elements(4 * max_detections_per_image, "the detections")
    chances = _wide(scores)
    boxes, usable = _refine(
        _wide(regions),
        _wide(deltas).reshape(len(regions), num_classes, 4),
        deltas_weights,
        max_delta_log_wh,
    )
    parts = []
    for label in range(1, num_classes):
        order = best_first(np.where(usable, chances[:, label], 0), float(_F32(score_threshold)))
        parts.append(
            (
                label,
                order[
                    select_boxes(boxes[order, label], nms_threshold, len(order), pixels=True)[
                        :post_nms_count
                    ]
                ],
            )
        )
    detections = _join(parts, chances)
    if len(detections.labels) > max_detections_per_image:
        detections = detections.best(max_detections_per_image)
    corners = np.zeros((max_detections_per_image, 4), _F32)
    labels = np.zeros(max_detections_per_image, np.int32)
    values = np.zeros(max_detections_per_image, _F32)
    filled = len(detections.labels)
    corners[:filled], labels[:filled], values[:filled] = (
        boxes[detections.priors, detections.labels],
        detections.labels,
        detections.scores,
    )
    return to_element_type(corners, regions.dtype), labels, to_element_type(values, regions.dtype)


def _check_detectron(
    regions: Array,
    deltas: Array,
    scores: Array,
    image_info: Array,
    weights: Sequence[float],
    classes: int,
) -> None:
    check_rank(regions, 2, "the table of regions")
    expected = [(len(regions), 4), (len(regions), 4 * classes), (len(regions), classes)]
    if [regions.shape, deltas.shape, scores.shape] != expected or image_info.size < 2:
        raise ValueError(
            f"regions {regions.shape}, deltas {deltas.shape}, scores {scores.shape}: "
            "they do not fit together"
        )
    if len(weights) != 4:
        raise ValueError(f"{len(weights)} weights of the deltas: expected 4")


def _refine(
    regions: np.ndarray, deltas: np.ndarray, weights: Sequence[float], max_growth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes [n, classes, 4], and True for the regions with an area [n].

    As in OpenVINO, boxes may exceed the right and bottom sides of the image.
    """
    size = regions[:, 2:] - regions[:, :2] + _F32(1)
    moves = deltas / np.array(weights, _F32)
    centre = moves[..., :2] * size[:, None] + (regions[:, :2] + _F32(0.5) * size)[:, None]
    half = _F32(0.5) * (np.exp(np.minimum(moves[..., 2:], _F32(max_growth))) * size[:, None])
    corners = np.maximum(np.concatenate([centre - half, centre + half - _F32(1)], -1), 0)
    return corners, np.all(regions[:, 2:] > regions[:, :2], axis=1)


def _infer(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    keep, top = attributes["keep_top_k"][0] if attributes["keep_top_k"] else -1, attributes["top_k"]
    images = shape_of_rank(inputs[0], 2, "the table of offsets").at(0)
    boxes = shape_of_rank(inputs[2], 3, "the priors")
    rows: Dimension = UNKNOWN
    if keep > 0:
        rows = images * keep
    elif attributes.get("num_classes"):
        priors = boxes.at(2)
        per_image = (
            top
            if top > 0
            else priors.length // (4 if attributes["normalized"] else 5)
            if priors.is_static
            else None
        )
        rows = UNKNOWN if per_image is None else images * (per_image * attributes["num_classes"])
    return (Known(inputs[0].element_type, PartialShape((static(1), static(1), rows, static(7)))),)


def _infer_detectron(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    count, element_type = static(attributes["max_detections_per_image"]), inputs[0].element_type
    shape = PartialShape((count,))
    return (
        Known(element_type, PartialShape((count, static(4)))),
        Known(ElementType.I32, shape),
        Known(element_type, shape),
    )


_OUTPUT = (
    Attribute("background_label_id", "int", 0),
    Attribute("top_k", "int", -1),
    Attribute("variance_encoded_in_target", "bool", False),
    Attribute("keep_top_k", "ints"),
    Attribute("code_type", "str", _CORNER, allowed=(_CORNER, _CENTER)),
    Attribute("share_location", "bool", True),
    Attribute("nms_threshold", "float"),
    Attribute("confidence_threshold", "float", 0.0),
    Attribute("clip_after_nms", "bool", False),
    Attribute("clip_before_nms", "bool", False),
    Attribute("decrease_label_id", "bool", False),
    Attribute("normalized", "bool", False),
    Attribute("input_height", "int", 1, least=1),
    Attribute("input_width", "int", 1, least=1),
    Attribute("objectness_score", "float", 0.0),
)


row = family("detection", infer=_infer, inputs=(3, 5), types=(REAL_FLOATS,))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "DetectionOutput",
        detection_output,
        opsets=(1, 7),
        page="detection/detectionoutput-1",
        attributes=(Attribute("num_classes", "int", least=1), *_OUTPUT),
    ),
    row(
        "DetectionOutput",
        detection_output,
        version=8,
        page="detection/detectionoutput-8",
        attributes=_OUTPUT,
    ),
    row(
        "ExperimentalDetectronDetectionOutput",
        detectron_output,
        version=6,
        infer=_infer_detectron,
        inputs=(4, 4),
        outputs=3,
        attributes=(
            Attribute("score_threshold", "float"),
            Attribute("nms_threshold", "float"),
            Attribute("max_delta_log_wh", "float"),
            Attribute("num_classes", "int", least=1),
            Attribute("post_nms_count", "int", least=0),
            Attribute("max_detections_per_image", "int", least=0),
            Attribute("class_agnostic_box_regression", "bool", False),
            Attribute("deltas_weights", "floats"),
        ),
    ),
)
