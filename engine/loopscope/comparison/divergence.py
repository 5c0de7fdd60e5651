"""Which rows of two runs stand beside each other, and where loops run unequal counts or branches
differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.comparison.matching import Matched, MatchedGraphs, Opened
from loopscope.debug.run import Run
from loopscope.executor.plan.numbers import ProgramIndex
from loopscope.executor.plan.plan import CallRegion, IfRegion, LoopRegion, Program
from loopscope.explain.verdict import verdict
from loopscope.ir.readable import readable


@dataclass(frozen=True, slots=True)
class Divergence:
    """A loop that runs another number of iterations, or an If that takes another branch."""

    kind: Literal["iterations", "branch"]
    address: str
    """Of the execution, in the first run."""
    step: int
    """Of the first run: the step after which it was decided."""
    one: str
    """What the first run does there, in words."""
    other: str
    narrowly: str
    """A sentence on a decision between floats that a narrower type would turn; empty for any
    other.
    """

    @property
    def sentence(self) -> str:
        """One or two readable sentences."""
        verb = "runs" if self.kind == "iterations" else "takes"
        told = f"{readable(self.address)} {verb} {self.one} in the first run, {self.other} in the second."
        return f"{told} {self.narrowly}" if self.narrowly else told


@dataclass(frozen=True, slots=True, eq=False)
class AlignedRows:
    """The rows of two graphs that stand beside each other; an element each."""

    one: np.ndarray
    other: np.ndarray
    execution: np.ndarray
    """Of the innermost loop around; 0 outside of loops."""
    iteration: np.ndarray
    """Of that loop; -1 outside of loops."""


def align(
    one: Run, other: Run, graphs: tuple[MatchedGraphs, ...]
) -> tuple[Mapping[MatchedGraphs, AlignedRows], list[Divergence]]:
    """Return the rows of each pair of graphs, iteration beside iteration as far as both go; and
    where the runs part, in order.
    """
    zero = np.zeros(1, np.int64)
    outermost = AlignedRows(zero, zero, zero, zero - 1)
    rows: dict[tuple[ProgramIndex, ProgramIndex], AlignedRows] = {
        _key(one.plan.main, other.plan.main): outermost
    }
    partings: list[Divergence] = []
    for graph in graphs:
        if graph.opened is not None:
            rows[_key(graph.one, graph.other)] = _opened((one, other), graph.opened, rows)
        for pair in graph.pairs:
            if pair.one.region is not None:
                found, parted = _inside(
                    (one, other), graph, pair, rows[_key(graph.one, graph.other)]
                )
                rows.update(found)
                partings += parted
    return {graph: rows[_key(graph.one, graph.other)] for graph in graphs}, sorted(
        partings, key=lambda parting: parting.step
    )


def _key(one: Program, other: Program) -> tuple[ProgramIndex, ProgramIndex]:
    return one.index, other.index


def _opened(
    runs: tuple[Run, Run],
    opened: Opened,
    rows: Mapping[tuple[ProgramIndex, ProgramIndex], AlignedRows],
) -> AlignedRows:
    """Return the rows in which a run takes a branch, beside those of the graph around its node
    in the other run.
    """
    around = rows.get(_key(*opened.around))
    if around is None:
        nothing = np.zeros(0, np.int64)
        return AlignedRows(nothing, nothing, nothing, nothing)
    region = opened.region
    if not isinstance(region, IfRegion):
        return around
    mine = around.other if opened.side else around.one
    taken, inner = (
        column[mine] for column in runs[opened.side].timeline.executions.branch_rows(region)
    )
    both = np.flatnonzero(taken.astype(bool) == (opened.program is region.then.program))
    one, other = (
        (around.one[both], inner[both]) if opened.side else (inner[both], around.other[both])
    )
    return AlignedRows(one, other, around.execution[both], around.iteration[both])


_Found = tuple[dict[tuple[ProgramIndex, ProgramIndex], AlignedRows], list[Divergence]]


def _inside(
    runs: tuple[Run, Run], graph: MatchedGraphs, pair: Matched, around: AlignedRows
) -> _Found:
    match pair.one.region, pair.other.region:
        case LoopRegion() as one, LoopRegion() as other:
            return _in_loop(runs, graph, pair, (one, other), around)
        case IfRegion() as one, IfRegion() as other:
            return _in_branches(runs, graph, pair, (one, other), around)
        case CallRegion() as called, CallRegion() as other:
            return {_key(called.branch.program, other.branch.program): around}, []
        case _:
            return {}, []


def _in_loop(
    runs: tuple[Run, Run],
    graph: MatchedGraphs,
    pair: Matched,
    loops: tuple[LoopRegion, LoopRegion],
    around: AlignedRows,
) -> _Found:
    starts = [
        run.timeline.executions.loop_starts(loop) for run, loop in zip(runs, loops, strict=True)
    ]
    begins = [start[rows] for start, rows in zip(starts, (around.one, around.other), strict=True)]
    counts = [
        start[rows + 1] - start[rows]
        for start, rows in zip(starts, (around.one, around.other), strict=True)
    ]
    common = np.minimum(*counts)
    execution = np.repeat(around.one, common)
    iteration = np.arange(common.sum()) - np.repeat(np.cumsum(common) - common, common)
    mine, theirs = (np.repeat(begin, common) + iteration for begin in begins)
    rows = AlignedRows(mine, theirs, execution, iteration)
    partings = []
    for place in np.flatnonzero(counts[0] != counts[1])[:1].tolist():
        row, told = int(around.one[place]), [_times(int(count[place])) for count in counts]
        step = _step_of(runs[0], graph, pair, row)
        if common[place]:
            last = int(rows.one[np.cumsum(common)[place] - 1])
            step = runs[0].timeline.step_at(
                loops[0].program, last, len(loops[0].program.instructions)
            )
        if counts[0][place] < counts[1][place]:
            narrowly = _narrowly(runs[0], _address(runs[0], graph, pair, row))
        else:
            narrowly = _narrowly(
                runs[1],
                f"{runs[1].timeline.address(graph.other, int(around.other[place]))}/{pair.other.label}",
            )
        partings.append(
            Divergence(
                "iterations", _address(runs[0], graph, pair, row), step, told[0], told[1], narrowly
            )
        )
    return {_key(loops[0].program, loops[1].program): rows}, partings


def _in_branches(
    runs: tuple[Run, Run],
    graph: MatchedGraphs,
    pair: Matched,
    ifs: tuple[IfRegion, IfRegion],
    around: AlignedRows,
) -> _Found:
    branches = [
        run.timeline.executions.branch_rows(region) for run, region in zip(runs, ifs, strict=True)
    ]
    taken = [
        branch[0][rows].astype(bool)
        for branch, rows in zip(branches, (around.one, around.other), strict=True)
    ]
    inner = [
        branch[1][rows] for branch, rows in zip(branches, (around.one, around.other), strict=True)
    ]
    found: dict[tuple[ProgramIndex, ProgramIndex], AlignedRows] = {}
    for name, programs in (
        (True, [one.then.program for one in ifs]),
        (False, [one.otherwise.program for one in ifs]),
    ):
        both = np.flatnonzero((taken[0] == name) & (taken[1] == name))
        found[_key(programs[0], programs[1])] = AlignedRows(
            inner[0][both], inner[1][both], around.execution[both], around.iteration[both]
        )
    partings = []
    for place in np.flatnonzero(taken[0] != taken[1])[:1].tolist():
        row, words = (
            int(around.one[place]),
            ["the then branch" if side[place] else "the else branch" for side in taken],
        )
        address = _address(runs[0], graph, pair, row)
        partings.append(
            Divergence(
                "branch",
                address,
                _step_of(runs[0], graph, pair, row),
                words[0],
                words[1],
                _narrowly(runs[0], address),
            )
        )
    return found, partings


def _narrowly(run: Run, address: str) -> str:
    """What is to be said of the decision of a run that ended a loop, or took a branch."""
    found = verdict(run, address).margin
    return "" if found is None else found.sentence


def _address(run: Run, graph: MatchedGraphs, pair: Matched, row: int) -> str:
    return f"{run.timeline.address(graph.one, row)}/{pair.one.label}"


def _step_of(run: Run, graph: MatchedGraphs, pair: Matched, row: int) -> int:
    return run.timeline.step_at(graph.one, row, pair.one.position)


def _times(count: int) -> str:
    return f"{count:,} iteration{'' if count == 1 else 's'}"
