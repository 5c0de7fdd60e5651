"""Timeline tracks of a run: the whole run, and one track for each of the innermost nested loops."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from loopscope.debug.lookup import region_number
from loopscope.debug.run import Run
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.ir.address import Address, decode

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
    is_open: bool = False
    """True if further iterations may begin."""
    others: tuple[tuple[int, int], ...] = ()
    """First step of each other loop of the main graph, and the step after its last."""

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
        if self.is_open:
            data["is_open"] = True
        if self.others:
            data["others"] = self.others
        return data if self.iteration is None else data | {"iteration": self.iteration}


@dataclass(frozen=True, slots=True)
class _Execution:
    """An execution of a loop: the graph, its row, and the number of the loop's instruction."""

    graph: Program
    row: int
    number: int

    @property
    def title(self) -> str:
        return decode(self.graph.instructions[self.number].label)

    @property
    def region(self) -> LoopRegion:
        region = self.graph.instructions[self.number].region
        assert isinstance(region, LoopRegion)
        return region


def tracks(run: Run, focus: str = "") -> tuple[Track, ...]:
    """Return the track of the run, then one per nested loop; the innermost loop is the last.

    The loops are those around the cursor, or ``focus`` and those around it. ``focus`` is the
    concrete address of a loop that has begun.
    """
    loops = _loops_at(run, Address.parse(focus)) if focus else _open_loops(run)
    main = run.plan.main
    of_main = next((loop for loop in loops if loop.graph is main), None)
    nested = [loop for loop in loops if loop.graph is not main]
    return (_whole(run, of_main), *(_loop(run, loop) for loop in nested[-MOST_LOOPS:]))


def _open_loops(run: Run) -> list[_Execution]:
    """Return the loops around the cursor, outermost first."""
    return [
        _Execution(outer.program, outer.row, outer.position)
        for outer, level in itertools.pairwise(run.moment)
        if level.iteration is not None
    ]


def _loops_at(run: Run, address: Address) -> list[_Execution]:
    """Return the loops around a place and the loop at the place, outermost first."""
    loops: list[_Execution] = []
    for end in range(2, len(address.segments) + 1, 2):
        graph, row = run.rows_of(Address(address.segments[:end]))
        number = region_number(graph, address.segments[end - 1].label)
        if number is not None and isinstance(graph.instructions[number].region, LoopRegion):
            loops.append(_Execution(graph, row, number))
    return loops


def _whole(run: Run, loop: _Execution | None) -> Track:
    """Return the track of the run with the iterations of a loop of the main graph; if there is
    none, of the last loop that began before the cursor.
    """
    spans = {each: _span(run, each) for each in _loops_of_main(run)}
    if loop is None and spans:
        begun = [each for each, (first, _) in spans.items() if first < run.cursor.step]
        loop = begun[-1] if begun else next(iter(spans))
    if loop is None:
        return Track("", 0, run.steps, ())
    others = tuple(span for each, span in spans.items() if each != loop)
    return replace(_loop(run, loop), first=0, last=run.steps, others=others)


def _loops_of_main(run: Run) -> list[_Execution]:
    """Return the loops of the main graph that have begun, in their order."""
    main = run.plan.main
    return [
        _Execution(main, 0, number)
        for number in main.regions
        if isinstance(main.instructions[number].region, LoopRegion)
        and run.timeline.executions.calls(main, number)
    ]


def _span(run: Run, loop: _Execution) -> tuple[int, int]:
    """Return the step at which a loop begins, and the step after its last."""
    first = run.timeline.step_at(loop.graph, loop.row, loop.number)
    rows = run.timeline.executions.rows_of(loop.region, loop.row)
    return first, _end(run, loop, rows)


def _loop(run: Run, loop: _Execution) -> Track:
    body = loop.region.program
    rows = run.timeline.executions.rows_of(loop.region, loop.row)
    end, is_open = _end(run, loop, rows), _is_open(run, body, rows)
    cells = _cells(run, body, rows, end)
    current = [level.row - rows[0] for level in run.moment if level.program is body]
    return Track(
        loop.title,
        cells[0].first if cells else 0,
        end if is_open else end - 1,
        tuple(cells),
        _first_if(body)[0],
        next((row for row in current if 0 <= row < rows[1] - rows[0]), None),
        rows[1] - rows[0],
        is_open,
    )


def _is_open(run: Run, body: Program, rows: tuple[int, int]) -> bool:
    executions = run.timeline.executions
    return body.index in executions.open and rows[1] == executions.rows[body.index]


def _end(run: Run, loop: _Execution, rows: tuple[int, int]) -> int:
    """Return the step after an execution of a loop; the number of steps if it is still open."""
    if _is_open(run, loop.region.program, rows):
        return run.steps
    return run.timeline.step_at(loop.graph, loop.row, loop.number + 1)


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
