"""Which loops, Ifs and functions of two graphs belong together, also where one of the models has
removed an If or a call around them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loopscope.comparison.entries import Entry, entries_of
from loopscope.debug.run import Run
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Program,
)
from loopscope.ops.values import is_tensor

_LEAST = 0.5
"""Similarity from which two regions of other names are taken to be the same."""
_LEAST_OF_A_NAME = 0.25
"""Similarity from which two regions of one name are taken to be the same."""
_SAME_SHAPES, _SAME_NAME = 0.5, 0.3
"""What equal shapes and an equal name add to a similarity: shapes outweigh names."""
_MOST_PAIRS = 40_000
"""Pairs of regions whose similarity is computed."""

_Shapes = tuple[tuple[int, ...] | None, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class NestedRegion:
    """A loop, an If or a function of a graph, or of a branch or function inside it."""

    program: Program
    """The graph that holds it."""
    entry: Entry
    instruction: Instruction
    profile: tuple[Counter[str], ...]
    """Of each body, how often it has each type of operation, also in bodies inside it."""
    shapes: _Shapes
    """Of its outputs the first time that it ran; None where it did not run."""

    def similarity(self, other: NestedRegion) -> float:
        """Return the part of the operations that both have, from 0 to 1."""
        shared = sum(
            (mine & theirs).total()
            for mine, theirs in zip(self.profile, other.profile, strict=True)
        )
        every = sum(
            (mine | theirs).total()
            for mine, theirs in zip(self.profile, other.profile, strict=True)
        )
        return shared / every if every else 1.0

    def score(self, other: NestedRegion) -> float:
        """Return the similarity with what equal shapes and an equal name add to it; 0 where they
        are not taken to be the same.
        """
        if self.entry.region_class != other.entry.region_class:
            return 0.0
        similarity, same_name = self.similarity(other), self.entry.label == other.entry.label
        if similarity < (_LEAST_OF_A_NAME if same_name else _LEAST):
            return 0.0
        same_shapes = self.shapes is not None and self.shapes == other.shapes
        return similarity + _SAME_SHAPES * same_shapes + _SAME_NAME * same_name


def branches_of(entry: Entry) -> tuple[Branch, ...]:
    """Return the bodies that run at most once each time that their node runs: those of an If,
    and of a function.
    """
    match entry.region:
        case IfRegion() as region:
            return region.then, region.otherwise
        case CallRegion() as region:
            return (region.branch,)
        case _:
            return ()


def nested_regions(run: Run, program: Program) -> tuple[NestedRegion, ...]:
    """Return the regions of a graph and of all branches and functions in it, outer ones first."""
    found: list[NestedRegion] = []
    waiting = [program]
    for graph in waiting:
        for entry in entries_of(graph):
            if entry.instruction is not None and entry.region is not None:
                profile = tuple(Counter(_types(one)) for one in entry.region.programs)
                found.append(
                    NestedRegion(
                        graph, entry, entry.instruction, profile, _shapes(run, graph, entry)
                    )
                )
                waiting += [branch.program for branch in branches_of(entry)]
    return tuple(found)


def region_partners(
    mine: Sequence[NestedRegion], theirs: Sequence[NestedRegion]
) -> Mapping[Instruction, Instruction]:
    """Return the pairs of regions in which each is the best of all for the other, and no second
    one is as good.
    """
    pairs: dict[Instruction, Instruction] = {}
    if len(mine) * len(theirs) > _MOST_PAIRS:
        return pairs
    scores = [[one.score(other) for other in theirs] for one in mine]
    for row, one in enumerate(mine):
        column = _best(scores[row])
        if column is not None and _best([each[column] for each in scores]) == row:
            pairs[one.instruction] = theirs[column].instruction
    return pairs


def _best(scores: Sequence[float]) -> int | None:
    """The place of the largest number above 0, if it is there once."""
    largest = max(scores, default=0.0)
    return scores.index(largest) if largest and scores.count(largest) == 1 else None


def _types(program: Program) -> Iterator[str]:
    for instruction in program.instructions:
        if not instruction.is_identity:
            yield instruction.node.type
        if instruction.region is not None:
            for inner in instruction.region.programs:
                yield from _types(inner)


def _shapes(run: Run, program: Program, entry: Entry) -> _Shapes:
    if not run.timeline.executions.rows[program.index] or isinstance(entry.region, LoopRegion):
        return None
    values = [run.values.get(run.timeline, program, 0, slot) for slot in entry.outputs if slot]
    return tuple(value.shape if is_tensor(value) else None for value in values)
