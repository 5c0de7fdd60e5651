"""Overlaps of boxes and of rotated rectangles, and the greedy selection of boxes by score
(non-maximum suppression).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Overlap = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Function of boxes [n, ...] and [m, ...] that returns intersection over union [n, m]."""

_BLOCK = 64
_PAIRS = 1 << 18
"""Largest number of pairs of boxes whose overlaps are in memory at once."""


def corners(boxes: np.ndarray, encoding: str) -> np.ndarray:
    """Return boxes [n, 4] as lower and upper corners, from any two opposite corners or (``center``)
    from x, y, width, height.
    """
    if encoding == "center":
        x, y, width, height = boxes.T
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)
    low, high = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(low, high), np.maximum(low, high)], -1)


def overlap(ones: np.ndarray, others: np.ndarray, margin: float = 0.0) -> np.ndarray:
    """Return intersection over union of boxes [n, 4] and [m, 4] with corners; ``margin`` 1 counts
    pixels. Empty boxes have an overlap of 0.
    """
    # One row per coordinate: numpy is several times faster on contiguous rows.
    rows, columns = ones.T[:, :, None].copy(), others.T.copy()
    one_area, other_area = _areas(rows, margin), _areas(columns, margin)
    shared = np.ones((), ones.dtype)
    for low, high in ((0, 2), (1, 3)):
        length = np.minimum(rows[high], columns[high])
        length -= np.maximum(rows[low], columns[low])
        if margin:
            length += ones.dtype.type(margin)
        np.maximum(length, 0, out=length)
        shared = np.multiply(shared, length, out=length) if shared.ndim else length
    union = one_area + other_area
    union -= shared
    full = (one_area > 0) & (other_area > 0)
    if full.all():
        return np.divide(shared, union, out=shared)
    return np.divide(shared, union, out=np.zeros_like(shared), where=full)


def _areas(sides: np.ndarray, margin: float) -> np.ndarray:
    """Return the areas of boxes with one row per coordinate."""
    widths, heights = sides[2] - sides[0], sides[3] - sides[1]
    if margin:
        widths, heights = widths + sides.dtype.type(margin), heights + sides.dtype.type(margin)
    area: np.ndarray = widths * heights
    return area


def survivors(boxes: np.ndarray, threshold: float, limit: int, overlaps: Overlap) -> list[int]:
    """Return positions of the boxes, sorted best first, whose overlap with each better selected box
    is at most ``threshold``; at most ``limit`` positions.
    """
    selected: list[int] = []
    alive = np.arange(len(boxes))
    while alive.size and len(selected) < limit:
        block, alive = alive[:_BLOCK], alive[_BLOCK:]
        rows = _bits(overlaps(boxes[block], boxes[block]) > threshold)
        dead, chosen = 0, []
        for position, row in enumerate(rows):
            if not dead >> position & 1:
                chosen.append(position)
                dead |= row
        selected_block = block[chosen]
        selected.extend(selected_block.tolist())
        if len(selected) < limit:
            alive = _separate_boxes(boxes, alive, selected_block, threshold, overlaps)
    return selected[:limit]


