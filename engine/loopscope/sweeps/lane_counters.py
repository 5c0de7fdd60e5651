"""How often each loop and branch ran in each lane, and how the loops ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_ANY_COUNT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class LoopTally:
    """Of one loop, by lane."""

    executions: np.ndarray
    total: np.ndarray
    """Iterations of all executions."""
    least: np.ndarray
    most: np.ndarray
    endings: np.ndarray
    """A bit for each ending that an execution had, by its number in ``ENDINGS``."""
    margins: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Sum, least and most of the executions that a condition ended narrowly; NaN where none was."""

    @staticmethod
    def of(lanes: int) -> LoopTally:
        """Nothing has run."""
        executions, total, most, endings = (np.zeros(lanes, np.int64) for _ in range(4))
        return LoopTally(
            executions,
            total,
            np.full(lanes, _ANY_COUNT),
            most,
            endings,
            (np.full(lanes, np.nan), np.full(lanes, np.nan), np.full(lanes, np.nan)),
        )

    def add(self, lanes: np.ndarray, counts: np.ndarray, endings: np.ndarray) -> None:
        """An execution in each of some lanes."""
        self.executions[lanes] += 1
        self.total[lanes] += counts
        self.least[lanes] = np.minimum(self.least[lanes], counts)
        self.most[lanes] = np.maximum(self.most[lanes], counts)
        self.endings[lanes] |= 1 << endings

    def narrow(self, lanes: np.ndarray, distances: np.ndarray) -> None:
        """How narrowly a condition ended an execution in each of some lanes; NaN where it did
        not.
        """
        total, least, most = self.margins
        total[lanes] = np.where(
            np.isnan(distances), total[lanes], np.nan_to_num(total[lanes]) + distances
        )
        least[lanes] = np.fmin(least[lanes], distances)
        most[lanes] = np.fmax(most[lanes], distances)


@dataclass(frozen=True, slots=True, eq=False)
class BranchTally:
    """Of one If, by lane: how often each branch was taken."""

    then: np.ndarray
    otherwise: np.ndarray

    @staticmethod
    def of(lanes: int) -> BranchTally:
        """Nothing has run."""
        return BranchTally(np.zeros(lanes, np.int64), np.zeros(lanes, np.int64))
