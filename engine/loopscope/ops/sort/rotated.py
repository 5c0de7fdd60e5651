"""Overlaps of rotated rectangles."""

from __future__ import annotations

import numpy as np

_TINY = 1e-14


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
    one_area, other_area = _areas(ones), _areas(others)
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


def _areas(quads: np.ndarray) -> np.ndarray:
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
