"""Timeline tracks of a run: the whole run, and one track for each of the innermost open nested
loops.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import LoopRegion, Program
from loopscope.ir.address import decode
from loopscope.timeline.timeline import Level

MOST_TICKS = 60
MOST_LOOPS = 3
"""Largest number of nested loops with a track, so that there is room for the picture."""


@dataclass(frozen=True, slots=True)
class Track:
    """A part of the run as a timeline. On a nested loop's track, outer iterations are those of the
    cursor.
    """

    title: str
    first: int
    last: int
    """First and last step."""
    ticks: tuple[int, ...]
    """Steps at which iterations begin; a sample if there are too many."""
    iteration: int | None = None
    """Iteration number of the cursor, from 0."""
    count: int = 0
    """Number of iterations that have begun."""

    def as_data(self) -> dict[str, object]:
        """Return the track as numbers and lists, for JSON."""
        data: dict[str, object] = {
            "title": self.title,
            "first": self.first,
            "last": self.last,
            "ticks": self.ticks,
            "count": self.count,
        }
        return data if self.iteration is None else data | {"iteration": self.iteration}


def tracks(run: Run) -> tuple[Track, ...]:
    """Return the track of the run with its outermost loops' iterations, then one per open nested
    loop.

    The innermost loop is the last.
    """
    moment = run.moment
    loops = [
        (outer, level) for outer, level in itertools.pairwise(moment) if level.iteration is not None
    ]
    result = [_whole(run, loops[0] if loops else None)]
    return (*result, *(_loop(run, outer, level) for outer, level in loops[1:][-MOST_LOOPS:]))


def _whole(run: Run, outermost: tuple[Level, Level] | None) -> Track:
    main = run.plan.main
    ticks: list[int] = []
    count = 0
    began = [number for number in main.regions if run.timeline.executions.calls(main, number)]
    for number in began:
        region = main.instructions[number].region
        if isinstance(region, LoopRegion):
            rows = run.timeline.executions.rows_of(region, 0)
            ticks += _starts(run, region.program, *rows)
            count = rows[1] - rows[0]
    sample = ticks if len(ticks) <= MOST_TICKS * 2 else ticks[:: -(-len(ticks) // (MOST_TICKS * 2))]
    if outermost is None:
        return Track("", 0, run.steps, tuple(sample), None, count)
    first, end = _rows(run, outermost[1])
    return Track(
        _title(*outermost),
        0,
        run.steps,
        tuple(sample),
        outermost[1].iteration,
        end - first if first or end else count,
    )


def _loop(run: Run, outer: Level, level: Level) -> Track:
    first, end = _rows(run, level)
    ticks = _starts(run, level.program, first, end)
    executions = run.timeline.executions
    is_open = level.program.index in executions.open and end == executions.rows[level.program.index]
    last = (
        run.steps
        if is_open
        else run.timeline.step_at(outer.program, outer.row, outer.position + 1) - 1
    )
    return Track(
        _title(outer, level),
        ticks[0] if ticks else 0,
        last,
        tuple(ticks),
        level.iteration,
        end - first,
    )


def _rows(run: Run, level: Level) -> tuple[int, int]:
    """Return the range of rows of the loop execution that a level is in."""
    assert level.iteration is not None
    executions = run.timeline.executions
    execution, _ = executions.parent_row(level.program, level.row)
    assert level.program.parent is not None
    region = level.program.region
    assert isinstance(region, LoopRegion)
    return executions.rows_of(region, execution)


def _starts(run: Run, program: Program, first: int, end: int) -> list[int]:
    """Return the steps at which rows of an execution begin, or a sample of them."""
    if end <= first:
        return []
    first_step = run.timeline.step_at(program, first, 0)
    sizes = run.timeline.steps.by_program[program.index]
    stride = -(-(end - first) // MOST_TICKS)
    return [
        first_step + sizes.before(row) - sizes.before(first) for row in range(first, end, stride)
    ]


def _title(outer: Level, level: Level) -> str:
    return decode(outer.program.instructions[level.program.owner].label)
