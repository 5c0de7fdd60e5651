"""Counters of loops and branches in each lane: executions, iterations and endings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_MAX_COUNT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class LoopTally:
    """Counters of one loop, by lane."""

    executions: np.ndarray
    total: np.ndarray
    """Number of iterations of all executions."""
    minimum: np.ndarray
    maximum: np.ndarray
    endings: np.ndarray
    """A bit for each ending that occurred, by its number in ``ENDINGS``."""
    margins: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Sum, minimum and maximum of the margins of executions that a condition ended; NaN without
    one.
    """

    @staticmethod
    def of(lanes: int) -> LoopTally:
        """Return the counters before anything has run."""
        executions, total, maximum, endings = (np.zeros(lanes, np.int64) for _ in range(4))
        return LoopTally(
            executions,
            total,
            np.full(lanes, _MAX_COUNT),
            maximum,
            endings,
            (np.full(lanes, np.nan), np.full(lanes, np.nan), np.full(lanes, np.nan)),
        )

    def add(self, lanes: np.ndarray, counts: np.ndarray, endings: np.ndarray) -> None:
        """Count an execution in each of some lanes."""
        self.executions[lanes] += 1
        self.total[lanes] += counts
        self.minimum[lanes] = np.minimum(self.minimum[lanes], counts)
        self.maximum[lanes] = np.maximum(self.maximum[lanes], counts)
        self.endings[lanes] |= 1 << endings

    def narrow(self, lanes: np.ndarray, distances: np.ndarray) -> None:
        """Record the margin by which a condition ended an execution in each of some lanes; NaN if
        none did.
        """
        total, minimum, maximum = self.margins
        total[lanes] = np.where(
            np.isnan(distances), total[lanes], np.nan_to_num(total[lanes]) + distances
        )
        minimum[lanes] = np.fmin(minimum[lanes], distances)
        maximum[lanes] = np.fmax(maximum[lanes], distances)


@dataclass(frozen=True, slots=True, eq=False)
class BranchTally:
    """Counters of one If, by lane: executions of each branch."""

    then: np.ndarray
    otherwise: np.ndarray

    @staticmethod
    def of(lanes: int) -> BranchTally:
        """Return the counters before anything has run."""
        return BranchTally(np.zeros(lanes, np.int64), np.zeros(lanes, np.int64))
