"""The branch history: which branch an If took at each of its executions, over all nested
iterations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, Program
from loopscope.explain.pattern import region_at


@dataclass(frozen=True, eq=False)
class BranchHistory:
    """All executions of one If, in the order in which they ran."""

    static: str
    taken: np.ndarray
    """uint8, one entry for each execution: 1 then, 0 else."""
    run: Run
    program: Program
    """The graph that holds the If; execution k ran in its row k."""

    @property
    def counts(self) -> tuple[int, int]:
        """How often then and else ran."""
        then = int(self.taken.sum())
        return then, len(self.taken) - then

    @property
    def never(self) -> tuple[str, ...]:
        """The branches that never ran, though the If did."""
        if not len(self.taken):
            return ()
        return tuple(
            name for name, count in zip(("then", "else"), self.counts, strict=True) if count == 0
        )

    @property
    def changes(self) -> np.ndarray:
        """Numbers of the executions whose branch differs from that of the one before."""
        return np.flatnonzero(np.diff(self.taken)) + 1

    def address(self, execution: int) -> str:
        """The address of one execution."""
        return (
            f"{self.run.timeline.address(self.program, execution)}/{self.static.rpartition('/')[2]}"
        )


def branch_history(run: Run, static: str) -> BranchHistory:
    """The branch history of the If at a static address; ``ValueError`` when there is none."""
    program, instruction = region_at(run.plan, static)
    if not isinstance(instruction.region, IfRegion):
        raise ValueError(f"{static} is not an If")
    taken, _ = run.timeline.executions.branch_rows(instruction.region)
    return BranchHistory(static, taken, run, program)
