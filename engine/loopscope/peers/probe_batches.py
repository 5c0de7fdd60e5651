"""Batches of values requested from a runtime, and the runtime's rows aligned with ours.

The runtime's process holds all requested values at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.executor.plan.plan import Program
from loopscope.peers.probes import Probe, ProbeCandidate

_MAX_BATCH_BYTES = 128 * 2**20
"""Maximum memory of a batch in the runtime's process, in bytes."""
_BYTES_PER_VALUE, _BYTES_PER_BYTE = 1 << 17, 3
"""Approximate memory per value (compiled operations) and per byte (a buffer that grows by
doubling).
"""


def batches(candidates: Sequence[ProbeCandidate]) -> Iterator[tuple[ProbeCandidate, ...]]:
    """Yield batches of about equal size in the order of the run; one batch if all values together
    are small.

    The values of one loop or If of the outermost graph are not divided.
    """
    ordered = sorted(candidates, key=_outer_position)
    candidate_groups = [tuple(members) for _, members in groupby(ordered, key=_outer_position)]
    sizes = [
        sum(_BYTES_PER_VALUE + _BYTES_PER_BYTE * candidate.given_bytes for candidate in group)
        for group in candidate_groups
    ]
    target = sum(sizes) / max(1, ceil(sum(sizes) / _MAX_BATCH_BYTES))
    part: list[ProbeCandidate] = []
    filled = 0
    for group, size in zip(candidate_groups, sizes, strict=True):
        if part and filled + size / 2 > target:
            yield tuple(part)
            part, filled = [], 0
        part += group
        filled += size
    if part:
        yield tuple(part)


def _outer_position(candidate: ProbeCandidate) -> int:
    """Return the number of the outermost graph's instruction that computes a value or contains its
    region.
    """
    program: Program = candidate.program
    position = candidate.position
    while program.parent is not None:
        program, position = program.parent, program.owner
    return position


def rows_of(probe: Probe, peer: np.ndarray) -> np.ndarray | None:
    """Return the runtime's rows of a probe that both runs have; None if the shapes differ."""
    lengths = peer.shape[: len(probe.lengths)]
    rows = peer.reshape(math.prod(lengths), *peer.shape[len(lengths) :])
    if rows.shape[1:] != probe.expected.shape[1:] or lengths[1:] != probe.lengths[1:]:
        return None
    count = int(np.searchsorted(probe.places, len(rows)))
    if count and probe.places[count - 1] == count - 1:  # all rows, so that no copy is needed
        return rows[:count]
    return np.asarray(rows[probe.places[:count]])


def estimate(probe: Probe, peer: np.ndarray) -> Deviations:
    """Estimate the deviation of a runtime's values from their fingerprints, in the rows that both
    runs have.
    """
    rows = rows_of(probe, peer)
    if rows is None or probe.fingerprint is None:
        return Deviations.joined([])
    return probe.fingerprint.apart(probe.expected[: len(rows)], rows)
