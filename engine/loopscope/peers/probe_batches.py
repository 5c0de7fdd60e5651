"""Batches of values requested from a runtime, whose process holds all requested values at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil

from loopscope.executor.plan.plan import Program
from loopscope.peers.probes import ProbeCandidate

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
