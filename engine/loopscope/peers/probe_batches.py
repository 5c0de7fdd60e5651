"""Which values a runtime is asked for at a time: it holds all that it is asked for at once,
beside the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil

from loopscope.executor.plan.plan import Program
from loopscope.peers.probes import ProbeCandidate

_MOST_AT_ONCE = 128 * 2**20
"""Bytes that a part may take of the runtime's process."""
_FOR_EACH, _FOR_EACH_BYTE = 1 << 17, 3
"""What a value takes there, about: its operations compiled, and its bytes in a buffer that grows
by doubling.
"""


def portions(candidates: Sequence[ProbeCandidate]) -> Iterator[tuple[ProbeCandidate, ...]]:
    """In the order of the run, few parts of about the same size; one where all values together are
    small.

    What is in one loop or If of the outermost graph is never divided.
    """
    ordered = sorted(candidates, key=_outer_position)
    together = [tuple(some) for _, some in groupby(ordered, key=_outer_position)]
    sizes = [sum(_FOR_EACH + _FOR_EACH_BYTE * one.given_bytes for one in some) for some in together]
    wanted = sum(sizes) / max(1, ceil(sum(sizes) / _MOST_AT_ONCE))
    part: list[ProbeCandidate] = []
    filled = 0
    for some, size in zip(together, sizes, strict=True):
        if part and filled + size / 2 > wanted:
            yield tuple(part)
            part, filled = [], 0
        part += some
        filled += size
    if part:
        yield tuple(part)


def _outer_position(one: ProbeCandidate) -> int:
    """Number of the instruction of the outermost graph that computes a value, or holds the loop
    or If that does.
    """
    program: Program = one.program
    position = one.position
    while program.parent is not None:
        program, position = program.parent, program.owner
    return position
