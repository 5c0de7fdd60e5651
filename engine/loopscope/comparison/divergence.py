"""Alignment of the rows of two runs, and the loops and Ifs whose iteration counts or branches
differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.comparison.chunks import Alignment, Chunks
from loopscope.comparison.matching import Matched, MatchedGraphs, OpenedRegion
from loopscope.debug.run import Run
from loopscope.executor.plan.plan import CallRegion, IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import ProgramIndex
from loopscope.explain.verdict import verdict
from loopscope.ir.readable import readable


@dataclass(frozen=True, slots=True)
class Divergence:
    """A loop with a different iteration count, or an If with a different branch."""

    kind: Literal["iterations", "branch"]
    address: str
    """Address of the execution in the first run."""
    step: int
    """Step of the first run after which the decision was made."""
    one: str
    """Description of the first run's decision."""
    other: str
    narrowly: str
    """Sentence about a float decision that a narrower type would turn; otherwise empty."""

    @property
    def sentence(self) -> str:
        """One or two readable sentences."""
        verb = "runs" if self.kind == "iterations" else "takes"
        text = (
            f"{readable(self.address)} {verb} {self.one} in the first run, "
            f"{self.other} in the second."
        )
        return f"{text} {self.narrowly}" if self.narrowly else text


@dataclass(frozen=True, slots=True, eq=False)
class AlignedRows:
    """Aligned rows of two graphs, one element per row."""

    left: np.ndarray
    right: np.ndarray
    execution: np.ndarray
    """Execution of the innermost enclosing loop; 0 outside loops."""
    iteration: np.ndarray
    """Iteration of that loop; -1 outside loops."""
    chunked: Chunked | None = None
    """Set if one row of a run stands for several rows of the other."""

    def part(self, places: Sequence[int]) -> AlignedRows:
        """Return the rows at these places, in order."""
        if len(places) == len(self.left):
            return self
        chosen = np.array(places, np.int64)
        return AlignedRows(
            self.left[chosen],
            self.right[chosen],
            self.execution[chosen],
            self.iteration[chosen],
            self.chunked,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Chunked:
    """The rows of a sequential loop beside those of a chunked one, in compared executions."""

    chunks: Chunks
    steps: np.ndarray
    """Row of each step in the run with the sequential loop."""
    step_numbers: np.ndarray
    """Iteration of each step in its execution."""
    execution: np.ndarray
    """Execution of the sequential loop that each step belongs to."""
    chunk_of_step: np.ndarray
    """Row of the chunk of each step in the other run."""
    total: int
    """Largest number of steps of an execution."""
    per_step: bool = False
    """True if each row is a step, False if each row is a chunk."""

    def starts(self) -> AlignedRows:
        """Return the rows at the starts of chunks, where the loops receive their states."""
        is_first = self.step_numbers % self.chunks.size == 0
        sides = self.steps[is_first], self.chunk_of_step[is_first]
        numbers = self.step_numbers[is_first]
        return AlignedRows(
            sides[self.chunks.longer],
            sides[1 - self.chunks.longer],
            self.execution[is_first],
            numbers // self.chunks.size if self.chunks.longer else numbers,
            self,
        )


def align(
    left: Run,
    right: Run,
    graphs: tuple[MatchedGraphs, ...],
    alignment: Alignment | None = None,
) -> tuple[Mapping[MatchedGraphs, AlignedRows], list[Divergence]]:
    """Return the aligned rows of each pair of graphs, and the divergences in execution order.

    Iterations are aligned up to the smaller iteration count. With an ``alignment``, the iterations
    at the ends of chunks are aligned with the chunks.
    """
    zero = np.zeros(1, np.int64)
    outermost = AlignedRows(zero, zero, zero, zero - 1)
    rows: dict[tuple[ProgramIndex, ProgramIndex], AlignedRows] = {
        _key(left.plan.main, right.plan.main): outermost
    }
    divergences: list[Divergence] = []
    for graph in graphs:
        if graph.opened is not None:
            rows[_key(graph.left, graph.right)] = _align_opened((left, right), graph.opened, rows)
        for pair in graph.pairs:
            if pair.one.region is not None:
                inner_rows, inner_divergences = _align_region(
                    (left, right), graph, pair, rows[_key(graph.left, graph.right)], alignment
                )
                rows.update(inner_rows)
                divergences += inner_divergences
    return {graph: rows[_key(graph.left, graph.right)] for graph in graphs}, sorted(
        divergences, key=lambda parting: parting.step
    )


def _key(left: Program, right: Program) -> tuple[ProgramIndex, ProgramIndex]:
    return left.index, right.index


def _align_opened(
    runs: tuple[Run, Run],
    opened: OpenedRegion,
    rows: Mapping[tuple[ProgramIndex, ProgramIndex], AlignedRows],
) -> AlignedRows:
    """Return the rows in which a run takes a branch, aligned with the graph around its node in the
    other run.
    """
    outer = rows.get(_key(*opened.around))
    if outer is None:
        empty = np.zeros(0, np.int64)
        return AlignedRows(empty, empty, empty, empty)
    region = opened.region
    if not isinstance(region, IfRegion):
        return outer
    own_rows = outer.right if opened.side else outer.left
    taken, inner = (
        column[own_rows] for column in runs[opened.side].timeline.executions.branch_rows(region)
    )
    both = np.flatnonzero(taken.astype(bool) == (opened.program is region.then.program))
    left, right = (
        (outer.left[both], inner[both]) if opened.side else (inner[both], outer.right[both])
    )
    return AlignedRows(left, right, outer.execution[both], outer.iteration[both])


_InnerAlignment = tuple[dict[tuple[ProgramIndex, ProgramIndex], AlignedRows], list[Divergence]]


def _align_region(
    runs: tuple[Run, Run],
    graph: MatchedGraphs,
    pair: Matched,
    outer: AlignedRows,
    alignment: Alignment | None,
) -> _InnerAlignment:
    match pair.one.region, pair.other.region:
        case LoopRegion() as left, LoopRegion() as right:
            return _align_loop(runs, graph, pair, (left, right), outer, alignment)
        case IfRegion() as left, IfRegion() as right:
            return _align_branches(runs, graph, pair, (left, right), outer)
        case CallRegion() as left, CallRegion() as right:
            return {_key(left.branch.program, right.branch.program): outer}, []
        case _:
            return {}, []


def _align_loop(
    runs: tuple[Run, Run],
    graph: MatchedGraphs,
    pair: Matched,
    loops: tuple[LoopRegion, LoopRegion],
    outer: AlignedRows,
    alignment: Alignment | None,
) -> _InnerAlignment:
    starts = [
        run.timeline.executions.loop_starts(loop) for run, loop in zip(runs, loops, strict=True)
    ]
    begins = [start[rows] for start, rows in zip(starts, (outer.left, outer.right), strict=True)]
    counts = [
        start[rows + 1] - start[rows]
        for start, rows in zip(starts, (outer.left, outer.right), strict=True)
    ]
    chunks = (
        alignment.chunks(int(counts[0][0]), int(counts[1][0]))
        if alignment and len(begins[0])
        else None
    )
    if chunks is not None:
        rows = _chunk_rows(chunks, begins, counts, outer)
        return {_key(loops[0].program, loops[1].program): rows}, []
    common = np.minimum(*counts)
    rows = _iteration_rows(begins, common, outer)
    divergences = []
    for place in np.flatnonzero(counts[0] != counts[1])[:1].tolist():
        outer_rows = int(outer.left[place]), int(outer.right[place])
        step = _step_of(runs[0], graph, pair, outer_rows[0])
        if common[place]:
            last, body = int(rows.left[np.cumsum(common)[place] - 1]), loops[0].program
            step = runs[0].timeline.step_at(body, last, len(body.instructions))
        iterations = int(counts[0][place]), int(counts[1][place])
        divergences.append(_loop_divergence(runs, graph, pair, outer_rows, iterations, step))
    return {_key(loops[0].program, loops[1].program): rows}, divergences


def _iteration_rows(
    begins: Sequence[np.ndarray], common: np.ndarray, outer: AlignedRows
) -> AlignedRows:
    """Return the rows of the first iterations of each execution, ``common`` of each."""
    execution = np.repeat(outer.left, common)
    iteration = np.arange(common.sum()) - np.repeat(np.cumsum(common) - common, common)
    left, right = (np.repeat(begin, common) + iteration for begin in begins)
    return AlignedRows(left, right, execution, iteration)


def _loop_divergence(
    runs: tuple[Run, Run],
    graph: MatchedGraphs,
    pair: Matched,
    rows: tuple[int, int],
    iterations: tuple[int, int],
    step: int,
) -> Divergence:
    """Return the divergence of two executions of a loop, with the margin of the shorter one."""
    address = _address(runs[0], graph, pair, rows[0])
    if iterations[0] < iterations[1]:
        narrowly = _margin_sentence(runs[0], address)
    else:
        right_graph = runs[1].timeline.address(graph.right, rows[1])
        narrowly = _margin_sentence(runs[1], f"{right_graph}/{pair.other.label}")
    left_words, right_words = (_iteration_words(count) for count in iterations)
    return Divergence("iterations", address, step, left_words, right_words, narrowly)


def _chunk_rows(
    chunks: Chunks, begins: Sequence[np.ndarray], counts: Sequence[np.ndarray], outer: AlignedRows
) -> AlignedRows:
    """Return the rows at the ends of chunks, for all executions."""
    long, short = chunks.longer, 1 - chunks.longer
    aligned: list[list[np.ndarray]] = [[], []]
    executions, numbers, steps, step_numbers, step_executions, chunk_of_step = (
        list[np.ndarray]() for _ in range(6)
    )
    for place, around in enumerate(outer.left.tolist()):
        long_count, short_count = int(counts[long][place]), int(counts[short][place])
        chunk = np.arange(min(short_count, -(-long_count // chunks.size)))
        ends = np.minimum((chunk + 1) * chunks.size, long_count) - 1
        aligned[long].append(begins[long][place] + ends)
        aligned[short].append(begins[short][place] + chunk)
        executions.append(np.full(len(chunk), around))
        numbers.append(chunk if long else ends)
        step = np.arange(int(ends[-1]) + 1 if len(ends) else 0)
        steps.append(begins[long][place] + step)
        step_numbers.append(step)
        step_executions.append(np.full(len(step), around))
        chunk_of_step.append(begins[short][place] + step // chunks.size)
    join = np.concatenate
    return AlignedRows(
        join(aligned[0]),
        join(aligned[1]),
        join(executions),
        join(numbers),
        Chunked(
            chunks,
            join(steps),
            join(step_numbers),
            join(step_executions),
            join(chunk_of_step),
            int(counts[long].max()),
        ),
    )


def _align_branches(
    runs: tuple[Run, Run],
    graph: MatchedGraphs,
    pair: Matched,
    ifs: tuple[IfRegion, IfRegion],
    outer: AlignedRows,
) -> _InnerAlignment:
    branches = [
        run.timeline.executions.branch_rows(region) for run, region in zip(runs, ifs, strict=True)
    ]
    taken = [
        branch[0][rows].astype(bool)
        for branch, rows in zip(branches, (outer.left, outer.right), strict=True)
    ]
    inner = [
        branch[1][rows] for branch, rows in zip(branches, (outer.left, outer.right), strict=True)
    ]
    inner_rows: dict[tuple[ProgramIndex, ProgramIndex], AlignedRows] = {}
    for is_then, programs in (
        (True, [region.then.program for region in ifs]),
        (False, [region.otherwise.program for region in ifs]),
    ):
        both = np.flatnonzero((taken[0] == is_then) & (taken[1] == is_then))
        inner_rows[_key(programs[0], programs[1])] = AlignedRows(
            inner[0][both], inner[1][both], outer.execution[both], outer.iteration[both]
        )
    divergences = []
    for place in np.flatnonzero(taken[0] != taken[1])[:1].tolist():
        row = int(outer.left[place])
        words = ["the then branch" if side[place] else "the else branch" for side in taken]
        address = _address(runs[0], graph, pair, row)
        divergences.append(
            Divergence(
                "branch",
                address,
                _step_of(runs[0], graph, pair, row),
                words[0],
                words[1],
                _margin_sentence(runs[0], address),
            )
        )
    return inner_rows, divergences


def _margin_sentence(run: Run, address: str) -> str:
    """Return the sentence about a narrow decision that ended a loop or took a branch; empty
    otherwise.
    """
    margin = verdict(run, address).margin
    return "" if margin is None else margin.sentence


def _address(run: Run, graph: MatchedGraphs, pair: Matched, row: int) -> str:
    return f"{run.timeline.address(graph.left, row)}/{pair.one.label}"


def _step_of(run: Run, graph: MatchedGraphs, pair: Matched, row: int) -> int:
    return run.timeline.step_at(graph.left, row, pair.one.position)


def _iteration_words(count: int) -> str:
    return f"{count:,} iteration{'' if count == 1 else 's'}"
