"""The branches and iteration counts that a run took, for specialising a model to them."""

from __future__ import annotations

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, LoopRegion
from loopscope.executor.record.recording import LoopTable
from loopscope.transform.specialise.taken_paths import TakenPaths


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
