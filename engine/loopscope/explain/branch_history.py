"""Branch history: the branch that an If took at each execution, over all nested iterations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, Program
from loopscope.explain.pattern import region_at


@dataclass(frozen=True, eq=False)
class BranchHistory:
    """All executions of one If in execution order."""

    static: str
    taken: np.ndarray
    """Branch of each execution (uint8): 1 then, 0 else."""
    run: Run
    program: Program
    """Graph of the If; execution k ran in its row k."""

    @property
    def counts(self) -> tuple[int, int]:
        """Number of executions of then and of else."""
        then = int(self.taken.sum())
        return then, len(self.taken) - then

    @property
    def never(self) -> tuple[str, ...]:
        """Branches that never ran although the If did."""
        if not len(self.taken):
            return ()
        return tuple(
            name for name, count in zip(("then", "else"), self.counts, strict=True) if count == 0
        )

    @property
    def changes(self) -> np.ndarray:
        """Numbers of the executions whose branch differs from the previous execution."""
        return np.flatnonzero(np.diff(self.taken)) + 1

    def address(self, execution: int) -> str:
        """Return the address of one execution."""
        return (
            f"{self.run.timeline.address(self.program, execution)}/{self.static.rpartition('/')[2]}"
        )


def branch_history(run: Run, static: str) -> BranchHistory:
    """Return the branch history of the If at a static address; raise ``ValueError`` if there is
    none.
    """
    program, instruction = region_at(run.plan, static)
    if not isinstance(instruction.region, IfRegion):
        raise ValueError(f"{static} is not an If")
    taken, _ = run.timeline.executions.branch_rows(instruction.region)
    return BranchHistory(static, taken, run, program)
