"""Generators of random 32-bit numbers, as specified for RandomUniform-8.

They are Philox 4x32-10 and Mersenne Twister.
"""

from __future__ import annotations

import numpy as np

_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def philox(key: int, counter: int, first: int, groups: int) -> np.ndarray:
    """Return four uint32 numbers, as uint64, for each of ``groups`` positions; shape (groups, 4).

    The positions are consecutive from ``first``. A position that overflows 64 bits carries into
    ``counter``. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3".
    """
    position = np.arange(groups, dtype=np.uint64) + np.uint64(first)
    carried = np.where(
        position < np.uint64(first), np.uint64((counter + 1) % 2**64), np.uint64(counter)
    )
    lanes = [position & _LOW, position >> _HALF, carried & _LOW, carried >> _HALF]
    low_key, high_key = key & 0xFFFFFFFF, key >> 32
    for _ in range(_ROUNDS):
        even, odd = lanes[0] * _MULTIPLIERS[0], lanes[2] * _MULTIPLIERS[1]
        lanes = [
            (odd >> _HALF) ^ lanes[1] ^ np.uint64(low_key),
            odd & _LOW,
            (even >> _HALF) ^ lanes[3] ^ np.uint64(high_key),
            even & _LOW,
        ]
        low_key = (low_key + _KEY_STEPS[0]) & 0xFFFFFFFF
        high_key = (high_key + _KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack(lanes, axis=1)


def mersenne(seed: int, count: int) -> np.ndarray:
    """Return the first ``count`` uint32 numbers of MT19937, as uint64."""
    return (
        np.random.RandomState(seed & 0xFFFFFFFF)
        .randint(0, 2**32, count, np.uint32)
        .astype(np.uint64)
    )
