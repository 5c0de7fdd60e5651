"""The time line of a run as tracks to slide along: the whole run, and the innermost open loops
inside others, each by itself.
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
"""Loops inside others that have a track: more would leave the picture no room."""


@dataclass(frozen=True, slots=True)
class Track:
    """A stretch of the run; on a loop's track, outer iterations stay what they are at the
    cursor.
    """

    title: str
    first: int
    last: int
    """Steps at its ends."""
    ticks: tuple[int, ...]
    """Steps at which iterations begin; of very many, some."""
    iteration: int | None = None
    """0-based iteration of the cursor."""
    count: int = 0
    """Iterations that have begun."""

    def as_data(self) -> dict[str, object]:
        """Plain numbers and lists, for JSON."""
        data: dict[str, object] = {
            "title": self.title,
            "first": self.first,
            "last": self.last,
            "ticks": self.ticks,
            "count": self.count,
        }
        return data if self.iteration is None else data | {"iteration": self.iteration}


def tracks(run: Run) -> tuple[Track, ...]:
    """The whole run with the iterations of its outermost loops, then a track for each open loop
    inside another, innermost last.
    """
    moment = run.moment
    loops = [
        (around, level)
        for around, level in itertools.pairwise(moment)
        if level.iteration is not None
    ]
    found = [_whole(run, loops[0] if loops else None)]
    return (*found, *(_loop(run, around, level) for around, level in loops[1:][-MOST_LOOPS:]))


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
    shown = ticks if len(ticks) <= MOST_TICKS * 2 else ticks[:: -(-len(ticks) // (MOST_TICKS * 2))]
    if outermost is None:
        return Track("", 0, run.steps, tuple(shown), None, count)
    first, end = _rows(run, outermost[1])
    return Track(
        _title(*outermost),
        0,
        run.steps,
        tuple(shown),
        outermost[1].iteration,
        end - first if first or end else count,
    )


def _loop(run: Run, around: Level, level: Level) -> Track:
    first, end = _rows(run, level)
    ticks = _starts(run, level.program, first, end)
    executions = run.timeline.executions
    is_open = level.program.index in executions.open and end == executions.rows[level.program.index]
    last = (
        run.steps
        if is_open
        else run.timeline.step_at(around.program, around.row, around.position + 1) - 1
    )
    return Track(
        _title(around, level),
        ticks[0] if ticks else 0,
        last,
        tuple(ticks),
        level.iteration,
        end - first,
    )


def _rows(run: Run, level: Level) -> tuple[int, int]:
    """All rows of the execution of a loop that a level is in."""
    assert level.iteration is not None
    executions = run.timeline.executions
    execution, _ = executions.parent_row(level.program, level.row)
    assert level.program.parent is not None
    region = level.program.region
    assert isinstance(region, LoopRegion)
    return executions.rows_of(region, execution)


def _starts(run: Run, program: Program, first: int, end: int) -> list[int]:
    """Steps at which rows of one execution begin."""
    if end <= first:
        return []
    at = run.timeline.step_at(program, first, 0)
    sizes = run.timeline.steps.by_program[program.index]
    every = -(-(end - first) // MOST_TICKS)
    return [at + sizes.before(row) - sizes.before(first) for row in range(first, end, every)]


def _title(around: Level, level: Level) -> str:
    return decode(around.program.instructions[level.program.owner].label)
