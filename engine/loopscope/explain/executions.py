"""Executions of each loop and If of a model: their number, their addresses, and the branches
taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import CallRegion, IfRegion, Program, Region, RegionKind


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionHistory:
    """All executions of a loop or If in execution order."""

    static: str
    """Address without iterations."""
    kind: RegionKind
    count: int
    run: Run
    program: Program
    """Graph of the loop or If; execution k ran in its row k."""
    region: Region

    def address(self, execution: int) -> str:
        """Return the address of one execution, such as ``main/outer[2]/body/inner``."""
        return (
            f"{self.run.timeline.address(self.program, execution)}/{self.static.rpartition('/')[2]}"
        )

    def tape(self) -> Iterator[tuple[str, int]]:
        """Yield each run of equal branches of an If with its length; nothing for a loop."""
        if isinstance(self.region, IfRegion):
            branches, _ = self.run.timeline.executions.branch_rows(self.region)
            for branch, group in groupby(branches[: self.count].tolist()):
                yield "then" if branch else "else", sum(1 for _ in group)


def executions(run: Run) -> Iterator[ExecutionHistory]:
    """Yield every loop and If of the model, outer before inner, including those that did not
    run.
    """
    for program in run.plan.programs:
        for number in program.regions:
            instruction = program.instructions[number]
            region = instruction.region
            if region is None or isinstance(region, CallRegion):
                continue
            count = run.timeline.executions.calls(program, number)
            yield ExecutionHistory(
                f"{program.address}/{instruction.label}", region.kind, count, run, program, region
            )


def how_often(run: Run) -> dict[str, float]:
    """Return the execution count of each operation by static address, 0 if it did not run."""
    executions = run.timeline.executions
    return {
        f"{program.address}/{instruction.label}": float(executions.calls(program, number))
        for program in run.plan.programs
        for number, instruction in enumerate(program.instructions)
    }
