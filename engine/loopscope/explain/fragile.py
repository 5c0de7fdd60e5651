"""Decisions of a run that a narrower type would turn: ends and continuations of loops, and
branches, that floats decided narrowly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loopscope.debug.run import Run
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.explain.margin import Margin
from loopscope.explain.proof import prove
from loopscope.explain.verdict import narrowest
from loopscope.ir.readable import readable

MOST_LOOKED_AT = 500
"""Decisions, so that a long run takes no longer."""


@dataclass(frozen=True, slots=True)
class FragileDecision:
    """One that floats decided narrowly."""

    address: str
    """Of the execution that was decided: ``main/loop[7]`` for whether iteration 7 is followed by
    another, ``main/loop[7]/body/if``.
    """
    step: int
    """After which it was decided."""
    margin: Margin

    @property
    def is_loop(self) -> bool:
        """Whether it decided that a loop goes on, or ends."""
        return self.address.endswith("]")

    @property
    def sentence(self) -> str:
        """What was decided, and in which types it would come out otherwise."""
        what = (
            f"Whether {readable(self.address)} is followed by another"
            if self.is_loop
            else f"The branch of {readable(self.address)}"
        )
        return self.margin.sentence.replace("That", what, 1)


def fragile(run: Run, most: int = MOST_LOOKED_AT) -> tuple[FragileDecision, ...]:
    """The fragile decisions among the first ``most`` that compare floats, in the order of the
    graphs.

    A region whose first decision compares no finite floats is not looked at further.
    """
    found: list[FragileDecision] = []
    for program in run.plan.programs:
        for number in program.regions:
            region = program.instructions[number].region
            for decided in _decisions(run, program, number, region):
                if most <= 0:
                    return tuple(found)
                most -= 1
                margin = narrowest(prove(run, *decided.asked))
                if margin is None:
                    break
                if margin.otherwise:
                    found.append(FragileDecision(decided.address(run), decided.step(run), margin))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A condition in one row of its graph."""

    program: Program
    row: int
    slot: Slot
    label: str
    """Of the If; empty for the condition of a loop's body."""
    position: int

    @property
    def asked(self) -> tuple[Program, int, Slot]:
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
