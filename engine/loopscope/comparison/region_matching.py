"""Matching of loops, Ifs and functions of two graphs, and pairs that a person requests.

Regions match even if one model removed an If or call around them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loopscope.comparison.entries import Entry, entries_of
from loopscope.debug.run import Run
from loopscope.errors import InputError, elided
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Program,
)
from loopscope.ir.address import decode
from loopscope.ir.recorded_rows import RECORDED
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


@dataclass(frozen=True, slots=True)
class RequestedPair:
    """A name in the first model and a name in the second, or addresses without iterations."""

    left: str
    right: str

    @staticmethod
    def parse(text: str) -> tuple[RequestedPair, ...]:
        """Parse pairs such as ``decode=main/while;state=S``; ``InputError`` for other texts.

        >>> RequestedPair.parse("decode=main/while;state=S")[1]
        RequestedPair(left='state', right='S')
        """
        pairs = []
        for part in filter(None, map(str.strip, text.split(";"))):
            left, equals, right = part.partition("=")
            if not (equals and left.strip() and right.strip()):
                raise InputError(
                    f"--match: {part!r} is not a pair: expected NAME=NAME, such as "
                    "'decode=main/while;state=S'"
                )
            pairs.append(RequestedPair(left.strip(), right.strip()))
        return tuple(pairs)


@dataclass(slots=True, eq=False)
class Requests:
    """Requested pairs, and those that matched something."""

    pairs: Sequence[RequestedPair] = ()
    used: set[RequestedPair] = field(default_factory=set[RequestedPair])

    def partners(
        self, lefts: Sequence[NestedRegion], rights: Sequence[NestedRegion]
    ) -> Mapping[Instruction, Instruction]:
        """Return the requested pairs of loops and branches."""
        partners: dict[Instruction, Instruction] = {}
        for pair in self.pairs:
            left, right = (
                next(
                    (region for region in regions if _is_named(region.program, region.entry, name)),
                    None,
                )
                for regions, name in ((lefts, pair.left), (rights, pair.right))
            )
            if left and right and left.entry.region_class == right.entry.region_class:
                partners[left.instruction] = right.instruction
                self.used.add(pair)
        return partners

    def values(
        self, left: Program, lefts: Sequence[Entry], right: Program, rights: Sequence[Entry]
    ) -> list[tuple[Entry, Entry]]:
        """Return the requested pairs of values of two graphs.

        If only one side is a carried Parameter, its value after the iteration is meant.
        """
        matches = []
        for pair in self.pairs:
            entry = next((item for item in lefts if _is_value(left, item, pair.left)), None)
            partner = next((item for item in rights if _is_value(right, item, pair.right)), None)
            if entry is None or partner is None:
                continue
            if entry.instruction is not None and partner.instruction is None:
                partner = after_iteration(right, partner)
            elif entry.instruction is None and partner.instruction is not None:
                entry = after_iteration(left, entry)
            matches.append((entry, partner))
            self.used.add(pair)
        return matches

    def expect_used(self) -> None:
        """Raise ``InputError`` for a pair that matched nothing."""
        unused = next((pair for pair in self.pairs if pair not in self.used), None)
        if unused is not None:
            raise InputError(
                f"--match: {elided(unused.left)!r} in the first and {elided(unused.right)!r} in "
                "the second are not two loops, two branches or two values of matching graphs"
            )


def after_iteration(program: Program, entry: Entry) -> Entry:
    """Return the operation that computes the next value of a carried Parameter.

    Return ``entry`` if it is not carried, or if no operation of the body computes the value.
    """
    if program.loop is None or entry.instruction is not None:
        return entry
    result = next(
        (port.result for port in program.loop.carried if port.parameter in entry.outputs), None
    )
    return next(
        (
            operation
            for operation in entries_of(program)
            if operation.instruction is not None and operation.outputs[:1] == (result,)
        ),
        entry,
    )


def is_recorded(entry: Entry) -> bool:
    """Return True if an entry returns values of a trace."""
    return entry.type == RECORDED


def is_carried(program: Program, entry: Entry) -> bool:
    """Return True if an entry is carried from iteration to iteration, before or after the body."""
    return program.loop is not None and any(
        port.parameter in entry.outputs or port.result in entry.outputs
        for port in program.loop.carried
    )


def is_received(program: Program, entry: Entry) -> bool:
    """Return True if an entry is a state that each iteration receives."""
    return program.loop is not None and any(
        port.parameter in entry.outputs for port in program.loop.carried
    )


def _is_named(program: Program, entry: Entry, name: str) -> bool:
    address = f"{program.address}/{entry.label}"
    return decode(entry.label) == name or address == name or address.endswith(f"/{name}")


def _is_value(program: Program, entry: Entry, name: str) -> bool:
    return (
        not isinstance(entry.region, LoopRegion)
        and bool(entry.outputs)
        and (_is_named(program, entry, name) or entry.tensor == name)
    )
