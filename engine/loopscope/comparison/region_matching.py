"""Matching of loops, Ifs and functions of two graphs, even if one model removed an If or call
around them.
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

_MIN_SIMILARITY = 0.5
"""Minimum similarity of two matching regions with different names."""
_MIN_SIMILARITY_OF_NAMESAKES = 0.25
"""Minimum similarity of two matching regions with one name."""
_SHAPES_BONUS, _NAME_BONUS = 0.5, 0.3
"""Bonus on the similarity for equal shapes, and for an equal name; shapes outweigh names."""
_MAX_PAIRS = 40_000
"""Maximum number of region pairs whose similarity is computed."""

_Shapes = tuple[tuple[int, ...] | None, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class NestedRegion:
    """A loop, If or function of a graph, or of a branch or function inside it."""

    program: Program
    """Graph that contains the region."""
    entry: Entry
    instruction: Instruction
    profile: tuple[Counter[str], ...]
    """Number of operations by type in each body, including nested bodies."""
    shapes: _Shapes
    """Shapes of the outputs in the first execution; None if it did not run."""

    def similarity(self, other: NestedRegion) -> float:
        """Return the share of the operations that both regions have, from 0 to 1."""
        shared = sum(
            (own & others).total() for own, others in zip(self.profile, other.profile, strict=True)
        )
        total = sum(
            (own | others).total() for own, others in zip(self.profile, other.profile, strict=True)
        )
        return shared / total if total else 1.0

    def score(self, other: NestedRegion) -> float:
        """Return the similarity plus the bonuses for equal shapes and name; 0 if the regions do not
        match.
        """
        if self.entry.region_class != other.entry.region_class:
            return 0.0
        similarity, same_name = self.similarity(other), self.entry.label == other.entry.label
        if similarity < (_MIN_SIMILARITY_OF_NAMESAKES if same_name else _MIN_SIMILARITY):
            return 0.0
        same_shapes = self.shapes is not None and self.shapes == other.shapes
        return similarity + _SHAPES_BONUS * same_shapes + _NAME_BONUS * same_name


def branches_of(entry: Entry) -> tuple[Branch, ...]:
    """Return the bodies that run at most once per execution of their node: those of an If or a
    function.
    """
    match entry.region:
        case IfRegion() as region:
            return region.then, region.otherwise
        case CallRegion() as region:
            return (region.branch,)
        case _:
            return ()


def nested_regions(run: Run, program: Program) -> tuple[NestedRegion, ...]:
    """Return the regions of a graph and of all branches and functions in it, outer first."""
    regions: list[NestedRegion] = []
    waiting = [program]
    for graph in waiting:
        for entry in entries_of(graph):
            if entry.instruction is not None and entry.region is not None:
                profile = tuple(Counter(_types(body)) for body in entry.region.programs)
                regions.append(
                    NestedRegion(
                        graph, entry, entry.instruction, profile, _shapes(run, graph, entry)
                    )
                )
                waiting += [branch.program for branch in branches_of(entry)]
    return tuple(regions)


def region_partners(
    lefts: Sequence[NestedRegion], rights: Sequence[NestedRegion]
) -> Mapping[Instruction, Instruction]:
    """Return the pairs of regions in which each is the unique best match of the other."""
    pairs: dict[Instruction, Instruction] = {}
    if len(lefts) * len(rights) > _MAX_PAIRS:
        return pairs
    scores = [[left.score(right) for right in rights] for left in lefts]
    for row, left in enumerate(lefts):
        column = _unique_maximum(scores[row])
        if (
            column is not None
            and _unique_maximum([row_scores[column] for row_scores in scores]) == row
        ):
            pairs[left.instruction] = rights[column].instruction
    return pairs


def _unique_maximum(scores: Sequence[float]) -> int | None:
    """Return the index of the largest positive number, if it occurs once."""
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
