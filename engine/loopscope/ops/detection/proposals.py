"""Region proposals from anchors and scores: Proposal, GenerateProposals and the Detectron variant
for one image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.kernel_arithmetic import to_element_type, widened
from loopscope.ops.kernel_checks import check_elements, check_rank, shape_of_rank
from loopscope.ops.sort.overlapping_boxes import select_boxes, select_boxes_adaptively

_F32 = np.float32
_MAX_GROWTH = _F32(math.log(1000 / 16))
"""Limit of Detectron for the logarithm of a box's growth."""


def proposal(*inputs: Array, **attributes: Any) -> Array:
    """Return the regions of Proposal-4, without the scores."""
    return proposal_4(*inputs, **attributes)[0]


def proposal_4(
    scores: Array,
    deltas: Array,
    image_info: Array,
    /,
    *,
    base_size: int,
    pre_nms_topn: int,
    post_nms_topn: int,
    nms_thresh: float,
    feat_stride: int,
    min_size: int,
    ratio: tuple[float, ...],
    scale: tuple[float, ...],
    clip_before_nms: bool = True,
    clip_after_nms: bool = False,
    normalize: bool = False,
    box_size_scale: float = 1.0,
    box_coordinate_scale: float = 1.0,
    framework: str = "",
) -> tuple[Array, Array]:
    """Return regions [N * post_nms_topn, 5] (image, x1, y1, x2, y2) and their scores.

    Inputs are scores [N, 2K, H, W] and deltas [N, 4K, H, W]. Fewer regions end with a row that
    begins with -1; zeros follow.
    """
    batch, channels, height, width = _dimensions(scores)
    count, tensorflow = channels // 2, framework == "tensorflow"
    if (
        deltas.shape != (batch, 4 * count, height, width)
        or len(ratio) * len(scale) != count
        or image_info.size < 3
    ):
        raise ValueError(
            f"scores {scores.shape}, deltas {deltas.shape}, {len(ratio) * len(scale)} "
            "anchors: they do not fit together"
        )
    check_elements(batch * post_nms_topn * 5, "the proposals")
    info = np.asarray(widened(np.asarray(image_info))).reshape(-1).astype(_F32)
    # TensorFlow's boxes begin with y.
    limits = info[[0, 1, 0, 1] if tensorflow else [1, 0, 1, 0]]
    edge = _F32(0 if tensorflow else 1)
    min_sides = _F32(min_size) * _scale_of(info)
    anchors = _shifts(height, width, feat_stride, tensorflow) + _anchors(
        base_size, ratio, scale, tensorflow
    )
    anchors = np.clip(anchors, 0, limits) if tensorflow else anchors
    growth = np.array([box_coordinate_scale] * 2 + [box_size_scale] * 2, _F32)
    regions = np.zeros((batch, post_nms_topn, 5), _F32)
    chances = np.zeros((batch, post_nms_topn), _F32)
    for number in range(batch):
        boxes = _move(anchors, _by_cell(widened(np.asarray(deltas))[number], 4) / growth, edge, 0)
        boxes = np.clip(boxes, 0, limits - edge) if clip_before_nms else boxes
        values = _by_cell(widened(np.asarray(scores))[number, count:], 1)[..., 0] * _are_large(
            boxes, edge, min_sides
        )
        candidates, chance = _top(boxes.reshape(-1, 4), values.reshape(-1), pre_nms_topn)
        selected = select_boxes(candidates, nms_thresh, post_nms_topn, pixels=not tensorflow)
        final = np.clip(candidates[selected], 0, limits) if clip_after_nms else candidates[selected]
        regions[number, : len(selected), 0], regions[number, : len(selected), 1:] = (
            number,
            final / limits if normalize else final,
        )
        regions[number, len(selected) : len(selected) + 1, 0] = -1
        chances[number, : len(selected)] = chance[selected]
    return to_element_type(regions.reshape(-1, 5), scores.dtype), to_element_type(
        chances.reshape(-1), scores.dtype
    )


def _dimensions(scores: Array) -> tuple[int, int, int, int]:
    check_rank(scores, 4, "the scores")
    batch, channels, height, width = scores.shape
    return batch, channels, height, width


def _scale_of(info: np.ndarray) -> np.ndarray:
    """Return the scale factors of an image per axis, from its info: height, width, and one scale or
    two.
    """
    return info[[3 if info.size > 3 else 2, 2]]


def _are_large(boxes: np.ndarray, edge: np.floating, min_sides: np.ndarray) -> np.ndarray:
    """Return True for the boxes [..., 4] with sides of at least the minimum."""
    return np.asarray((boxes[..., 2:] - boxes[..., :2] + edge >= min_sides).all(-1))


def _shifts(height: int, width: int, stride: int, tensorflow: bool) -> np.ndarray:
    """Return the position of each cell, [H, W, 1, 4]."""
    down, across = np.broadcast_arrays(
        np.arange(height, dtype=_F32)[:, None] * stride, np.arange(width, dtype=_F32) * stride
    )
    return np.stack([down, across] * 2 if tensorflow else [across, down] * 2, -1)[:, :, None]


