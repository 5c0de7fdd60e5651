"""A large tensor as few numbers, which another runtime computes too: how far two tensors are
apart is told by theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopscope.comparison.deviation import Deviations

_PRODUCTS = 2
_BUCKET, _SHORTEST = 256, 16
"""Elements that share two numbers: at most, and at least where the size of the tensor allows it."""
_SEED = 20261122
LEADING = 2
"""Numbers before the products: the largest magnitude, and the length of the tensor as a vector."""


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """How tensors of one size are told: their elements in buckets of one width, each multiplied
    with vectors of plus and minus one.

    The two products of a bucket differ between two tensors by the distance of the tensors there, on
    average over the signs.
    """

    size: int
    signs: np.ndarray
    """Float32 [width, products]."""

    @staticmethod
    def of_size(size: int) -> Fingerprint:
        """The same for every tensor of a size, in every run."""
        width = _width(size)
        signs = np.random.default_rng(_SEED).integers(0, 2, (width, _PRODUCTS)) * 2 - 1
        return Fingerprint(size, signs.astype(np.float32))

    @property
    def shape(self) -> tuple[int, int]:
        """The tensor as a row for each bucket."""
        return self.size // len(self.signs), len(self.signs)

    @property
    def length(self) -> int:
        """How many numbers there are."""
        return LEADING + self.shape[0] * _PRODUCTS

    def of(self, value: np.ndarray) -> np.ndarray:
        """Of one tensor: float32 [length]."""
        buckets = np.asarray(value).reshape(self.shape).astype(np.float32, copy=False)
        flat = buckets.reshape(-1)
        with np.errstate(all="ignore"):
            made = np.empty(self.length, np.float32)
            made[0] = np.maximum(flat.max(), -flat.min())
            made[1] = np.sqrt(np.einsum("ij,ij->i", buckets, buckets).sum())
            for number, signs in enumerate(
                self.signs.T
            ):  # by one thread: a product of few columns is no work for several
                made[LEADING + number :: _PRODUCTS] = np.einsum(
                    "ij,j->i", buckets, np.ascontiguousarray(signs)
                )
        return made

    def apart(self, here: np.ndarray, there: np.ndarray) -> Deviations:
        """An estimate for each row of two arrays [rows, length]: the distance in the bucket in
        which it is largest.

        Where the difference is spread over a bucket, that is more than the largest distance of two
        elements: about the root of the width of a bucket times as much, and as signs fall up to
        twice that.
        """
        one, other = (side.astype(np.float64) for side in (here, there))
        with np.errstate(all="ignore"):
            products = (one[:, LEADING:] - other[:, LEADING:]).reshape(len(one), -1, _PRODUCTS)
            squares = np.mean(products**2, axis=2)
            odd = (np.isfinite(one) != np.isfinite(other)).any(axis=1)
            absolute = np.where(
                odd,
                np.inf,
                np.sqrt(np.nan_to_num(squares, nan=0.0, posinf=0.0).max(axis=1, initial=0)),
            )
            scale = np.maximum(one[:, 0], other[:, 0])
            relative = np.where(absolute == 0, 0.0, absolute / scale)
            twice = one[:, 1] ** 2 + other[:, 1] ** 2 - squares.sum(axis=1)
            cosine = np.where(absolute == 0, 1.0, twice / (2 * one[:, 1] * other[:, 1]))
        return Deviations(absolute, np.where(np.isnan(relative), np.inf, relative), cosine)


def _width(size: int) -> int:
    """A divisor of the size: the largest that is no longer than a bucket should be, else the
    shortest beyond that.
    """
    found = max(one for one in range(1, min(size, _BUCKET) + 1) if size % one == 0)
    if found >= min(_SHORTEST, size):
        return found
    return next((one for one in range(_BUCKET + 1, int(size**0.5) + 1) if size % one == 0), size)
