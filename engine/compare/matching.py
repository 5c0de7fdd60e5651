"""Which graphs and values of two plans belong together: by name, then by structure, then by shape and the correlation of their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.compare.correlation import correlated, tells
from engine.compare.deviation import is_comparable
from engine.debug.run import Run
from engine.ops.narrowing import ROUND_TO
from engine.ops.values import is_tensor
from engine.run.plan.numbers import Slot
from engine.run.plan.plan import CallRegion, IfRegion, Instruction, LoopRegion, Program, Region

How = Literal["name", "structure", "shape", "correlation"]
_MOST_NUMBERS, _MOST_ROWS = 1024, 256
"""Of a value that are correlated: from its first rows, evenly from each."""
_MOST_CANDIDATES = 1000
"""Of one shape, whose correlations are all computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What gives values in a graph: an operation, or a Parameter."""

    label: str
    """Its segment in addresses."""
    outputs: tuple[Slot, ...]
    instruction: Instruction | None = None
    position: int = -1
    """Number of the instruction; -1 for a Parameter."""

    @property
    def type(self) -> str:
        """The operation; what a Parameter is called in files, for one."""
        return "Parameter" if self.instruction is None else self.instruction.node.type

    @property
    def region(self) -> Region | None:
        return None if self.instruction is None else self.instruction.region

    @property
    def rounds(self) -> bool:
        """Whether it stands for another value, rounded."""
        return self.type == ROUND_TO.name


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Two that belong together."""

    one: Entry
    other: Entry
    how: How


@dataclass(frozen=True, slots=True, eq=False)
class MatchedGraphs:
    """Two graphs that belong together, with what does in them and what is left over."""

    one: Program
    other: Program
    pairs: tuple[Matched, ...]
    only_one: tuple[Entry, ...]
    only_other: tuple[Entry, ...]


def match(one: Run, other: Run) -> tuple[MatchedGraphs, ...]:
    """The graphs of two finished runs that belong together, outer ones first; the outermost graphs always do."""
    found: list[MatchedGraphs] = []
    waiting = [(one.plan.main, other.plan.main)]
    while waiting:
        programs = waiting.pop()
        graphs = _Graphs((one, other), programs, (entries(programs[0]), entries(programs[1]))).matched()
        found.append(graphs)
        inside = [bodies for pair in graphs.pairs for bodies in _bodies(pair.one.region, pair.other.region)]
        waiting += reversed(inside)
    return tuple(found)


def entries(program: Program) -> tuple[Entry, ...]:
    """All that gives values in a graph, Consts apart, in the order in which it runs."""
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    parameters = [Entry(labels[layer], (slot,)) for layer, slot in program.parameters.items()]
    return (*parameters, *(Entry(one.label, one.outputs, one, number) for number, one in enumerate(program.instructions)))


def _bodies(one: Region | None, other: Region | None) -> Iterator[tuple[Program, Program]]:
    if one is not None and other is not None:
        yield from zip(one.programs, other.programs, strict=True)


def _region_class(region: Region | None) -> str:
    match region:
        case None:
            return ""
        case LoopRegion():
            return "loop"
        case IfRegion():
            return "If"
        case CallRegion():
            return "function"


