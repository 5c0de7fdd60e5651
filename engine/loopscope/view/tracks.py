"""Timeline tracks of a run: the whole run, and one track for each of the innermost open nested
loops.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.ir.address import decode
from loopscope.timeline.timeline import Level

MOST_CELLS = 60
"""Largest number of cells of a track."""
MOST_LOOPS = 3
"""Largest number of nested loops with a track, so that there is room for the picture."""


@dataclass(frozen=True, slots=True)
class TrackCell:
    """An iteration on a track, as far as it has run."""

    first: int
    end: int
    """First step, and the step after the last."""
    iteration: int
    """Iteration number, from 0."""
    branch: str = ""
    """The branch that the first If of the body took: ``then``, ``else``, or empty."""


@dataclass(frozen=True, slots=True)
class Track:
    """A part of the run as a timeline. On a nested loop's track, outer iterations are those of the
    cursor.
    """

    title: str
    first: int
    last: int
    """First and last step."""
    cells: tuple[TrackCell, ...]
    """Iterations; a sample if there are too many, each then up to the next of the sample."""
    branches_of: str = ""
    """Name of the If whose branches the cells have; empty if the body has none."""
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
            "begins": [cell.first for cell in self.cells],
            "ends": [cell.end for cell in self.cells],
            "iterations": [cell.iteration for cell in self.cells],
            "branches": "".join(cell.branch[:1] or "-" for cell in self.cells),
            "branches_of": self.branches_of,
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
    cells: list[TrackCell] = []
    count, title, branches_of = 0, "", ""
    for number in main.regions:
        region = main.instructions[number].region
        if not isinstance(region, LoopRegion) or not run.timeline.executions.calls(main, number):
            continue
        rows = run.timeline.executions.rows_of(region, 0)
        cells += _cells(run, region.program, rows, _end(run, region.program, rows, main, 0, number))
        count, title = rows[1] - rows[0], decode(main.instructions[number].label)
        branches_of = _first_if(region.program)[0] or branches_of
    most = MOST_CELLS * 2
    sample = cells if len(cells) <= most else cells[:: -(-len(cells) // most)]
    if outermost is None:
        return Track(title, 0, run.steps, tuple(sample), branches_of, None, count)
    first, end = _rows(run, outermost[1])
    return Track(
        _title(*outermost),
        0,
        run.steps,
        tuple(sample),
        branches_of,
        outermost[1].iteration,
        end - first if first or end else count,
    )


def _loop(run: Run, outer: Level, level: Level) -> Track:
    rows = _rows(run, level)
    end = _end(run, level.program, rows, outer.program, outer.row, outer.position)
    cells = _cells(run, level.program, rows, end)
    return Track(
        _title(outer, level),
        cells[0].first if cells else 0,
        end if _is_open(run, level.program, rows) else end - 1,
        tuple(cells),
        _first_if(level.program)[0],
        level.iteration,
        rows[1] - rows[0],
    )


def _is_open(run: Run, body: Program, rows: tuple[int, int]) -> bool:
    executions = run.timeline.executions
    return body.index in executions.open and rows[1] == executions.rows[body.index]


def _end(
    run: Run, body: Program, rows: tuple[int, int], outer: Program, row: int, instruction: int
) -> int:
    """Return the step after an execution of a loop; the number of steps if it is still open."""
    if _is_open(run, body, rows):
        return run.steps
    return run.timeline.step_at(outer, row, instruction + 1)


def _rows(run: Run, level: Level) -> tuple[int, int]:
    """Return the range of rows of the loop execution that a level is in."""
    assert level.iteration is not None
    executions = run.timeline.executions
    execution, _ = executions.parent_row(level.program, level.row)
    assert level.program.parent is not None
    region = level.program.region
    assert isinstance(region, LoopRegion)
    return executions.rows_of(region, execution)


def _cells(run: Run, program: Program, rows: tuple[int, int], end: int) -> list[TrackCell]:
    """Return the iterations of an execution of a loop, or a sample of them."""
    first, last = rows
    if last <= first:
        return []
    begin = run.timeline.step_at(program, first, 0)
    sizes = run.timeline.steps.by_program[program.index]
    stride = -(-(last - first) // MOST_CELLS)
    sample = range(first, last, stride)
    starts = [begin + sizes.before(row) - sizes.before(first) for row in sample]
    branches = _branches(run, program, sample)
    return [
        TrackCell(start, until, row - first, branch)
        for start, until, row, branch in zip(
            starts, [*starts[1:], end], sample, branches, strict=True
        )
    ]


def _first_if(program: Program) -> tuple[str, IfRegion | None]:
    """Return name and region of the first If in a body; an empty name if there is none."""
    for number in program.regions:
        instruction = program.instructions[number]
        if isinstance(instruction.region, IfRegion):
            return decode(instruction.label), instruction.region
    return "", None


def _branches(run: Run, program: Program, rows: range) -> list[str]:
    """Return the branch that the first If of a body took in each row."""
    _, region = _first_if(program)
    if region is None:
        return [""] * len(rows)
    taken = run.timeline.executions.taken(region)
    return [("then" if taken[row] else "else") if row < len(taken) else "" for row in rows]


def _title(outer: Level, level: Level) -> str:
    return decode(outer.program.instructions[level.program.owner].label)
