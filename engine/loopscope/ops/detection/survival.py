"""Non-maximum suppression of boxes, with overlap of real-valued or pixel boxes."""

from __future__ import annotations

import numpy as np

from loopscope.ops.sort.overlapping_boxes import overlap, survivors


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
