"""Values that a person sets: what a run puts in place of a value, in one iteration of each loop
around it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from loopscope.executor.plan.invariants import constant_of
from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.plan.plan import Plan, Program


@dataclass(frozen=True, slots=True, eq=False)
class Override:
    """The value of one slot in one row of a graph."""

    address: str
    program: Program
    slot: Slot
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
        """Sets the value; ``ValueError`` when it turns out to have another element type than
        what it replaces.
        """
        was, now = (getattr(value, "dtype", None) for value in (values[self.slot], self.value))
        if not self.is_sure and was != now:
            raise ValueError(
                f"{self.address} was to be set to a value of type {now}, and holds {was or 'what is not a tensor'}"
            )
        values[self.slot] = self.value


@dataclass(frozen=True, eq=False)
class Overrides:
    """A plan, and what a person sets in one run of it."""

    plan: Plan
    items: tuple[Override, ...] = ()

    @cached_property
    def by_program(self) -> Mapping[ProgramIndex, tuple[Override, ...]]:
        """Those in each graph, by program number."""
        found: defaultdict[ProgramIndex, list[Override]] = defaultdict(list)
        for one in self.items:
            found[one.program.index].append(one)
        return {index: tuple(some) for index, some in found.items()}

    @cached_property
    def slots(self) -> frozenset[Slot]:
        """Slots that are set somewhere: they are not the same in all rows, whatever the model
        says.
        """
        return frozenset(one.slot for one in self.items)

    @cached_property
    def constants(self) -> tuple[tuple[Program, Slot], ...]:
        """The slots of Consts in bodies that are set somewhere, with their graphs."""
        bodies = (
            [program for program in self.plan.programs if program.parent is not None]
            if self.items
            else []
        )
        return tuple(
            (body, slot)
            for body in bodies
            for slot in sorted(self.slots & self.plan.constant_numbers & body.owned)
        )

    def constant_of(self, program: Program, slot: Slot) -> Any | None:
        """The value of a slot that equals a Const in the whole run; None for any other."""
        return constant_of(self.plan, program, slot, self.slots)

    def at(self, program: Program, iterations: tuple[int, ...], slot: Slot) -> Override | None:
        """What is set of a slot in one row."""
        mine = self.by_program.get(program.index, ())
        return next(
            (one for one in mine if one.slot == slot and one.iterations == iterations), None
        )

    def next_in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> int | None:
        """The first iteration of the innermost of these open loops, not before the given one, in
        which anything is set.
        """
        return min(
            (number for number in self._in(loops, iterations) if number >= iterations[-1]),
            default=None,
        )

    def last_in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> int:
        """The last iteration of the innermost of these open loops in which anything is set; -1
        for none.
        """
        return max(self._in(loops, iterations), default=-1)

    def _in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> Iterable[int]:
        depth = len(loops)
        for one in self.items:
            if one.loops[depth - 1 : depth] == (loops[-1],) and one.is_within(iterations[:-1]):
                yield one.iterations[depth - 1]

    def inside(self, program: Program, iterations: tuple[int, ...]) -> Overrides:
        """Those in what a row runs, its own apart, as they are named from there."""
        depth = len(iterations)
        found = [
            one
            for one in self.items
            if one.program is not program
            and one.is_within(iterations)
            and program in one.program.around()
        ]
        return Overrides(
            self.plan,
            tuple(
                replace(one, loops=one.loops[depth:], iterations=one.iterations[depth:])
                for one in found
            ),
        )
