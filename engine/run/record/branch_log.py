"""The branches that the executions of one If took, and how generated code writes them down without a word for most of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

_MOST_NOTES = 1 << 14
_LOOKED_BACK = 1024


@dataclass(eq=False)
class BranchLog:
    """The branch of each execution of one If: 1 then, 0 else.

    Generated code appends to ``pending`` a branch for each execution; or, where the If lies in the body of a loop itself and so runs once
    in each iteration, to ``notes`` only the iterations in which the rarer branch ran.
    """

    pending: list[int] = field(default_factory=list[int])
    """The newest; appending to a list is the fastest there is."""
    notes: list[int] = field(default_factory=list[int])
    """The newest iterations, from 0 on, in which the ``noted`` branch ran; after each execution of the loop the negative of its count."""
    noted: int = 0
    _told: int = 0
    """Of the execution of the loop that the first note belongs to: how many of its iterations are packed."""
    _packed: bytearray = field(default_factory=bytearray)

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
        complete = len(self.notes)
        while complete and self.notes[complete - 1] >= 0:
            complete -= 1
        if complete:
            self._packed += self._unfolded(np.array(self.notes[:complete], np.int64))
            del self.notes[:complete]
            self._told = 0

    def note(self, branch: int, iteration: int) -> None:
        """Generated code begins at an iteration of the loop, and notes one branch from now on."""
        self.pack()
        self.noted, self._told = branch, iteration

    def end(self, count: int) -> None:
        """The loop has ended after so many iterations."""
        self.notes.append(-count)

    def tell(self, executions: int) -> None:
        """In the execution of the loop that is under way, the If ran so often."""
        self.pack()
        if executions > self._told:
            self.end(executions)
            self.pack()
        self._told = executions

    @property
    def is_long(self) -> bool:
        """Whether so much is not packed that packing it is worth while."""
        return len(self.pending) + len(self.notes) > _MOST_NOTES

    def _unfolded(self, notes: np.ndarray) -> bytes:
        """A byte for each execution that the notes tell of, which end with a count."""
        is_count = notes < 0
        starts = np.concatenate([[0], np.cumsum(-notes[is_count])]) - self._told
        taken = np.full(int(starts[-1]), 1 - self.noted, np.uint8)
        executions = np.cumsum(is_count)[~is_count]
        taken[starts[executions] + notes[~is_count]] = self.noted
        return taken.tobytes()
