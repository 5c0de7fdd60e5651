"""One execution of a forward loop beside that of its backward loop, which computes its
gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopscope.debug.lookup import must_have_begun
from loopscope.debug.run import Run, expect_run
from loopscope.errors import AddressError, ValueUnavailable
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion
from loopscope.explain.adjoint_pairs import RegionPair, ties
from loopscope.ir.address import Address


@dataclass(frozen=True, slots=True, eq=False)
class PairedExecutions:
    """In rows of the graphs that hold the two loops, and in rows of their bodies."""

    tie: RegionPair
    home: int
    """Row of the graph of the forward loop."""
    row: int
    """Row of the graph of the backward loop."""
    forward: range
    """Rows of the forward body: its iterations in order."""
    backward: range
    """Rows of the backward body so far: the last iteration first."""

    def addresses(self, run: Run) -> tuple[str, str]:
        """Of the forward and the backward loop, with the iterations of the loops around."""
        pairs = (
            (self.tie.home, self.home, self.tie.forward),
            (self.tie.program, self.row, self.tie.backward),
        )
        forward, backward = (
            f"{run.timeline.address(graph, row)}/{loop.label}" for graph, row, loop in pairs
        )
        return forward, backward


def passes_in(run: Run, tie: RegionPair, row: int) -> PairedExecutions:
    """The execution of a backward loop in a row of its graph."""
    assert tie.loops is not None
    home = forward_row(run, tie, row)
    rows = (
        run.timeline.executions.rows_of(loop, at)
        for loop, at in zip(tie.loops, (home, row), strict=True)
    )
    return PairedExecutions(tie, home, row, *(range(*one) for one in rows))


def passes_of(run: Run, address: str) -> PairedExecutions:
    """Those that a loop at an address belongs to, as the forward or as the backward one; iterations
    that it leaves out are the cursor's.

    ``AddressError`` when the loop neither walks another one back nor is walked back,
    ``ValueUnavailable`` when the backward loop has not begun.
    """
    expect_run(run, "loopscope.adjoints")
    parsed = Address.parse(address)
    tie = next(
        (
            one
            for one in ties(run.plan)
            if parsed.static in (one.backward_address, one.forward_address) and one.loops
        ),
        None,
    )
    if tie is None:
        raise AddressError(f"{address} is no loop that is walked back, and walks none back")
    program, row = run.rows_of(parsed)
    if parsed.static == tie.forward_address:
        must_have_begun(run.timeline, program, row, program.instructions.index(tie.forward))
        row = backward_row(run, tie, row)
    must_have_begun(run.timeline, tie.program, row, tie.program.instructions.index(tie.backward))
    return passes_in(run, tie, row)


def forward_row(run: Run, tie: RegionPair, row: int) -> int:
    """The row of the graph of a forward loop or If that a row of the graph of the backward one
    walks back.
    """
    if tie.home is tie.program:
        return row
    around = _around(run, tie)
    outer, iteration = run.timeline.executions.parent_row(tie.program, row)
    return _inside(run, around.forward, forward_row(run, around, outer), iteration)


def backward_row(run: Run, tie: RegionPair, row: int) -> int:
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
            raise ValueUnavailable(
                f"{around.forward_address} has not been walked back as far as iteration {iteration} yet"
            )
        return back + end - first - 1 - iteration
    return _inside(run, around.backward, home, None)


def _around(run: Run, tie: RegionPair) -> RegionPair:
    return next(
        one
        for one in ties(run.plan)
        if one.backward.region is not None and tie.program in one.backward.region.programs
    )


def _inside(run: Run, instruction: Instruction, row: int, iteration: int | None) -> int:
    """The row of a body: of a loop in so many iterations before the last, of an If in the branch
    that ran.
    """
    match instruction.region:
        case LoopRegion() as region:
            assert iteration is not None
            return run.timeline.executions.rows_of(region, row)[1] - 1 - iteration
        case IfRegion() as region:
            return run.timeline.executions.branch(region, row)[1]
        case _:
            raise ValueUnavailable(f"{instruction.label} has no body that is walked back")