def _anchors(
    base: int, ratios: Sequence[float], scales: Sequence[float], tensorflow: bool
) -> np.ndarray:
    """Return boxes [K, 4] around the first cell; Caffe rounds to pixels, TensorFlow centres them on
    0.
    """
    offset = _F32(0 if tensorflow else 1)
    ratio = np.array(ratios, _F32)[:, None]
    width = np.sqrt(_F32(base * base) / ratio)
    if not tensorflow:
        width = np.floor(width + _F32(0.5))
    height = width * ratio
    if not tensorflow:
        height = np.floor(height + _F32(0.5))
    factor = np.array(scales, _F32)
    half_width, half_height = (_F32(0.5) * (side * factor - offset) for side in (width, height))
    centre = _F32(0.5) * (_F32(base) - offset) - (_F32(0.5) * _F32(base) if tensorflow else _F32(0))
    return np.stack(
        [centre - half_width, centre - half_height, centre + half_width, centre + half_height], -1
    ).reshape(-1, 4)


def _by_cell(planes: np.ndarray, size: int) -> np.ndarray:
    """Return planes [K * size, H, W] as [H, W, K, size] in f32."""
    return np.asarray(
        np.moveaxis(planes.reshape(-1, size, *planes.shape[1:]), (0, 1), (2, 3)).astype(_F32)
    )


def _move(
    anchors: np.ndarray,
    deltas: np.ndarray,
    edge: np.floating,
    inner: float,
    max_growth: np.floating | float = math.inf,
) -> np.ndarray:
    """Shift anchors [..., 4] by fractions of their size and scale them by exponents.

    ``inner`` is subtracted from the last corner.
    """
    size = anchors[..., 2:] - anchors[..., :2] + edge
    centre = deltas[..., :2] * size + (anchors[..., :2] + _F32(0.5) * size)
    half = _F32(0.5) * (np.exp(np.minimum(deltas[..., 2:], _F32(max_growth))) * size)
    return np.concatenate([centre - half, centre + half - _F32(inner)], -1)


def _top(boxes: np.ndarray, scores: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-scores, kind="stable")[:limit]
    return boxes[order], scores[order]


def generate_proposals(
    image_info: Array,
    anchors: Array,
    deltas: Array,
    scores: Array,
    /,
    *,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: int,
    post_nms_count: int,
    normalized: bool = True,
    nms_eta: float = 1.0,
    roi_num_type: ElementType = ElementType.I64,
) -> tuple[Array, Array, Array]:
    """Return regions [n, 4] of all images, scores [n] and counts [N].

    Inputs are anchors [H, W, K, 4], deltas [N, 4K, H, W] and scores [N, K, H, W].
    """
    batch, count, height, width = _dimensions(scores)
    if (
        anchors.shape != (height, width, count, 4)
        or deltas.shape != (batch, 4 * count, height, width)
        or image_info.shape not in ((batch, 3), (batch, 4))
    ):
        raise ValueError(
            f"anchors {anchors.shape}, deltas {deltas.shape}, scores {scores.shape}: "
            "they do not fit together"
        )
    regions_by_image, scores_by_image, counts = [np.zeros((0, 4), _F32)], [np.zeros(0, _F32)], []
    for number in range(batch):
        info = np.asarray(widened(np.asarray(image_info)))[number].astype(_F32)
        boxes, values = _boxes_in_image(
            info,
            widened(np.asarray(anchors)),
            widened(np.asarray(deltas))[number],
            widened(np.asarray(scores))[number],
            normalized,
        )
        boxes, values = _top(boxes, values, pre_nms_count)
        edge = _F32(0 if normalized else 1)
        large = _are_large(boxes, edge, _F32(min_size) * _scale_of(info))
        boxes, values = boxes[large], values[large]
        selected = select_boxes_adaptively(
            boxes, nms_threshold, post_nms_count, nms_eta, pixels=not normalized
        )
        regions_by_image.append(boxes[selected])
        scores_by_image.append(values[selected])
        counts.append(len(selected))
    regions, values = np.concatenate(regions_by_image), np.concatenate(scores_by_image)
    return (
        to_element_type(regions, scores.dtype),
        to_element_type(values, scores.dtype),
        np.array(counts, roi_num_type.dtype),
    )


