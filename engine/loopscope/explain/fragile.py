"""Fragile decisions of a run: endings of loops and branches that a narrower type would change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.facts import Margin
from loopscope.explain.proof import prove
from loopscope.explain.verdict import narrowest
from loopscope.ir.readable import readable

MOST_LOOKED_AT = 500
"""Maximum number of decisions that are checked, to bound the time for long runs."""


@dataclass(frozen=True, slots=True)
class FragileDecision:
    """A decision by a narrow comparison of floats."""

    address: str
    """Address of the decided execution.

    ``main/loop[7]``: whether another iteration follows iteration 7. ``main/loop[7]/body/if``: the
    branch.
    """
    step: int
    """Step after which the decision was made."""
    margin: Margin

    @property
    def is_loop(self) -> bool:
        """True if the decision was to continue or end a loop."""
        return self.address.endswith("]")

    @property
    def sentence(self) -> str:
        """Description of the decision and of the types that would change it."""
        subject = (
            f"Whether {readable(self.address)} is followed by another"
            if self.is_loop
            else f"The branch of {readable(self.address)}"
        )
        return self.margin.sentence.replace("That", subject, 1)


def fragile(run: Run, limit: int = MOST_LOOKED_AT) -> tuple[FragileDecision, ...]:
    """Return the fragile decisions among the first ``limit`` float comparisons, in the order of the
    graphs.

    A region is skipped if its first decision compares no finite floats.
    """
    decisions: list[FragileDecision] = []
    for program in run.plan.programs:
        for number in program.regions:
            region = program.instructions[number].region
            for candidate in _decisions(run, program, number, region):
                if limit <= 0:
                    return tuple(decisions)
                limit -= 1
                margin = narrowest(prove(run, *candidate.condition))
                if margin is None:
                    break
                if margin.otherwise:
                    decisions.append(
                        FragileDecision(candidate.address(run), candidate.step(run), margin)
                    )
    return tuple(decisions)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A condition in one row of its graph."""

    program: Program
    row: int
    slot: Slot
    label: str
    """Label of the If; empty for the condition of a loop's body."""
    position: int

    @property
    def condition(self) -> tuple[Program, int, Slot]:
        return self.program, self.row, self.slot

    def address(self, run: Run) -> str:
        graph = run.timeline.address(self.program, self.row)
        return f"{graph}/{self.label}" if self.label else graph.rpartition("/")[0]

    def step(self, run: Run) -> int:
        return run.timeline.step_at(self.program, self.row, self.position)


def _decisions(run: Run, program: Program, number: int, region: object) -> Iterator[_Decision]:
    rows = run.timeline.executions.rows
    match region:
        case LoopRegion(condition_result=slot, program=body) if slot is not None:
            for row in range(rows[body.index]):
                yield _Decision(body, row, slot, "", len(body.instructions))
        case IfRegion(condition=slot):
            for row in range(len(run.timeline.executions.taken(region))):
                yield _Decision(program, row, slot, program.instructions[number].label, number)
        case _:
            return
