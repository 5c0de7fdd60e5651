"""Rows of a runtime's values, aligned with the rows of our run."""

from __future__ import annotations

import math

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.peers.probes import Probe


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
