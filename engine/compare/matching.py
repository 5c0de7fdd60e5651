"""Which graphs and values of two runs belong together: by name, then by structure, then by shape and the correlation of their values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.compare.correlation import correlated, tells
from engine.compare.entries import Entry
from engine.compare.matched_side import Side
from engine.debug.run import Run
from engine.run.plan.numbers import Slot
from engine.run.plan.plan import Program, Region

How = Literal["name", "tensor", "structure", "shape", "correlation"]
Key = Callable[[Side, Entry], Hashable | None]
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
    """Two graphs that belong together, with the pairs of their entries and those that the other graph lacks."""

    one: Program
    other: Program
    pairs: tuple[Matched, ...]
    only_one: tuple[Entry, ...]
    only_other: tuple[Entry, ...]
    unpacking: tuple[tuple[Entry, ...], tuple[Entry, ...]]
    """Of each graph what only unpacks weights, for which the other has nothing of that name."""


def match(one: Run, other: Run) -> tuple[MatchedGraphs, ...]:
    """The graphs of two finished runs that belong together, outer ones first; the outermost graphs always do."""
    found: list[MatchedGraphs] = []
    waiting = [(one.plan.main, other.plan.main)]
    while waiting:
        mine, theirs = waiting.pop()
        graphs = _Matching(Side.of(one, mine), Side.of(other, theirs)).matched()
        found.append(graphs)
        inside = [bodies for pair in graphs.pairs for bodies in _bodies(pair.one.region, pair.other.region)]
        waiting += reversed(inside)
    return tuple(found)


def value_pairs(pair: Matched) -> Iterable[tuple[int, Slot, Slot]]:
    """The outputs of two that belong together: their number, and the slots."""
    return ((number, *slots) for number, slots in enumerate(zip(pair.one.outputs, pair.other.outputs, strict=False)))


def _bodies(one: Region | None, other: Region | None) -> Iterator[tuple[Program, Program]]:
    if one is not None and other is not None:
        yield from zip(one.programs, other.programs, strict=True)


@dataclass(slots=True, eq=False)
class _Matching:
    """Two graphs while what belongs together is looked for: the surest ways first, then what follows from the pairs they found."""

    one: Side
    other: Side
    found: dict[Entry, Matched] = field(default_factory=dict[Entry, Matched])

    def matched(self) -> MatchedGraphs:
        self._by_tensor()
        self._by_name()
        self._by(Side.binding, "structure")
        while self._by(Side.structure, "structure") or self._by_result():
            pass
        while self._by_single_shape() or self._by_correlation():
            self._by_structure()
        self._by(lambda side, entry: side.shape_of_untold(entry, self._rows), "shape")
        self._by_structure()
        pairs = tuple(self.found[one] for one in self.one.entries if one in self.found)
        lacking, unpacking = (self.one.lacking(), self.other.lacking()), (self.one.unpacking, self.other.unpacking)
        return MatchedGraphs(self.one.program, self.other.program, pairs, *lacking, unpacking)

    @property
    def _rows(self) -> int:
        """How many rows both graphs have."""
        return min(self.one.rows, self.other.rows)

    def _put(self, one: Entry, other: Entry, how: How) -> None:
        self.found[one] = Matched(one, other, how)
        self.one.matched.add(one)
        self.other.matched.add(other)
        for mine, theirs in zip(one.outputs, other.outputs, strict=False):
            number = len(self.one.same)
            self.one.same.setdefault(mine, number)
            self.other.same.setdefault(theirs, number)

    def _by_tensor(self) -> None:
        """Matches floats of one tensor name that operations of other types or names give: a quantizer leaves the name to what it
        multiplies by the scale again, and that of the operation to the product of bytes."""
        if {self.one.run.model.dialect, self.other.run.model.dialect} != {"onnx"}:
            return
        named = {one.tensor: one for one in self.other.entries if one.tensor}
        for one in self.one.entries:
            other = named.get(one.tensor)
            if other is None or one.region or other.region or one.rounds or other.rounds:
                continue
            if one.type != other.type and _are_like_floats(self.one.shape(one), self.other.shape(other)):
                self._put(one, other, "tensor")

    def _by_name(self) -> None:
        named = {one.label: one for one in self.other.entries}
        foreign = self.one.run.model.dialect != self.other.run.model.dialect
        for one in self.one.entries:
            other = named.get(one.label)
            if other is None or {one, other} & (self.one.matched | self.other.matched) or one.region_class != other.region_class:
                continue
            if (one.position in self.one.unpacks) != (other.position in self.other.unpacks):
                continue
            if one.type == other.type or one.rounds or other.rounds or foreign or (one.region and other.region):
                self._put(one, other, "name")

    def _by_structure(self) -> None:
        while self._by(Side.structure, "structure"):
            pass

    def _by_result(self) -> bool:
        as_many = len(self.one.program.results) == len(self.other.program.results)
        return as_many and self._by(Side.result, "structure")

    def _by(self, key: Key, how: How) -> bool:
        """Matches the free entries that have one key on both sides, equally often; says whether there were any.

        Of several with one key those belong together whose values do, the others in the order in which they run.
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
        """Matches those of one shape whose values are each other's best; says whether there were any."""
        pairs = [pair for mine, theirs in self._groups(Side.shape) for pair in self._told(mine, theirs).items()]
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
        """Which of several that look alike belong together, by their values, as far as those tell."""
        groups: dict[int, tuple[list[Entry], list[Entry]]] = {}
        for number, (side, entries) in enumerate(((self.one, mine), (self.other, theirs))):
            for entry in entries:
                if side.shape(entry) is not None and tells(vector := side.numbers(entry, self._rows)):
                    groups.setdefault(vector.size, ([], []))[number].append(entry)
        return {one: other for sides in groups.values() if max(map(len, sides)) <= _MOST_CANDIDATES for one, other in self._best(*sides)}

    def _best(self, mine: Sequence[Entry], theirs: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
        vectors = [self.one.numbers(one, self._rows) for one in mine], [self.other.numbers(one, self._rows) for one in theirs]
        yield from ((mine[row], theirs[column]) for row, column in correlated(*vectors))

    def _by_single_shape(self) -> bool:
        """Matches where one entry of a shape is left on each side; says whether there were any."""
        pairs = [(mine[0], theirs[0]) for mine, theirs in self._groups(Side.shape) if len(mine) == len(theirs) == 1]
        for one, other in pairs:
            self._put(one, other, "shape")
        return bool(pairs)


def _are_like_floats(one: Hashable | None, other: Hashable | None) -> bool:
    """Whether two shapes, as a side tells them, are those of floats, and the same but for the operation."""
    return isinstance(one, tuple) and isinstance(other, tuple) and one[1:] == other[1:] and one[2] == "f"


def _in_order(mine: Sequence[Entry], theirs: Sequence[Entry], told: Mapping[Entry, Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Pairs of two sequences of one length: what is told of some, and the others one after the other."""
    taken = set(told.values())
    left = (other for other in theirs if other not in taken)
    yield from ((one, told[one] if one in told else next(left)) for one in mine)
