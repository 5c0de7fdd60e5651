"""Fingerprints of large tensors: few numbers, also computed by another runtime, that estimate the
distance of two tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopscope.comparison.deviation import Deviations

_PRODUCTS_PER_BUCKET = 2
_MAX_BUCKET_WIDTH, _MIN_BUCKET_WIDTH = 256, 16
"""Maximum and minimum elements per bucket; the minimum applies if the tensor size allows it."""
_SEED = 20261122
LEADING = 2
"""Numbers before the products: the largest magnitude, and the Euclidean norm."""


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """Fingerprint scheme for tensors of one size: buckets of equal width, multiplied with vectors
    of signs.

    The two products of a bucket differ between two tensors by the distance of the tensors in the
    bucket, on average over the signs.
    """

    size: int
    signs: np.ndarray
    """Float32 [width, products]."""

    @staticmethod
    def of_size(size: int) -> Fingerprint:
        """Return the scheme for a size; it is the same in every run."""
        width = _bucket_width(size)
        signs = np.random.default_rng(_SEED).integers(0, 2, (width, _PRODUCTS_PER_BUCKET)) * 2 - 1
        return Fingerprint(size, signs.astype(np.float32))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the tensor with one row per bucket."""
        return self.size // len(self.signs), len(self.signs)

    @property
    def length(self) -> int:
        """Number of numbers in a fingerprint."""
        return LEADING + self.shape[0] * _PRODUCTS_PER_BUCKET

    def of(self, value: np.ndarray) -> np.ndarray:
        """Return the fingerprint of a tensor: float32 [length]."""
        buckets = np.asarray(value).reshape(self.shape).astype(np.float32, copy=False)
        flat = buckets.reshape(-1)
        with np.errstate(all="ignore"):
            numbers = np.empty(self.length, np.float32)
            numbers[0] = np.maximum(flat.max(), -flat.min())
            numbers[1] = np.sqrt(np.einsum("ij,ij->i", buckets, buckets).sum())
            # einsum uses one thread: a product of few columns does not benefit from several.
            for number, signs in enumerate(self.signs.T):
                numbers[LEADING + number :: _PRODUCTS_PER_BUCKET] = np.einsum(
                    "ij,j->i", buckets, np.ascontiguousarray(signs)
                )
        return numbers

    def apart(self, own: np.ndarray, peer: np.ndarray) -> Deviations:
        """Estimate the deviation per row of two arrays [rows, length]: the distance in the bucket
        with the largest one.

        If the difference is spread over a bucket, the estimate exceeds the largest element
        distance: by about the square root of the bucket width, and up to twice that depending on
        the signs.
        """
        own_rows, peer_rows = (side.astype(np.float64) for side in (own, peer))
        with np.errstate(all="ignore"):
            products = (own_rows[:, LEADING:] - peer_rows[:, LEADING:]).reshape(
                len(own_rows), -1, _PRODUCTS_PER_BUCKET
            )
            squares = np.mean(products**2, axis=2)
            differs_in_finiteness = (np.isfinite(own_rows) != np.isfinite(peer_rows)).any(axis=1)
            absolute = np.where(
                differs_in_finiteness,
                np.inf,
                np.sqrt(np.nan_to_num(squares, nan=0.0, posinf=0.0).max(axis=1, initial=0)),
            )
            scale = np.maximum(own_rows[:, 0], peer_rows[:, 0])
            relative = np.where(absolute == 0, 0.0, absolute / scale)
            twice = own_rows[:, 1] ** 2 + peer_rows[:, 1] ** 2 - squares.sum(axis=1)
            cosine = np.where(absolute == 0, 1.0, twice / (2 * own_rows[:, 1] * peer_rows[:, 1]))
        return Deviations(absolute, np.where(np.isnan(relative), np.inf, relative), cosine)


def _bucket_width(size: int) -> int:
    """Return a divisor of the size: the largest up to the maximum width, otherwise the smallest
    above it.
    """
    largest = max(
        divisor for divisor in range(1, min(size, _MAX_BUCKET_WIDTH) + 1) if size % divisor == 0
    )
    if largest >= min(_MIN_BUCKET_WIDTH, size):
        return largest
    return next(
        (
            divisor
            for divisor in range(_MAX_BUCKET_WIDTH + 1, int(size**0.5) + 1)
            if size % divisor == 0
        ),
        size,
    )
