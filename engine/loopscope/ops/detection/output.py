"""What was detected, from box offsets and class scores: DetectionOutput and the Detectron
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
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.detection.survival import best
from loopscope.ops.elements import narrowed, widened
from loopscope.ops.family import family
from loopscope.ops.ranks import check_rank, of_rank
from loopscope.ops.sort.overlapping_boxes import best_first

_F32 = np.float32
_CORNER, _CENTER = "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"


@dataclass(frozen=True, slots=True)
class _Detections:
    """What one image holds: labels, priors and scores, in the order of the output."""

    labels: np.ndarray
    priors: np.ndarray
    scores: np.ndarray

    def ordered(self, order: np.ndarray) -> _Detections:
        return _Detections(self.labels[order], self.priors[order], self.scores[order])

    def best(self, most: int) -> _Detections:
        """Those with the highest scores, of equal ones the first priors."""
        return self.ordered(np.lexsort((self.priors, -self.scores))[:most])


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
    """Rows [1, 1, n, 7] of image, class, score and corners; a row that begins with -1 ends them.

    Boxes are offsets [N, priors * classes * 4] from priors [1 or N, 1 or 2, priors * 4 or 5]; with
    five inputs they are offset twice, and priors with little ``objectness`` count as background.
    """
    images, size, keep = len(offsets), 4 if normalized else 5, keep_top_k[0] if keep_top_k else -1
    count, classes, places = _counts(
        offsets, confidences, priors, size, num_classes, share_location
    )
    length = _rows(images, count, classes, keep, top_k)
    check_elements(length * 7, "the detections")
    scores = _wide(confidences).reshape(images, count, classes)
    boxes, variances = _prior_boxes(
        _wide(priors), count, size, (input_width, input_height), variance_encoded_in_target
    )
    decode = partial(_decoded, variances=variances, code=code_type, clip=clip_before_nms)
    if objectness is not None and first_offsets is not None:
        scores = _with_objectness(
            scores,
            _wide(objectness).reshape(images, count, 2),
            objectness_score,
            background_label_id,
        )
        # As in OpenVINO, where what is decoded counts as pixels each time.
        pixels = np.array(
            [1 if normalized else input_width, 1 if normalized else input_height] * 2, _F32
        )
        boxes = decode(boxes, _wide(first_offsets).reshape(images, count, places, 4)) / pixels
    decoded = decode(boxes, _wide(offsets).reshape(images, count, places, 4))
    pick = _by_best_class if decrease_label_id else _by_class
    rows = []
    for image, own in enumerate(decoded):
        found = _limited(
            pick(
                own, scores[image], background_label_id, confidence_threshold, top_k, nms_threshold
            ),
            keep,
        )
        rows.append(_rows_of(image, found, own, int(decrease_label_id), clip_after_nms))
    return narrowed(_ended(rows, length).reshape(1, 1, length, 7), offsets.dtype)


def _counts(
    offsets: Array, scores: Array, priors: Array, size: int, num_classes: int, shared: bool
) -> tuple[int, int, int]:
    """How many priors and classes there are, and for how many classes a prior has offsets of its
    own.
    """
    for array, rank, what in (
        (offsets, 2, "the table of offsets"),
        (scores, 2, "the table of scores"),
        (priors, 3, "the priors"),
    ):
        check_rank(array, rank, what)
    images, count = len(offsets), priors.shape[2] // size
    classes = num_classes or (scores.shape[1] // count if count else 0)
    places = 1 if shared else classes
    if (
        not count
        or offsets.size != images * count * places * 4
        or scores.size != images * count * classes
    ):
        raise ValueError(
            f"offsets {offsets.shape}, scores {scores.shape} and priors {priors.shape} do not fit together"
        )
    return count, classes, places


def _rows_of(
    image: int, found: _Detections, boxes: np.ndarray, first_label: int, clip: bool
) -> np.ndarray:
    """The rows of what was found in an image, of whose boxes [priors, places, 4] they have the
    corners.
    """
    corners = boxes[found.priors, found.labels if boxes.shape[1] > 1 else 0]
    corners = np.clip(corners, 0, 1) if clip else corners
    return np.column_stack(
        [np.full(len(corners), image), found.labels - first_label, found.scores, corners]
    )


def _ended(rows: Sequence[np.ndarray], length: int) -> np.ndarray:
    """A table of so many rows; where there are fewer, one that begins with -1 ends them."""
    table = np.zeros((length, 7), _F32)
    found = np.concatenate([np.zeros((0, 7), _F32), *rows])[:length]
    table[: len(found)] = found
    table[len(found) : len(found) + 1, 0] = -1
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
    """Corners [1 or N, priors, 1, 4] in shares of the image, and variances of the same shape."""
    if priors.shape[1] < (1 if encoded else 2):
        raise ValueError(f"priors of shape {list(priors.shape)} have no variances")
    boxes = priors[:, 0, : count * size].reshape(-1, count, 1, size)[..., size - 4 :]
    if size == 5:
        boxes = boxes / np.array(image * 2, _F32)
    return boxes, None if encoded else priors[:, 1, : count * 4].reshape(-1, count, 1, 4)


def _decoded(
    boxes: np.ndarray, offsets: np.ndarray, *, variances: np.ndarray | None, code: str, clip: bool
) -> np.ndarray:
    """Corners [N, priors, places, 4]."""
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
    scores: np.ndarray, objectness: np.ndarray, least: float, background: int
) -> np.ndarray:
    empty = np.zeros(scores.shape[2], _F32)
    if 0 <= background < len(empty):
        empty[background] = 1
    return np.where(objectness[..., 1:] < _F32(least), empty, scores)


def _by_class(
    boxes: np.ndarray, scores: np.ndarray, background: int, least: float, top: int, threshold: float
) -> _Detections:
    """Suppression within each class, as in Caffe."""
    parts = []
    for label in range(scores.shape[1]):
        if label != background:
            order = best_first(scores[:, label], float(_F32(least)), None if top < 0 else top)
            own = boxes[:, label if boxes.shape[1] > 1 else 0]
            parts.append((label, order[best(own[order], threshold, len(order), pixels=False)]))
    return _joined(parts, scores)


def _by_best_class(
    boxes: np.ndarray, scores: np.ndarray, background: int, least: float, top: int, threshold: float
) -> _Detections:
    """Each prior votes for its best class only, as in MXNet; class 0 is never one."""
    chances = scores.copy()
    chances[:, [label for label in {0, background} if 0 <= label < scores.shape[1]]] = -1
    labels = chances.argmax(1)
    values = chances[np.arange(len(labels)), labels]
    order = best_first(
        np.where(values > -1, values, -math.inf),
        float(_F32(least)),
        None if top < 0 else top,
        inclusive=True,
    )
    parts = []
    for label in range(1, scores.shape[1]):
        mine = order[labels[order] == label]
        own = boxes[:, label if boxes.shape[1] > 1 else 0]
        parts.append((label, mine[best(own[mine], threshold, len(mine), pixels=False)]))
    return _joined(parts, scores)


def _joined(parts: Sequence[tuple[int, np.ndarray]], scores: np.ndarray) -> _Detections:
    priors = np.concatenate([np.zeros(0, np.int64), *[kept for _, kept in parts]])
    labels = np.concatenate(
        [np.zeros(0, np.int64), *[np.full(len(kept), label) for label, kept in parts]]
    )
    return _Detections(labels, priors, scores[priors, labels])


def _limited(detections: _Detections, most: int) -> _Detections:
    """The ``most`` best of all classes, class by class again; all of them when ``most`` is
    negative.
    """
    if most < 0 or len(detections.labels) <= most:
        return detections
    kept = detections.best(most)
    return kept.ordered(np.argsort(kept.labels, kind="stable"))


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
    """Boxes [m, 4], classes [m] and scores [m] of m = ``max_detections_per_image`` detections;
    zeros where there are fewer.

    Class 0 is the background.
    """
    del class_agnostic_box_regression  # the background has no detections either way
    _check_detectron(regions, deltas, scores, image_info, deltas_weights, num_classes)
    check_elements(4 * max_detections_per_image, "the detections")
    chances = _wide(scores)
    boxes, usable = _refined(
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
                    best(boxes[order, label], nms_threshold, len(order), pixels=True)[
                        :post_nms_count
                    ]
                ],
            )
        )
    found = _joined(parts, chances)
    if len(found.labels) > max_detections_per_image:
        found = found.best(max_detections_per_image)
    corners = np.zeros((max_detections_per_image, 4), _F32)
    labels, values = (
        np.zeros(max_detections_per_image, np.int32),
        np.zeros(max_detections_per_image, _F32),
    )
    filled = len(found.labels)
    corners[:filled], labels[:filled], values[:filled] = (
        boxes[found.priors, found.labels],
        found.labels,
        found.scores,
    )
    return narrowed(corners, regions.dtype), labels, narrowed(values, regions.dtype)


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
            f"regions {regions.shape}, deltas {deltas.shape}, scores {scores.shape}: they do not fit together"
        )
    if len(weights) != 4:
        raise ValueError(f"{len(weights)} weights of the deltas: expected 4")


def _refined(
    regions: np.ndarray, deltas: np.ndarray, weights: Sequence[float], most: float
) -> tuple[np.ndarray, np.ndarray]:
    """Boxes [n, classes, 4] and which regions have an area [n]. As in OpenVINO, boxes may reach
    beyond the image's far sides.
    """
    size = regions[:, 2:] - regions[:, :2] + _F32(1)
    moves = deltas / np.array(weights, _F32)
    centre = moves[..., :2] * size[:, None] + (regions[:, :2] + _F32(0.5) * size)[:, None]
    half = _F32(0.5) * (np.exp(np.minimum(moves[..., 2:], _F32(most))) * size[:, None])
    corners = np.maximum(np.concatenate([centre - half, centre + half - _F32(1)], -1), 0)
    return corners, np.all(regions[:, 2:] > regions[:, :2], axis=1)


def _infer(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    keep, top = attributes["keep_top_k"][0] if attributes["keep_top_k"] else -1, attributes["top_k"]
    images, boxes = (
        of_rank(inputs[0], 2, "the table of offsets").at(0),
        of_rank(inputs[2], 3, "the priors"),
    )
    rows: Dimension = UNKNOWN
    if keep > 0:
        rows = images * keep
    elif attributes.get("num_classes"):
        priors = boxes.at(2)
        each = (
            top
            if top > 0
            else priors.length // (4 if attributes["normalized"] else 5)
            if priors.is_static
            else None
        )
        rows = UNKNOWN if each is None else images * (each * attributes["num_classes"])
    return (Known(inputs[0].element_type, PartialShape((static(1), static(1), rows, static(7)))),)


def _infer_detectron(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    count, element_type = static(attributes["max_detections_per_image"]), inputs[0].element_type
    one = PartialShape((count,))
    return (
        Known(element_type, PartialShape((count, static(4)))),
        Known(ElementType.I32, one),
        Known(element_type, one),
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
