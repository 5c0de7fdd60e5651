"""Fingerprints: the facts and sampled elements that represent a tensor beyond the budget."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import numpy as np

from loopscope.ir.recorded_rows import sample_indices

DIGEST, NORM, MINIMUM, MAXIMUM = "digest", "norm", "minimum", "maximum"
"""Facts of a fingerprint: SHA-256 of the bytes, Euclidean norm, smallest and largest number."""
NANS, INFINITIES = "nans", "infinities"
"""Facts of a fingerprint: the number of NaN and of infinite elements."""
_PIECE_ELEMENTS = 1 << 16
"""Number of elements that are converted to f64 at once."""


def fingerprint(array: np.ndarray) -> tuple[Mapping[str, float | int | str], np.ndarray]:
    """Return the facts about a tensor and its sampled elements."""
    flat = np.ascontiguousarray(array).reshape(-1)
    facts: dict[str, float | int | str] = {
        **statistics(flat),
        DIGEST: hashlib.sha256(flat.view(np.uint8).data).hexdigest(),
    }
    return facts, flat[sample_indices(flat.size)]


def statistics(flat: np.ndarray) -> dict[str, float | int]:
    """Return norm, extremes and counts of the elements of a flat tensor.

    NaN and infinite elements do not contribute to norm and extremes.
    """
    squares, low, high, nans, infinities = 0.0, math.inf, -math.inf, 0, 0
    for begin in range(0, flat.size, _PIECE_ELEMENTS):
        piece = flat[begin : begin + _PIECE_ELEMENTS].astype(np.float64)
        finite = piece[np.isfinite(piece)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
            squares += float(finite @ finite)
        if finite.size != piece.size:
            piece_nans = int(np.isnan(piece).sum())
            nans += piece_nans
            infinities += piece.size - finite.size - piece_nans
    return {
        NORM: math.sqrt(squares),
        MINIMUM: low if low <= high else math.nan,
        MAXIMUM: high if low <= high else math.nan,
        NANS: nans,
        INFINITIES: infinities,
    }
