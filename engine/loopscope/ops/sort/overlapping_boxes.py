"""Pairwise overlaps of boxes, and the greedy selection of boxes by score."""

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
