"""Boxes that touch at all, and how much they overlap when pixels have a size."""

from __future__ import annotations

import numpy as np

from loopscope.ops.sort.overlapping_boxes import overlap, survivors


def pixel_overlap(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union [n, m] of boxes [n, 4] and [m, 4] whose corners are pixels: a box
    from 3 to 3 is one pixel wide.
    """
    shared = overlap(ones, others, 1.0)
    apart = (ones[:, None, :2] > others[None, :, 2:]).any(-1) | (
        others[None, :, :2] > ones[:, None, 2:]
    ).any(-1)
    return np.where(apart, ones.dtype.type(0), shared)


def best(boxes: np.ndarray, threshold: float, most: int, *, pixels: bool) -> list[int]:
    """Positions of the boxes, given best first, that overlap none kept before them; at most
    ``most``.
    """
    return survivors(boxes, threshold, most, pixel_overlap if pixels else overlap)


def adaptively_best(
    boxes: np.ndarray, threshold: float, most: int, eta: float, *, pixels: bool
) -> list[int]:
    """As :func:`best`, with a threshold that shrinks by ``eta`` after each kept box while it is
    above one half.
    """
    kept: list[int] = []
    alive = np.arange(len(boxes))
    while alive.size and len(kept) < most:
        first, rest = alive[:1], alive[1:]
        kept.append(int(first[0]))
        shared = (pixel_overlap if pixels else overlap)(boxes[first], boxes[rest])[0]
        alive = rest[~(shared > threshold)]
        if threshold > 0.5:
            threshold *= eta
    return kept
