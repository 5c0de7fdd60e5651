"""Which of many overlapping boxes survive: pairwise overlaps, and the greedy choice by score."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Overlap = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Boxes [n, ...] and [m, ...] to intersection over union [n, m]."""

_BLOCK = 64
_PAIRS = 1 << 18
"""Most pairs of boxes whose overlaps are held at once."""


def corners(boxes: np.ndarray, encoding: str) -> np.ndarray:
    """Boxes [n, 4] as lower and upper corners, from any two opposite ones or (``center``) from
    x, y, width, height.
    """
    if encoding == "center":
        x, y, width, height = boxes.T
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)
    low, high = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(low, high), np.maximum(low, high)], -1)


def overlap(ones: np.ndarray, others: np.ndarray, margin: float = 0.0) -> np.ndarray:
    """Intersection over union of boxes [n, 4] and [m, 4] given by corners; ``margin`` 1 counts
    pixels. Empty boxes overlap nothing.
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
    """Of boxes with one row per coordinate."""
    widths, heights = sides[2] - sides[0], sides[3] - sides[1]
    if margin:
        widths, heights = widths + sides.dtype.type(margin), heights + sides.dtype.type(margin)
    area: np.ndarray = widths * heights
    return area


def survivors(boxes: np.ndarray, threshold: float, most: int, overlaps: Overlap) -> list[int]:
    """Positions of the boxes, given best first, that overlap none kept before them by more than
    ``threshold``; at most ``most``.
    """
    kept: list[int] = []
    alive = np.arange(len(boxes))
    while alive.size and len(kept) < most:
        block, alive = alive[:_BLOCK], alive[_BLOCK:]
        rows = _bits(overlaps(boxes[block], boxes[block]) > threshold)
        dead, chosen = 0, []
        for position, row in enumerate(rows):
            if not dead >> position & 1:
                chosen.append(position)
                dead |= row
        found = block[chosen]
        kept.extend(found.tolist())
        if len(kept) < most:
            alive = _apart(boxes, alive, found, threshold, overlaps)
    return kept[:most]


def _apart(
    boxes: np.ndarray, alive: np.ndarray, kept: np.ndarray, threshold: float, overlaps: Overlap
) -> np.ndarray:
    """Those of ``alive`` that overlap none of ``kept`` by more than ``threshold``."""
    step = max(_PAIRS // max(len(kept), 1), 1)
    parts = [alive[start : start + step] for start in range(0, len(alive), step)]
    left = [part[~(overlaps(boxes[kept], boxes[part]) > threshold).any(0)] for part in parts]
    return np.concatenate(left) if left else alive


def _bits(flags: np.ndarray) -> list[int]:
    """Each row as one integer, bit i for column i."""
    return [
        int.from_bytes(row.tobytes(), "little")
        for row in np.packbits(flags, axis=1, bitorder="little")
    ]


def soft_survivors(
    boxes: np.ndarray, scores: np.ndarray, least: float, sigma: float, most: int, overlaps: Overlap
) -> tuple[list[int], list[float]]:
    """Soft-NMS: each kept box lowers the scores of the others by ``exp(-iou^2 / (2 sigma))``;
    positions and lowered scores.
    """
    scores = scores.copy()
    scale = scores.dtype.type(-0.5 / sigma)
    kept: list[int] = []
    values: list[float] = []
    while len(kept) < min(most, len(scores)):
        best = int(scores.argmax())
        if not scores[best] > least:
            break
        kept.append(best)
        values.append(float(scores[best]))
        shared = overlaps(boxes[best : best + 1], boxes)[0]
        scores *= np.exp(scale * shared * shared)
        scores[best] = -math.inf
    return kept, values


def best_first(
    scores: np.ndarray, least: float, most: int | None = None, *, inclusive: bool = False
) -> np.ndarray:
    """Positions of the scores above ``least``, the greatest first, equal ones in order; at most
    ``most``.
    """
    passing = np.flatnonzero(scores >= least if inclusive else scores > least)
    order: np.ndarray = passing[np.argsort(-scores[passing], kind="stable")]
    return order[:most]
