"""The branch log: which branch each execution of an If took. Generated code writes down only the
rarer one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

_MOST_ITERATIONS = 1 << 14
_LOOKED_BACK = 1024


@dataclass(eq=False)
class BranchLog:
    """The branch of each execution of one If: 1 then, 0 else.

    Generated code appends to ``pending`` a branch for each execution; or, where the If lies in the
    body of a loop itself and so runs once in each iteration, to ``iterations`` only the iterations
    in which the rarer branch ran.
    """

    pending: list[int] = field(default_factory=list[int])
    """The newest; appending to a list is the fastest there is."""
    iterations: list[int] = field(default_factory=list[int])
    """The newest iterations, from 0 on, in which the ``logged`` branch ran; after each execution
    of the loop the negative of its count.
    """
    logged: int = 0
    _caught_up: int = 0
    """Of the execution of the loop that the first of them belongs to: how many of its iterations
    are packed.
    """
    _packed: bytearray = field(default_factory=bytearray)

    @staticmethod
    def of(branches: bytes) -> BranchLog:
        """That of executions which have all been packed, one byte for each."""
        log = BranchLog()
        log._packed += branches
        return log

    @property
    def branches(self) -> bytearray:
        """One byte for each execution, without those of a loop that generated code is in."""
        self.pack()
        return self._packed

    @property
    def rarer(self) -> int:
        """The branch that was taken less often of late."""
        latest = self.branches[-_LOOKED_BACK:]
        return int(2 * sum(latest) < len(latest))

    def pack(self) -> None:
        """Turns the newest into bytes, which take an eighth of the room."""
        self._packed += bytearray(self.pending)
        self.pending.clear()
        complete = len(self.iterations)
        while complete and self.iterations[complete - 1] >= 0:
            complete -= 1
        if complete:
            self._packed += self._unfolded(np.array(self.iterations[:complete], np.int64))
            del self.iterations[:complete]
            self._caught_up = 0

    def begin(self, branch: int, iteration: int) -> None:
        """Generated code begins at an iteration of the loop, and writes down one branch from now
        on.
        """
        self.pack()
        self.logged, self._caught_up = branch, iteration

    def end(self, count: int) -> None:
        """The loop has ended after so many iterations."""
        self.iterations.append(-count)

    def catch_up(self, executions: int) -> None:
        """In the execution of the loop that is under way, the If ran so often."""
        self.pack()
        if executions > self._caught_up:
            self.end(executions)
            self.pack()
        self._caught_up = executions

    @property
    def is_long(self) -> bool:
        """Whether so much is not packed that packing it is worth while."""
        return len(self.pending) + len(self.iterations) > _MOST_ITERATIONS

    def _unfolded(self, iterations: np.ndarray) -> bytes:
        """A byte for each execution that ``iterations`` encodes; its last entry is a count,
        which is negative.
        """
        is_count = iterations < 0
        starts = np.concatenate([[0], np.cumsum(-iterations[is_count])]) - self._caught_up
        taken = np.full(int(starts[-1]), 1 - self.logged, np.uint8)
        executions = np.cumsum(is_count)[~is_count]
        taken[starts[executions] + iterations[~is_count]] = self.logged
        return taken.tobytes()
