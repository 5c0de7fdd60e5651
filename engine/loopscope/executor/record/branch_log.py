"""Branch log: the branch of each execution of an If. Generated code logs only the rarer branch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

_MAX_UNPACKED = 1 << 14
_RECENT_EXECUTIONS = 1024


@dataclass(eq=False)
class BranchLog:
    """Branch of each execution of one If: 1 then, 0 else.

    Generated code appends the branch of each execution to ``pending``. An If that runs once in each
    iteration of a loop is logged in ``iterations``, with only the iterations of the rarer branch.
    """

    pending: list[int] = field(default_factory=list[int])
    """Newest branches, in a list because appending to a list is fastest."""
    iterations: list[int] = field(default_factory=list[int])
    """Newest iterations in which the ``logged`` branch ran. The negative iteration count ends each
    execution of the loop.
    """
    logged: int = 0
    _caught_up: int = 0
    """Number of packed iterations of the loop execution that the first of ``iterations`` belongs
    to.
    """
    _packed: bytearray = field(default_factory=bytearray)

    @staticmethod
    def of(branches: bytes) -> BranchLog:
        """Return the log of packed executions, one byte for each."""
        log = BranchLog()
        log._packed += branches
        return log

    @property
    def branches(self) -> bytearray:
        """One byte for each execution, without those of a loop that generated code is running."""
        self.pack()
        return self._packed

    @property
    def rarer(self) -> int:
        """The branch that was taken less often in recent executions."""
        latest = self.branches[-_RECENT_EXECUTIONS:]
        return int(2 * sum(latest) < len(latest))

    def pack(self) -> None:
        """Pack the newest entries into bytes, an eighth of their size."""
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
        """Begin logging one branch in generated code, at an iteration of the loop."""
        self.pack()
        self.logged, self._caught_up = branch, iteration

    def end(self, count: int) -> None:
        """End an execution of the loop after ``count`` iterations."""
        self.iterations.append(-count)

    def catch_up(self, executions: int) -> None:
        """Set the number of executions of the If in the current execution of the loop."""
        self.pack()
        if executions > self._caught_up:
            self.end(executions)
            self.pack()
        self._caught_up = executions

    @property
    def is_long(self) -> bool:
        """True if enough entries are pending to pack them."""
        return len(self.pending) + len(self.iterations) > _MAX_UNPACKED

    def _unfolded(self, iterations: np.ndarray) -> bytes:
        """Return a byte for each execution that ``iterations`` encodes. Its last entry is a
        negative count.
        """
        is_count = iterations < 0
        starts = np.concatenate([[0], np.cumsum(-iterations[is_count])]) - self._caught_up
        branches = np.full(int(starts[-1]), 1 - self.logged, np.uint8)
        executions = np.cumsum(is_count)[~is_count]
        branches[starts[executions] + iterations[~is_count]] = self.logged
        return branches.tobytes()