def _boxes_in_image(
    info: np.ndarray, anchors: Array, deltas: Array, scores: Array, normalized: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes [n, 4] and scores [n] of one image, cell by cell, clipped to the image."""
    edge = _F32(0 if normalized else 1)
    boxes = _move(
        np.asarray(anchors).astype(_F32),
        _by_cell(np.asarray(deltas), 4),
        edge,
        float(edge),
        _MAX_GROWTH,
    )
    return np.clip(boxes, 0, info[[1, 0, 1, 0]] - edge).reshape(-1, 4), _by_cell(
        np.asarray(scores), 1
    ).reshape(-1)


def proposals_of_one_image(
    image_info: Array,
    anchors: Array,
    deltas: Array,
    scores: Array,
    /,
    *,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: int,
    post_nms_count: int,
) -> tuple[Array, Array]:
    """Return regions [post_nms_count, 4] and scores of one image, with zeros at the end.

    Inputs are anchors [H * W * K, 4], deltas [4K, H, W] and scores [K, H, W]. A box smaller than
    ``min_size`` stays in the list with a score of 0.
    """
    check_rank(scores, 3, "the scores")
    if (
        image_info.size < 2
        or deltas.shape != (4 * scores.shape[0], *scores.shape[1:])
        or anchors.shape != (scores.size, 4)
    ):
        raise ValueError(
            f"anchors {anchors.shape}, deltas {deltas.shape}, scores {scores.shape}: "
            "they do not fit together"
        )
    check_elements(post_nms_count * 4, "the proposals")
    count, height, width = scores.shape
    info = np.asarray(widened(np.asarray(image_info))).reshape(-1).astype(_F32)
    cells = widened(np.asarray(anchors)).reshape(height, width, count, 4)
    boxes, values = _boxes_in_image(
        info, cells, widened(np.asarray(deltas)), widened(np.asarray(scores)), False
    )
    large = (boxes[:, 2:] - boxes[:, :2] + _F32(1) >= _F32(min_size)).all(-1)
    boxes, values = _top(boxes, values * large, pre_nms_count)
    selected = select_boxes(boxes, nms_threshold, post_nms_count, pixels=False)
    regions, chances = np.zeros((post_nms_count, 4), _F32), np.zeros(post_nms_count, _F32)
    regions[: len(selected)], chances[: len(selected)] = boxes[selected], values[selected]
    return to_element_type(regions, scores.dtype), to_element_type(chances, scores.dtype)


def _infer_proposal(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    count = shape_of_rank(inputs[0], 4, "the scores").at(0) * attributes["post_nms_topn"]
    return Known(inputs[0].element_type, PartialShape((count, static(5)))), Known(
        inputs[0].element_type, PartialShape((count,))
    )


def _infer_first_proposal(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    return _infer_proposal(inputs, attributes)[:1]


def _infer_generated(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    batch, element_type = shape_of_rank(inputs[3], 4, "the scores").at(0), inputs[3].element_type
    upper = None if batch.most is None else batch.most * attributes["post_nms_count"]
    count = Dimension(0, upper) if upper is not None else UNKNOWN
    return (
        Known(element_type, PartialShape((count, static(4)))),
        Known(element_type, PartialShape((count,))),
        Known(attributes["roi_num_type"], PartialShape((batch,))),
    )


def _infer_single_image(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    count, element_type = static(attributes["post_nms_count"]), inputs[3].element_type
    return Known(element_type, PartialShape((count, static(4)))), Known(
        element_type, PartialShape((count,))
    )


_PROPOSAL = (
    Attribute("base_size", "int", least=1),
    Attribute("pre_nms_topn", "int", least=1),
    Attribute("post_nms_topn", "int", least=1),
    Attribute("nms_thresh", "float"),
    Attribute("feat_stride", "int", least=1),
    Attribute("min_size", "int", least=0),
    Attribute("ratio", "floats"),
    Attribute("scale", "floats"),
    Attribute("clip_before_nms", "bool", True),
    Attribute("clip_after_nms", "bool", False),
    Attribute("normalize", "bool", False),
    Attribute("box_size_scale", "float", 1.0),
    Attribute("box_coordinate_scale", "float", 1.0),
    Attribute("framework", "str", "", allowed=("", "tensorflow")),
)
_GENERATE = (
    Attribute("min_size", "float"),
    Attribute("nms_threshold", "float"),
    Attribute("pre_nms_count", "int", least=0),
    Attribute("post_nms_count", "int", least=0),
)

row = family("detection", types=(REAL_FLOATS,))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Proposal",
        proposal,
        opsets=(1, 3),
        infer=_infer_first_proposal,
        inputs=(3, 3),
        attributes=_PROPOSAL,
    ),
    row(
        "Proposal",
        proposal_4,
        version=4,
        infer=_infer_proposal,
        inputs=(3, 3),
        outputs=2,
        attributes=_PROPOSAL,
    ),
    row(
        "GenerateProposals",
        generate_proposals,
        version=9,
        infer=_infer_generated,
        inputs=(4, 4),
        outputs=3,
        attributes=(
            *_GENERATE,
            Attribute("normalized", "bool", True),
            Attribute("nms_eta", "float", 1.0),
            Attribute(
                "roi_num_type", "type", ElementType.I64, allowed=(ElementType.I32, ElementType.I64)
            ),
        ),
    ),
    row(
        "ExperimentalDetectronGenerateProposalsSingleImage",
        proposals_of_one_image,
        version=6,
        infer=_infer_single_image,
        inputs=(4, 4),
        outputs=2,
        attributes=_GENERATE,
    ),
)
