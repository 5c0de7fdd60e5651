"""Which graphs and values of two runs belong together: by name, then by structure, then by shape
and the correlation of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from loopscope.comparison.correlation import correlated, tells
from loopscope.comparison.entries import Entry, entries_of
from loopscope.comparison.match_state import MatchState
from loopscope.comparison.region_matching import (
    NestedRegion,
    branches_of,
    nested_regions,
    region_partners,
)
from loopscope.debug.run import Run
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, Program, Region

How = Literal["name", "tensor", "structure", "shape", "correlation"]
Key = Callable[[MatchState, Entry], Hashable | None]
"""What two entries have alike that belong together; None for an entry that it says nothing of."""
_MOST_CANDIDATES = 1000
"""Of one shape, whose correlations are all computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Two entries that belong together."""

    one: Entry
    other: Entry
    how: How


@dataclass(frozen=True, slots=True, eq=False)
class MatchedGraphs:
    """Two graphs that belong together, with the pairs of their entries and those that the other
    graph lacks.
    """

    one: Program
    other: Program
    pairs: tuple[Matched, ...]
    only_one: tuple[Entry, ...]
    only_other: tuple[Entry, ...]
    unpacking: tuple[tuple[Entry, ...], tuple[Entry, ...]]
    """Of each graph what only unpacks weights, for which the other has nothing of that name."""
    opened: Opened | None = None
    """Set where one of the graphs is a branch or function whose node the other model does not
    have.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A branch or function of one model that lies beside a graph of the other, because the other
    does not have its node.
    """

    around: tuple[Program, Program]
    """The pair of graphs in which the node is."""
    side: Literal[0, 1]
    """Number of the run that has the node."""
    region: Region
    program: Program
    """The branch or function."""


def match(one: Run, other: Run) -> tuple[MatchedGraphs, ...]:
    """The graphs of two finished runs that belong together, outer ones first; the outermost
    graphs always do.
    """
    found: list[MatchedGraphs] = []
    waiting = [(one.plan.main, other.plan.main)]
    while waiting:
        level = _Level((one, other), waiting.pop()).matched()
        found += level
        inside = [
            bodies
            for graphs in level
            for pair in graphs.pairs
            for bodies in _bodies(pair.one.region, pair.other.region)
        ]
        waiting += reversed(inside)
    return tuple(found)


def value_pairs(pair: Matched) -> Iterable[tuple[int, Slot, Slot]]:
    """The outputs of two that belong together: their number, and the slots."""
    return (
        (number, *slots)
        for number, slots in enumerate(zip(pair.one.outputs, pair.other.outputs, strict=False))
    )


def _bodies(one: Region | None, other: Region | None) -> Iterator[tuple[Program, Program]]:
    if one is not None and other is not None:
        yield from zip(one.programs, other.programs, strict=True)


@dataclass(slots=True, eq=False)
class _Level:
    """Two graphs with the branches and functions inside them, while what belongs together is
    looked for across all of these.
    """

    runs: tuple[Run, Run]
    graphs: tuple[Program, Program]
    numbers: Iterator[int] = field(default_factory=count)

    def matched(self) -> list[MatchedGraphs]:
        nested = [
            nested_regions(run, graph) for run, graph in zip(self.runs, self.graphs, strict=True)
        ]
        partners = region_partners(*nested) if all(nested) else {}
        sides = (
            MatchState.of(self.runs[0], self.graphs[0]),
            MatchState.of(self.runs[1], self.graphs[1]),
        )
        outer = _Matching(*sides, self.numbers)
        outer.put_regions(partners)
        across = [
            {*partners} - _instructions(sides[0].matched),
            {*partners.values()} - _instructions(sides[1].matched),
        ]
        for side, instructions in zip(sides, across, strict=True):
            side.reserved |= {entry for entry in side.entries if entry.instruction in instructions}
        outer.by_names()
        for number, side in enumerate(sides):
            single = _instructions(sides[1 - number].free)
            inner = {
                entry.label
                for region in nested[1 - number]
                if region.instruction in single
                for entry in _inside(region)
            }
            side.reserved |= {entry for entry in side.free if entry.label in inner}
        outer.by_structure()
        outer.by_values()
        for side in sides:
            side.reserved.clear()
        opened = self._opened(sides, partners)
        for matching, _ in opened:
            matching.by_names()
        for matching, _ in opened:
            matching.by_structure()
        listed: set[MatchState] = set()
        return [
            outer.graphs(None, listed),
            *(matching.graphs(within, listed) for matching, within in opened),
        ]

    def _opened(
        self, sides: tuple[MatchState, MatchState], partners: Mapping[Instruction, Instruction]
    ) -> list[tuple[_Matching, Opened]]:
        """The branches and functions of nodes that have no partner, beside the graphs of the
        other run.
        """
        paired: tuple[Container[Instruction | None], ...] = (partners.keys(), {*partners.values()})
        beside = [sides[0]], [sides[1]]
        found: list[tuple[_Matching, Opened]] = []
        for number in _BOTH:
            for side in beside[number]:
                for entry in side.free:
                    if entry.region is None or entry.instruction in paired[number]:
                        continue
                    for branch in branches_of(entry):
                        inner = side.opened(entry, branch)
                        if inner.rows:
                            beside[number].append(inner)
                            found += self._beside(
                                number, entry.region, side, inner, beside[1 - number], partners
                            )
        return found

    def _beside(
        self,
        number: Literal[0, 1],
        region: Region,
        side: MatchState,
        inner: MatchState,
        others: Sequence[MatchState],
        partners: Mapping[Instruction, Instruction],
    ) -> Iterator[tuple[_Matching, Opened]]:
        for other in others:
            around = (other.program, side.program) if number else (side.program, other.program)
            matching = (
                _Matching(other, inner, self.numbers)
                if number
                else _Matching(inner, other, self.numbers)
            )
            matching.put_regions(partners)
            yield matching, Opened(around, number, region, inner.program)


_BOTH: tuple[Literal[0, 1], Literal[0, 1]] = (0, 1)


def _instructions(entries: Iterable[Entry]) -> set[Instruction]:
    return {entry.instruction for entry in entries if entry.instruction is not None}


def _inside(region: NestedRegion) -> Iterator[Entry]:
    """The operations in the branches and functions of a region."""
    waiting = [branch.program for branch in branches_of(region.entry)]
    for program in waiting:
        for entry in entries_of(program):
            if entry.instruction is not None:
                yield entry
                waiting += [branch.program for branch in branches_of(entry)]


@dataclass(slots=True, eq=False)
class _Matching:
    """Two graphs while what belongs together is looked for: the surest ways first, then what
    follows from the pairs they found.
    """

    one: MatchState
    other: MatchState
    numbers: Iterator[int]
    found: dict[Entry, Matched] = field(default_factory=dict[Entry, Matched])

    def graphs(self, within: Opened | None, listed: set[MatchState]) -> MatchedGraphs:
        """Return what was found; what a side lacks is in the first of its pairs of graphs only,
        and not of branches without any match.
        """
        pairs = tuple(self.found[one] for one in self.one.entries if one in self.found)
        new = [
            (within is None or bool(pairs)) and side not in listed
            for side in (self.one, self.other)
        ]
        listed |= {side for side, first in zip((self.one, self.other), new, strict=True) if first}
        lacking = [
            side.lacking() if first else ()
            for side, first in zip((self.one, self.other), new, strict=True)
        ]
        unpacking = [
            side.unpacking if first else ()
            for side, first in zip((self.one, self.other), new, strict=True)
        ]
        graphs = self.one.program, self.other.program
        return MatchedGraphs(
            *graphs, pairs, lacking[0], lacking[1], (unpacking[0], unpacking[1]), within
        )

    def put_regions(self, partners: Mapping[Instruction, Instruction]) -> None:
        """Match those of these regions that lie in both graphs."""
        others = {entry.instruction: entry for entry in self.other.free if entry.region is not None}
        for entry in self.one.free:
            partner = partners.get(entry.instruction) if entry.instruction is not None else None
            if partner is not None and partner in others:
                other = others[partner]
                self._put(entry, other, "name" if entry.label == other.label else "structure")

    def by_names(self) -> None:
        self._by_tensor()
        self._by_name()

    def by_structure(self) -> None:
        self._by(MatchState.binding, "structure")
        while self._by(MatchState.structure, "structure") or self._by_result():
            pass

    def by_values(self) -> None:
        while self._by_single_shape() or self._by_correlation():
            self._by_structure()
        self._by(lambda side, entry: side.shape_of_untold(entry, self._rows), "shape")
        self._by_structure()

    @property
    def _rows(self) -> int:
        """How many rows both graphs have."""
        return min(self.one.rows, self.other.rows)

    def _put(self, one: Entry, other: Entry, how: How) -> None:
        self.found[one] = Matched(one, other, how)
        self.one.matched.add(one)
        self.other.matched.add(other)
        for mine, theirs in zip(one.outputs, other.outputs, strict=False):
            number = next(self.numbers)
            self.one.same.setdefault(mine, number)
            self.other.same.setdefault(theirs, number)

    def _by_tensor(self) -> None:
        """Matches floats of one tensor name that operations of other types or names give: a
        quantizer leaves the name to what it multiplies by the scale again, and that of the
        operation to the product of bytes.
        """
        if {self.one.run.model.dialect, self.other.run.model.dialect} != {"onnx"}:
            return
        named = {one.tensor: one for one in self.other.entries if one.tensor}
        for one in self.one.entries:
            other = named.get(one.tensor)
            if other is None or one.region or other.region or one.rounds or other.rounds:
                continue
            if one.type != other.type and _are_like_floats(
                self.one.shape(one), self.other.shape(other)
            ):
                self._put(one, other, "tensor")

    def _by_name(self) -> None:
        named = {one.label: one for one in self.other.entries}
        foreign = self.one.run.model.dialect != self.other.run.model.dialect
        for one in self.one.entries:
            other = named.get(one.label)
            if (
                other is None
                or {one, other} & (self.one.matched | self.other.matched)
                or one.region_class != other.region_class
            ):
                continue
            if (one.position in self.one.unpacks) != (other.position in self.other.unpacks):
                continue
            if (
                one.type == other.type
                or one.rounds
                or other.rounds
                or foreign
                or (one.region and other.region)
            ):
                self._put(one, other, "name")

    def _by_structure(self) -> None:
        while self._by(MatchState.structure, "structure"):
            pass

    def _by_result(self) -> bool:
        as_many = len(self.one.program.results) == len(self.other.program.results)
        return as_many and self._by(MatchState.result, "structure")

    def _by(self, key: Key, how: How) -> bool:
        """Matches the free entries that have one key on both sides, equally often; says whether
        there were any.

        Of several with one key those belong together whose values do, the others in the order in
        which they run.
        """
        pairs: list[tuple[Entry, Entry, How]] = []
        for mine, theirs in self._groups(key):
            if len(mine) == len(theirs):
                told = self._told(mine, theirs) if len(mine) > 1 else {}
                for one, other in _in_order(mine, theirs, told):
                    crossed = one in told and mine.index(one) != theirs.index(other)
                    pairs.append((one, other, "correlation" if crossed else how))
        for one, other, by in pairs:
            self._put(one, other, by)
        return bool(pairs)

    def _by_correlation(self) -> bool:
        """Matches those of one shape whose values are each other's best; says whether there were
        any.
        """
        pairs = [
            pair
            for mine, theirs in self._groups(MatchState.shape)
            for pair in self._told(mine, theirs).items()
        ]
        for one, other in pairs:
            self._put(one, other, "correlation")
        return bool(pairs)

    def _groups(self, key: Key) -> list[tuple[list[Entry], list[Entry]]]:
        """The free entries of both sides that have one key."""
        groups: dict[Hashable, tuple[list[Entry], list[Entry]]] = {}
        for number, side in enumerate((self.one, self.other)):
            for entry in side.free:
                if (own := key(side, entry)) is not None:
                    groups.setdefault(own, ([], []))[number].append(entry)
        return list(groups.values())

    def _told(self, mine: Sequence[Entry], theirs: Sequence[Entry]) -> dict[Entry, Entry]:
        """Which of several that look alike belong together, by their values, as far as those
        tell.
        """
        groups: dict[int, tuple[list[Entry], list[Entry]]] = {}
        for number, (side, entries) in enumerate(((self.one, mine), (self.other, theirs))):
            for entry in entries:
                if side.shape(entry) is not None and tells(
                    vector := side.numbers(entry, self._rows)
                ):
                    groups.setdefault(vector.size, ([], []))[number].append(entry)
        return {
            one: other
            for sides in groups.values()
            if max(map(len, sides)) <= _MOST_CANDIDATES
            for one, other in self._best(*sides)
        }

    def _best(
        self, mine: Sequence[Entry], theirs: Sequence[Entry]
    ) -> Iterator[tuple[Entry, Entry]]:
        vectors = (
            [self.one.numbers(one, self._rows) for one in mine],
            [self.other.numbers(one, self._rows) for one in theirs],
        )
        yield from ((mine[row], theirs[column]) for row, column in correlated(*vectors))

    def _by_single_shape(self) -> bool:
        """Matches where one entry of a shape is left on each side; says whether there were any."""
        pairs = [
            (mine[0], theirs[0])
            for mine, theirs in self._groups(MatchState.shape)
            if len(mine) == len(theirs) == 1
        ]
        for one, other in pairs:
            self._put(one, other, "shape")
        return bool(pairs)


def _are_like_floats(one: Hashable | None, other: Hashable | None) -> bool:
    """Whether two shapes, as a side tells them, are those of floats, and the same but for the
    operation.
    """
    return (
        isinstance(one, tuple)
        and isinstance(other, tuple)
        and one[1:] == other[1:]
        and one[2] == "f"
    )


def _in_order(
    mine: Sequence[Entry], theirs: Sequence[Entry], told: Mapping[Entry, Entry]
) -> Iterator[tuple[Entry, Entry]]:
    """Pairs of two sequences of one length: what is told of some, and the others one after the
    other.
    """
    taken = set(told.values())
    left = (other for other in theirs if other not in taken)
    yield from ((one, told[one] if one in told else next(left)) for one in mine)
