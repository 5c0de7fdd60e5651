"""How often each loop and If of a model ran, the address of each time, and the branches that an
If took.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import CallRegion, IfRegion, Program, Region, RegionKind


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionHistory:
    """All executions of one loop or If, in the order in which they ran."""

    static: str
    """Address without iterations."""
    kind: RegionKind
    count: int
    run: Run
    program: Program
    """The graph that holds it; execution k ran in its row k."""
    region: Region

    def address(self, execution: int) -> str:
        """The address of one execution, such as ``main/outer[2]/body/inner``."""
        return (
            f"{self.run.timeline.address(self.program, execution)}/{self.static.rpartition('/')[2]}"
        )

    def tape(self) -> Iterator[tuple[str, int]]:
        """The branches of an If, each with how many executions took it one after another;
        nothing for a loop.
        """
        if isinstance(self.region, IfRegion):
            taken, _ = self.run.timeline.executions.branch_rows(self.region)
            for branch, group in groupby(taken[: self.count].tolist()):
                yield "then" if branch else "else", sum(1 for _ in group)


def executions(run: Run) -> Iterator[ExecutionHistory]:
    """Every loop and If of the model, an outer one before those inside it; also those that did
    not run.
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
    """How many times each operation ran, by static address; 0 for those that did not."""
    executions = run.timeline.executions
    return {
        f"{program.address}/{instruction.label}": float(executions.calls(program, number))
        for program in run.plan.programs
        for number, instruction in enumerate(program.instructions)
    }