@dataclass(slots=True, eq=False)
class _Graphs:
    """Two graphs while what belongs together is looked for."""

    runs: tuple[Run, Run]
    programs: tuple[Program, Program]
    entries: tuple[tuple[Entry, ...], tuple[Entry, ...]]
    found: dict[Entry, Matched] = field(default_factory=dict[Entry, Matched])
    """By the first's."""
    taken: set[Entry] = field(default_factory=set[Entry])
    """Of the other's."""
    same: tuple[dict[Slot, int], dict[Slot, int]] = field(default_factory=lambda: ({}, {}))
    """A number for each value of either that belongs to one of the other."""
    numbers: dict[Entry, np.ndarray] = field(default_factory=dict[Entry, np.ndarray])
    """Those that are correlated."""

    def matched(self) -> MatchedGraphs:
        self._by_name()
        self._by(self._binding, "structure")
        while self._by(self._structure, "structure") or self._by(self._result, "structure"):
            pass
        while self._by(self._only_of_its_shape(), "shape") or self._by_correlation():
            self._by_structure()
        self._by(self._untold, "shape")
        self._by_structure()
        left = [self._left(side) for side in (0, 1)]
        pairs = tuple(self.found[one] for one in self.entries[0] if one in self.found)
        return MatchedGraphs(*self.programs, pairs, tuple(left[0]), tuple(left[1]))

    def _by_structure(self) -> None:
        while self._by(self._structure, "structure"):
            pass

    def _put(self, one: Entry, other: Entry, how: How) -> None:
        self.found[one] = Matched(one, other, how)
        self.taken.add(other)
        for slots in zip(one.outputs, other.outputs, strict=False):
            number = len(self.same[0])
            for side, slot in enumerate(slots):
                self.same[side].setdefault(slot, number)

    def _free(self, side: int) -> list[Entry]:
        gone = self.found if side == 0 else self.taken
        return [one for one in self.entries[side] if one not in gone]

    def _by_name(self) -> None:
        named = {one.label: one for one in self.entries[1]}
        foreign = self.runs[0].model.dialect != self.runs[1].model.dialect
        for one in self.entries[0]:
            other = named.get(one.label)
            if other is None or _region_class(one.region) != _region_class(other.region):
                continue
            if one.type == other.type or one.rounds or other.rounds or foreign or (one.region and other.region):
                self._put(one, other, "name")

    def _by(self, key: Callable[[int, Entry], Hashable | None], how: How) -> bool:
        """Matches what has one key on both sides, equally often; says whether there was any.

        Of several with one key those belong together whose values do, the others in the order in which they run.
        """
        sides: list[dict[Hashable, list[Entry]]] = [{}, {}]
        for side, groups in enumerate(sides):
            for entry in self._free(side):
                if (own := key(side, entry)) is not None:
                    groups.setdefault(own, []).append(entry)
        pairs: list[tuple[Entry, Entry, How]] = [
            (one, other, "correlation" if one in told and mine.index(one) != theirs.index(other) else how)
            for own, mine in sides[0].items()
            if len(mine) == len(theirs := sides[1].get(own, []))
            for told in [self._told(mine, theirs) if len(mine) > 1 else {}]
            for one, other in _in_order(mine, theirs, told)
        ]
        for one, other, by in pairs:
            self._put(one, other, by)
        return bool(pairs)

    def _told(self, mine: Sequence[Entry], theirs: Sequence[Entry]) -> dict[Entry, Entry]:
        """Which of several that look alike belong together, by their values, as far as those tell."""
        groups: dict[int, tuple[list[Entry], list[Entry]]] = {}
        for side, entries_of_side in enumerate((mine, theirs)):
            for entry in entries_of_side:
                if self._shape(side, entry) is not None and tells(numbers := self._numbers(side, entry)):
                    groups.setdefault(numbers.size, ([], []))[side].append(entry)
        return {
            sides[0][one]: sides[1][other]
            for sides in groups.values()
            if max(map(len, sides)) <= _MOST_CANDIDATES
            for one, other in correlated([self._numbers(0, each) for each in sides[0]], [self._numbers(1, each) for each in sides[1]])
        }

    def _binding(self, side: int, entry: Entry) -> Hashable | None:
        """What a Parameter receives: in a body by its kind, of the model as an input."""
        if entry.instruction is not None:
            return None
        loop = self.programs[side].loop
        bound = loop.binding.get(entry.outputs[0]) if loop is not None else None
        return "Parameter", type(bound).__name__

    def _structure(self, side: int, entry: Entry) -> Hashable | None:
        """The operation, and which values that belong together it reads; a Const is any Const."""
        if entry.instruction is None:
            return None
        plan, same = self.runs[side].plan, self.same[side]
        read = [-1 if slot in plan.constant_numbers else same.get(slot) for slot in entry.instruction.inputs if slot]
        if None in read or all(number == -1 for number in read):
            return None
        return entry.type, _region_class(entry.region), tuple(read), len(entry.outputs)

    def _result(self, side: int, entry: Entry) -> Hashable | None:
        """The operation, and which result of the graph it is."""
        results = list(self.programs[side].results.values())
        place = next((number for number, slot in enumerate(results) if slot in entry.outputs), None)
        if place is None or len({len(program.results) for program in self.programs}) > 1:
            return None
        return entry.type, _region_class(entry.region), place

    def _shape(self, side: int, entry: Entry) -> Hashable | None:
        """The operation, and type and shape of what it gave the first time; of floats any type."""
        if isinstance(entry.region, CallRegion) or not entry.outputs or not self._rows(side):
            return None
        value = self._value(side, entry, 0)
        if not is_tensor(value) or not is_comparable(array := np.asarray(value)):
            return None
        kind = array.dtype.kind if array.dtype.kind in "biu" else "f"
        return _region_class(entry.region) or entry.type, len(entry.outputs), kind, array.shape

    def _only_of_its_shape(self) -> Callable[[int, Entry], Hashable | None]:
        """The shape, where one is left of it on each side."""
        keys = [{one: self._shape(side, one) for one in self._free(side)} for side in (0, 1)]
        counts = [Counter(of_side.values()) for of_side in keys]
        single = {key for key in counts[0] if counts[0][key] == counts[1][key] == 1}
        return lambda side, entry: key if (key := keys[side][entry]) in single else None

    def _untold(self, side: int, entry: Entry) -> Hashable | None:
        """The shape of values of which a correlation tells nothing: single numbers, and what is the same everywhere."""
        key = self._shape(side, entry)
        return key if key is not None and not tells(self._numbers(side, entry)) else None

    def _by_correlation(self) -> bool:
        """Matches those of one shape whose values are each other's best; says whether there was any."""
        groups: dict[Hashable, tuple[list[Entry], list[Entry]]] = {}
        for side in (0, 1):
            for entry in self._free(side):
                if (key := self._shape(side, entry)) is not None:
                    groups.setdefault(key, ([], []))[side].append(entry)
        found = {one: other for sides in groups.values() for one, other in self._told(*sides).items()}
        for one, other in found.items():
            self._put(one, other, "correlation")
        return bool(found)

    def _numbers(self, side: int, entry: Entry) -> np.ndarray:
        """Some numbers of what an entry gave, from as many of its first rows as both graphs have."""
        if entry not in self.numbers:
            rows = min(self._rows(0), self._rows(1), _MOST_ROWS)
            first = np.asarray(self._value(side, entry, 0)).astype(np.float64)
            every = -(-first.size // _MOST_NUMBERS)
            some = [first.reshape(-1)[::every]]
            for row in range(1, min(rows, _MOST_NUMBERS // max(some[0].size, 1))):
                value = self._value(side, entry, row)
                if not is_tensor(value) or (array := np.asarray(value)).shape != first.shape:
                    break
                some.append(array.astype(np.float64).reshape(-1)[::every])
            self.numbers[entry] = np.concatenate(some)
        return self.numbers[entry]

    def _rows(self, side: int) -> int:
        return self.runs[side].timeline.executions.rows[self.programs[side].index]

    def _value(self, side: int, entry: Entry, row: int) -> object:
        run = self.runs[side]
        return run.values.get(run.timeline, self.programs[side], row, entry.outputs[0])

    def _left(self, side: int) -> Iterator[Entry]:
        """What belongs to nothing; a value before it is rounded belongs to the rounded one, and no model lacks a rounding."""
        rounded = {slot for one in self.entries[side] if one.rounds and one.instruction for slot in one.instruction.inputs}
        yield from (one for one in self._free(side) if one.outputs and not one.rounds and not rounded.issuperset(one.outputs))


def _in_order(mine: Sequence[Entry], theirs: Sequence[Entry], told: Mapping[Entry, Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Pairs of two sequences of one length: what is told of some, and the others one after the other."""
    taken = set(told.values())
    left = (other for other in theirs if other not in taken)
    yield from ((one, told[one] if one in told else next(left)) for one in mine)


def value_pairs(pair: Matched) -> Iterable[tuple[int, Slot, Slot]]:
    """The outputs of two that belong together: their number, and the slots."""
    return ((number, *slots) for number, slots in enumerate(zip(pair.one.outputs, pair.other.outputs, strict=False)))


def named(entry: Entry, output: int) -> str:
    """What addresses call an output."""
    return f"{entry.label}:{output}" if output else entry.label