def _separate_boxes(
    boxes: np.ndarray, alive: np.ndarray, selected: np.ndarray, threshold: float, overlaps: Overlap
) -> np.ndarray:
    """Return the boxes of ``alive`` whose overlap with each of ``selected`` is at most
    ``threshold``.
    """
    step = max(_PAIRS // max(len(selected), 1), 1)
    parts = [alive[start : start + step] for start in range(0, len(alive), step)]
    remaining = [
        part[~(overlaps(boxes[selected], boxes[part]) > threshold).any(0)] for part in parts
    ]
    return np.concatenate(remaining) if remaining else alive


def _bits(flags: np.ndarray) -> list[int]:
    """Return each row as one integer, bit i for column i."""
    return [
        int.from_bytes(row.tobytes(), "little")
        for row in np.packbits(flags, axis=1, bitorder="little")
    ]


def soft_survivors(
    boxes: np.ndarray,
    scores: np.ndarray,
    min_score: float,
    sigma: float,
    limit: int,
    overlaps: Overlap,
) -> tuple[list[int], list[float]]:
    """Return positions and lowered scores by Soft-NMS: each selected box lowers the other scores by
    ``exp(-iou^2 / (2 sigma))``.
    """
    scores = scores.copy()
    scale = scores.dtype.type(-0.5 / sigma)
    selected: list[int] = []
    values: list[float] = []
    while len(selected) < min(limit, len(scores)):
        best = int(scores.argmax())
        if not scores[best] > min_score:
            break
        selected.append(best)
        values.append(float(scores[best]))
        shared = overlaps(boxes[best : best + 1], boxes)[0]
        scores *= np.exp(scale * shared * shared)
        scores[best] = -math.inf
    return selected, values


def best_first(
    scores: np.ndarray, min_score: float, limit: int | None = None, *, inclusive: bool = False
) -> np.ndarray:
    """Return positions of the scores above ``min_score``, the greatest first, equal ones in order;
    at most ``limit``.
    """
    passing = np.flatnonzero(scores >= min_score if inclusive else scores > min_score)
    order: np.ndarray = passing[np.argsort(-scores[passing], kind="stable")]
    return order[:limit]


_TINY = 1e-14


def pixel_overlap(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return intersection over union [n, m] of boxes [n, 4] and [m, 4] whose corners are pixels.

    A box from 3 to 3 is one pixel wide.
    """
    shared = overlap(ones, others, 1.0)
    apart = (ones[:, None, :2] > others[None, :, 2:]).any(-1) | (
        others[None, :, :2] > ones[:, None, 2:]
    ).any(-1)
    return np.where(apart, ones.dtype.type(0), shared)


def select_boxes(boxes: np.ndarray, threshold: float, limit: int, *, pixels: bool) -> list[int]:
    """Return positions of at most ``limit`` boxes, given best first.

    A box is dropped if it overlaps an earlier selected box by more than ``threshold``.
    """
    return survivors(boxes, threshold, limit, pixel_overlap if pixels else overlap)


def select_boxes_adaptively(
    boxes: np.ndarray, threshold: float, limit: int, eta: float, *, pixels: bool
) -> list[int]:
    """Select boxes as ``select_boxes`` does, with a shrinking threshold.

    After each selected box, the threshold is multiplied by ``eta`` while it exceeds one half.
    """
    selected: list[int] = []
    alive = np.arange(len(boxes))
    while alive.size and len(selected) < limit:
        first, rest = alive[:1], alive[1:]
        selected.append(int(first[0]))
        shared = (pixel_overlap if pixels else overlap)(boxes[first], boxes[rest])[0]
        alive = rest[~(shared > threshold)]
        if threshold > 0.5:
            threshold *= eta
    return selected


def rotated_quads(boxes: np.ndarray, clockwise: bool) -> np.ndarray:
    """Return corners [n, 4, 2] in float64 of boxes [n, 5]: center x and y, width, height, angle in
    radians (y grows downwards).
    """
    x, y, width, height, angle = boxes.astype(np.float64).T
    angle = angle if clockwise else -angle
    across = np.array([-0.5, 0.5, 0.5, -0.5]) * width[:, None]
    along = np.array([-0.5, -0.5, 0.5, 0.5]) * height[:, None]
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    return np.stack(
        [x[:, None] + across * cosine - along * sine, y[:, None] + across * sine + along * cosine],
        -1,
    )


def rotated_overlap(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return intersection over union of rectangles [n, 4, 2] and [m, 4, 2] with their corners.
    Empty rectangles have an overlap of 0.
    """
    result = np.zeros((len(ones), len(others)))
    one_area, other_area = _quad_areas(ones), _quad_areas(others)
    # Only pairs whose bounding boxes meet are computed.
    meet = (ones.min(1)[:, None] <= others.max(1)).all(-1) & (
        others.min(1) <= ones.max(1)[:, None]
    ).all(-1)
    first, second = np.nonzero(meet & (one_area > 0)[:, None] & (other_area > 0))
    step = 1 << 14
    for start in range(0, len(first), step):
        left, right = first[start : start + step], second[start : start + step]
        shared = _shared_areas(ones[left], others[right])
        result[left, right] = shared / (one_area[left] + other_area[right] - shared)
    return result


def _quad_areas(quads: np.ndarray) -> np.ndarray:
    wide, high = quads[:, 1] - quads[:, 0], quads[:, 3] - quads[:, 0]
    area: np.ndarray = wide[:, 0] * high[:, 1] - wide[:, 1] * high[:, 0]
    return area


def _shared_areas(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return areas [p] of the intersections of p pairs. Their vertices are corners inside the other
    rectangle and crossings of edges, in order around their middle.
    """
    crossings, crossing = _crossings(ones, others)
    points = np.concatenate([ones, others, crossings], 1)
    counts = np.concatenate([_inside(ones, others), _inside(others, ones), crossing], 1)
    number = counts.sum(1)
    middle = (points * counts[..., None]).sum(1) / np.maximum(number, 1)[:, None]
    points = np.where(counts[..., None], points - middle[:, None], 0.0)
    # Points that do not count are replaced by a point that does, so that they span no area.
    angle = np.where(counts, np.arctan2(points[..., 1], points[..., 0]), np.inf)
    order = angle.argsort(1)
    ring = np.take_along_axis(points, order[..., None], 1)
    ring = np.where((np.arange(ring.shape[1]) < number[:, None])[..., None], ring, ring[:, :1])
    following = np.roll(ring, -1, 1)
    areas: np.ndarray = (
        np.abs((ring[..., 0] * following[..., 1] - ring[..., 1] * following[..., 0]).sum(1)) / 2
    )
    return areas


def _inside(points: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """Return True for points [p, 4, 2] in the rectangle of their pair, its edges included."""
    origin = quads[:, :1]
    result = np.ones(points.shape[:2], np.bool_)
    for corner in (1, 3):
        edge = quads[:, corner] - quads[:, 0]
        length = (edge * edge).sum(-1)[:, None]
        reach = ((points - origin) * edge[:, None]).sum(-1)
        result &= (reach >= -_TINY * length) & (reach <= length * (1 + _TINY))
    return result


def _crossings(ones: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the crossings of the 4 x 4 pairs of edges, [p, 16, 2], and True for edges that cross,
    [p, 16].
    """
    one_edge, other_edge = np.roll(ones, -1, 1) - ones, np.roll(others, -1, 1) - others
    left, right = one_edge[:, :, None], other_edge[:, None]
    apart = others[:, None] - ones[:, :, None]
    cross = left[..., 0] * right[..., 1] - left[..., 1] * right[..., 0]
    parallel = np.abs(cross) <= _TINY
    divisor = np.where(parallel, 1.0, cross)
    along_one = (apart[..., 0] * right[..., 1] - apart[..., 1] * right[..., 0]) / divisor
    along_other = (apart[..., 0] * left[..., 1] - apart[..., 1] * left[..., 0]) / divisor
    crossing = (
        ~parallel & (along_one >= 0) & (along_one <= 1) & (along_other >= 0) & (along_other <= 1)
    )
    points = ones[:, :, None] + along_one[..., None] * left
    pairs = len(ones)
    return points.reshape(pairs, 16, 2), crossing.reshape(pairs, 16)
