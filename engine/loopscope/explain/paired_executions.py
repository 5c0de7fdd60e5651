"""Execution of a forward loop paired with the execution of its backward loop, which computes the
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
    """Rows of the two loops and of their bodies."""

    tie: RegionPair
    forward_row: int
    """Row of the graph of the forward loop."""
    row: int
    """Row of the graph of the backward loop."""
    forward: range
    """Rows of the forward body: its iterations in order."""
    backward: range
    """Rows of the backward body so far, last iteration first."""

    def addresses(self, run: Run) -> tuple[str, str]:
        """Return the addresses of the forward and the backward loop, including enclosing
        iterations.
        """
        pairs = (
            (self.tie.forward_program, self.forward_row, self.tie.forward),
            (self.tie.program, self.row, self.tie.backward),
        )
        forward, backward = (
            f"{run.timeline.address(graph, row)}/{loop.label}" for graph, row, loop in pairs
        )
        return forward, backward


def passes_in(run: Run, tie: RegionPair, row: int) -> PairedExecutions:
    """Return the paired executions of a backward loop in a row of its graph."""
    assert tie.loops is not None
    home = forward_row(run, tie, row)
    rows = (
        run.timeline.executions.rows_of(loop, outer_row)
        for loop, outer_row in zip(tie.loops, (home, row), strict=True)
    )
    return PairedExecutions(tie, home, row, *(range(*bounds) for bounds in rows))


def passes_of(run: Run, address: str) -> PairedExecutions:
    """Return the paired executions of the forward or backward loop at an address.

    Omitted iterations are those at the cursor. Raise ``AddressError`` if the loop is not part of a
    forward/backward pair, ``ValueUnavailable`` before the backward loop begins.
    """
    expect_run(run, "loopscope.adjoints")
    parsed = Address.parse(address)
    tie = next(
        (
            pair
            for pair in ties(run.plan)
            if parsed.static in (pair.backward_address, pair.forward_address) and pair.loops
        ),
        None,
    )
    if tie is None:
        raise AddressError(f"{address} is not part of a forward/backward loop pair")
    program, row = run.rows_of(parsed)
    if parsed.static == tie.forward_address:
        must_have_begun(run.timeline, program, row, program.instructions.index(tie.forward))
        row = backward_row(run, tie, row)
    must_have_begun(run.timeline, tie.program, row, tie.program.instructions.index(tie.backward))
    return passes_in(run, tie, row)


def forward_row(run: Run, tie: RegionPair, row: int) -> int:
    """Return the row of the forward region's graph that a row of the backward region's graph walks
    back.
    """
    if tie.forward_program is tie.program:
        return row
    outer_pair = _enclosing_pair(run, tie)
    outer, iteration = run.timeline.executions.parent_row(tie.program, row)
    return _body_row(run, outer_pair.forward, forward_row(run, outer_pair, outer), iteration)


def backward_row(run: Run, tie: RegionPair, row: int) -> int:
    """Return the row of the backward region's graph that walks back a row of the forward region's
    graph.

    Raise ``ValueUnavailable`` if it did not begin.
    """
    if tie.forward_program is tie.program:
        return row
    outer_pair = _enclosing_pair(run, tie)
    outer, iteration = run.timeline.executions.parent_row(tie.forward_program, row)
    home = backward_row(run, outer_pair, outer)
    if outer_pair.loops is not None:
        first, end = run.timeline.executions.rows_of(outer_pair.loops[0], outer)
        assert iteration is not None
        back, stop = run.timeline.executions.rows_of(outer_pair.loops[1], home)
        if back + end - first - 1 - iteration >= stop:
            raise ValueUnavailable(
                f"{outer_pair.forward_address} has no gradient as far as iteration {iteration} yet"
            )
        return back + end - first - 1 - iteration
    return _body_row(run, outer_pair.backward, home, None)


def _enclosing_pair(run: Run, tie: RegionPair) -> RegionPair:
    return next(
        pair
        for pair in ties(run.plan)
        if pair.backward.region is not None and tie.program in pair.backward.region.programs
    )


def _body_row(run: Run, instruction: Instruction, row: int, iteration: int | None) -> int:
    """Return the row of a body: ``iteration`` counted back from a loop's last, or the branch that
    an If took.
    """
    match instruction.region:
        case LoopRegion() as region:
            assert iteration is not None
            return run.timeline.executions.rows_of(region, row)[1] - 1 - iteration
        case IfRegion() as region:
            return run.timeline.executions.branch(region, row)[1]
        case _:
            raise ValueUnavailable(f"{instruction.label} has no body with a gradient")
