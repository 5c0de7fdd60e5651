"""Values that a person sets: what a run puts in place of a value, in one iteration of each loop around it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from engine.run.machine.regions import entering
from engine.run.plan.defaults import Defaults
from engine.run.plan.plan import LoopRegion, Plan, Program


@dataclass(frozen=True, slots=True, eq=False)
class Override:
    """The value of one slot in one row of a graph."""

    address: str
    program: Program
    slot: int
    loops: tuple[Program, ...]
    """The bodies of the loops around it, outermost first."""
    iterations: tuple[int, ...]
    """The iteration of each of them."""
    value: Any
    is_sure: bool = True
    """Its element type was known before the run."""

    def is_within(self, iterations: tuple[int, ...]) -> bool:
        """Whether it lies in these iterations of as many of the outermost loops around it."""
        return self.iterations[: len(iterations)] == iterations

    def put(self, values: list[Any]) -> None:
        """Sets the value; ``ValueError`` when it turns out to have another element type than what it replaces."""
        was, now = (getattr(value, "dtype", None) for value in (values[self.slot], self.value))
        if not self.is_sure and was != now:
            raise ValueError(f"{self.address} was to be set to a value of type {now}, and holds {was or 'no tensor'}")
        values[self.slot] = self.value


@dataclass(frozen=True, eq=False)
class Overrides:
    """All changes of one run."""

    items: tuple[Override, ...]

    @cached_property
    def by_program(self) -> Mapping[int, tuple[Override, ...]]:
        """Those in each graph, by program number."""
        found: defaultdict[int, list[Override]] = defaultdict(list)
        for change in self.items:
            found[change.program.index].append(change)
        return {index: tuple(changes) for index, changes in found.items()}

    def at(self, program: Program, iterations: tuple[int, ...], slot: int) -> Override | None:
        """The change of a slot in one row."""
        mine = self.by_program.get(program.index, ())
        return next((one for one in mine if one.slot == slot and one.iterations == iterations), None)

    def put(self, program: Program, iterations: tuple[int, ...], slots: Collection[int], values: list[Any]) -> None:
        """Sets those of these slots, in one row."""
        for change in self.by_program.get(program.index, ()):
            if change.slot in slots and change.iterations == iterations:
                change.put(values)

    def begin(self, plan: Plan, defaults: Defaults, program: Program, iterations: tuple[int, ...], values: list[Any]) -> None:
        """Sets what is there when a row begins: its Parameters and Consts, those that only another row changed as they were."""
        mine = [change for change in self.by_program.get(program.index, ()) if change.slot not in program.producer]
        for change in mine:
            _restore(plan, defaults, program, change.slot, values)
        self.put(program, iterations, [change.slot for change in mine], values)

    def next_in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> int | None:
        """The first iteration of the innermost of these open loops, not before the given one, in which anything is changed."""
        return min((number for number in self._in(loops, iterations) if number >= iterations[-1]), default=None)

    def last_in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> int:
        """The last iteration of the innermost of these open loops in which anything is changed; -1 for none."""
        return max(self._in(loops, iterations), default=-1)

    def _in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> Iterable[int]:
        depth = len(loops)
        for change in self.items:
            if change.loops[depth - 1 : depth] == (loops[-1],) and change.is_within(iterations[:-1]):
                yield change.iterations[depth - 1]

    def inside(self, program: Program, iterations: tuple[int, ...]) -> Overrides:
        """Those in what a row runs, its own apart, as they are named from there."""
        depth = len(iterations)
        found = [one for one in self.items if one.program is not program and one.is_within(iterations) and program in one.program.around()]
        return Overrides(tuple(replace(one, loops=one.loops[depth:], iterations=one.iterations[depth:]) for one in found))


def _restore(plan: Plan, defaults: Defaults, program: Program, slot: int, values: list[Any]) -> None:
    """Back to the value without changes, where nothing else gives it anew in every row."""
    region = program.parent.instructions[program.owner].region if program.parent else None
    if slot in plan.constant_numbers:
        values[slot] = plan.constant[slot]
    elif isinstance(region, LoopRegion):
        for parameter, source in region.invariants:
            if parameter == slot:
                values[slot] = entering(region, slot, values[source])
        for parameter, layer in region.unfed:
            if parameter == slot:
                values[slot] = defaults.parameter(program.address, layer)


def undo_constants(plan: Plan, program: Program, values: list[Any]) -> None:
    """The changed Consts in a graph, and in what lies in it, as the model has them."""
    for owner, slot in plan.changed_constants:
        if program in owner.around():
            values[slot] = plan.constant[slot]
