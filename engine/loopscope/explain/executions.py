"""Executions of the loops and Ifs of a model: number, addresses, iterations, branches taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import (
    CallRegion,
    IfRegion,
    LoopRegion,
    Program,
    Region,
    RegionKind,
)
from loopscope.executor.record.recording import LoopTable
from loopscope.explain.pattern import region_at
from loopscope.transform.specialise.known_facts import TakenPaths


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


def taken_paths(run: Run) -> TakenPaths:
    """Return each branch and iteration count that was the same in all executions of a run.

    An If or loop that did not run has none.
    """
    branches: dict[str, bool] = {}
    counts: dict[str, int] = {}
    varying: set[str] = set()
    for program in run.plan.programs:
        for instruction in program.instructions:
            address = f"{program.address}/{instruction.label}"
            region = instruction.region
            if isinstance(region, IfRegion):
                taken = {*run.timeline.executions.branch_rows(region)[0].tolist()}
                if len(taken) == 1:
                    branches[address] = bool(taken.pop())
                elif taken:
                    varying.add(address)
            elif isinstance(region, LoopRegion):
                table = run.timeline.machine.recording.tables[region.table]
                iterations = {*table.counts} if isinstance(table, LoopTable) else set()
                if len(iterations) == 1:
                    counts[address] = iterations.pop()
                elif iterations:
                    varying.add(address)
    return TakenPaths(1, branches, counts, frozenset(varying))
