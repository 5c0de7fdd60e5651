"""One execution of a forward loop beside the one of the loop that walks it back."""

from __future__ import annotations

from dataclasses import dataclass

from engine.debug.run import Run
from engine.errors import ValueUnavailable
from engine.explain.ties import Tie, ties
from engine.run.plan.plan import IfRegion, Instruction, LoopRegion


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """In rows of the graphs that hold the two loops, and in rows of their bodies."""

    tie: Tie
    home: int
    """Row of the graph of the forward loop."""
    row: int
    """Row of the graph of the backward loop."""
    forward: range
    """Rows of the forward body: its iterations in order."""
    backward: range
    """Rows of the backward body so far: the last iteration first."""


def forward_row(run: Run, tie: Tie, row: int) -> int:
    """The row of the graph of a forward loop or If that a row of the graph of the backward one walks back."""
    if tie.home is tie.program:
        return row
    around = _around(run, tie)
    outer, iteration = run.timeline.executions.parent_row(tie.program, row)
    return _inside(run, around.forward, forward_row(run, around, outer), iteration)


def backward_row(run: Run, tie: Tie, row: int) -> int:
    """The other way round; ``ValueUnavailable`` when that one has not begun."""
    if tie.home is tie.program:
        return row
    around = _around(run, tie)
    outer, iteration = run.timeline.executions.parent_row(tie.home, row)
    home = backward_row(run, around, outer)
    if around.loops is not None:
        first, end = run.timeline.executions.rows_of(around.loops[0], outer)
        assert iteration is not None
        back, stop = run.timeline.executions.rows_of(around.loops[1], home)
        if back + end - first - 1 - iteration >= stop:
            raise ValueUnavailable(f"{around.forward_address} has not been walked back as far as iteration {iteration} yet")
        return back + end - first - 1 - iteration
    return _inside(run, around.backward, home, None)


def _around(run: Run, tie: Tie) -> Tie:
    return next(one for one in ties(run.plan) if one.backward.region is not None and tie.program in one.backward.region.programs)


def _inside(run: Run, instruction: Instruction, row: int, iteration: int | None) -> int:
    """The row of a body: of a loop in so many iterations before the last, of an If in the branch that ran."""
    match instruction.region:
        case LoopRegion() as region:
            assert iteration is not None
            return run.timeline.executions.rows_of(region, row)[1] - 1 - iteration
        case IfRegion() as region:
            return run.timeline.executions.branch(region, row)[1]
        case _:
            raise ValueUnavailable(f"{instruction.label} has no body that is walked back")
