"""What a runtime gave for a value in all iterations, row by row beside ours."""

from __future__ import annotations

import math

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.peers.probes import Probe


def rows_of(probe: Probe, there: np.ndarray) -> np.ndarray | None:
    """What the runtime gave for the rows of a probe that both have; None where the shapes
    differ.
    """
    lengths = there.shape[: len(probe.lengths)]
    rows = there.reshape(math.prod(lengths), *there.shape[len(lengths) :])
    if rows.shape[1:] != probe.expected.shape[1:] or lengths[1:] != probe.lengths[1:]:
        return None
    count = int(np.searchsorted(probe.places, len(rows)))
    if count and probe.places[count - 1] == count - 1:  # all of them: no copy
        return rows[:count]
    return np.asarray(rows[probe.places[:count]])


def estimate(probe: Probe, there: np.ndarray) -> Deviations:
    """How far a runtime's values are apart by their fingerprints, in the rows that both have."""
    rows = rows_of(probe, there)
    if rows is None or probe.fingerprint is None:
        return Deviations.joined([])
    return probe.fingerprint.apart(probe.expected[: len(rows)], rows)
