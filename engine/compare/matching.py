"""Which graphs and values of two plans belong together: by name, then by structure, then by type and shape."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.debug.run import Run
from engine.ops.narrowing import ROUND_TO
from engine.ops.values import is_tensor
from engine.run.plan.numbers import Slot
from engine.run.plan.plan import CallRegion, IfRegion, Instruction, LoopRegion, Program, Region

How = Literal["name", "structure", "shape"]


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

    def matched(self) -> MatchedGraphs:
        self._by_name()
        self._by(self._binding, "structure")
        while self._by(self._structure, "structure") or self._by(self._result, "structure"):
            pass
        self._by(self._shape, "shape")
        while self._by(self._structure, "structure"):
            pass
        left = [self._left(side) for side in (0, 1)]
        pairs = tuple(self.found[one] for one in self.entries[0] if one in self.found)
        return MatchedGraphs(*self.programs, pairs, tuple(left[0]), tuple(left[1]))

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
        """Matches what has one key on both sides, equally often, in the order in which it runs; says whether there was any."""
        sides: list[dict[Hashable, list[Entry]]] = [{}, {}]
        for side, groups in enumerate(sides):
            for entry in self._free(side):
                if (own := key(side, entry)) is not None:
                    groups.setdefault(own, []).append(entry)
        pairs = [
            pair
            for own, mine in sides[0].items()
            if len(mine) == len(sides[1].get(own, ()))
            for pair in zip(mine, sides[1][own], strict=True)
        ]
        for one, other in pairs:
            self._put(one, other, how)
        return bool(pairs)

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
        """The operation, and type and shape of what it gave the first time."""
        run, program = self.runs[side], self.programs[side]
        if entry.region is not None or not entry.outputs or not run.timeline.executions.rows[program.index]:
            return None
        value = run.values.get(run.timeline, program, 0, entry.outputs[0])
        if not is_tensor(value):
            return None
        array = np.asarray(value)
        return entry.type, str(array.dtype), array.shape

    def _left(self, side: int) -> Iterator[Entry]:
        """What belongs to nothing; a value before it is rounded belongs to the rounded one, and no model lacks a rounding."""
        rounded = {slot for one in self.entries[side] if one.rounds and one.instruction for slot in one.instruction.inputs}
        yield from (one for one in self._free(side) if one.outputs and not one.rounds and not rounded.issuperset(one.outputs))


def value_pairs(pair: Matched) -> Iterable[tuple[int, Slot, Slot]]:
    """The outputs of two that belong together: their number, and the slots."""
    return ((number, *slots) for number, slots in enumerate(zip(pair.one.outputs, pair.other.outputs, strict=False)))


def named(entry: Entry, output: int) -> str:
    """What addresses call an output."""
    return f"{entry.label}:{output}" if output else entry.label
