"""One of two graphs while they are matched: which of its entries have a partner, and what the
others look like.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from loopscope.comparison.correlation import tells
from loopscope.comparison.deviation import is_comparable
from loopscope.comparison.entries import Entry, entries_of
from loopscope.debug.run import Run
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Branch, CallRegion, Program
from loopscope.executor.plan.unpacked_weights import unpacking
from loopscope.ops.values import is_tensor

_MOST_NUMBERS, _MOST_ROWS = 1024, 256
"""Of a value that are correlated: from its first rows, evenly from each."""


@dataclass(slots=True, eq=False)
class MatchState:
    """A graph of one of the runs."""

    run: Run
    program: Program
    entries: tuple[Entry, ...]
    matched: set[Entry] = field(default_factory=set[Entry])
    same: dict[Slot, int] = field(default_factory=dict[Slot, int])
    """A number for each value that has a partner; the partner has the same number on the other
    side.
    """
    unpacks: frozenset[int] = frozenset()
    """The instructions that only unpack weights, which are no operations of the model: they have
    a partner of their name, or none.
    """
    reserved: set[Entry] = field(default_factory=set[Entry])
    """Entries that are free, and that only their names may match: a branch of the other model
    has an operation of that name.
    """
    alias: dict[Slot, Slot] = field(default_factory=dict[Slot, Slot])
    """Values that are those of another slot: Parameters of opened branches, and what the nodes
    of these give.
    """
    _numbers: dict[Entry, np.ndarray] = field(default_factory=dict[Entry, np.ndarray])

    @staticmethod
    def of(run: Run, program: Program) -> MatchState:
        """Of a graph of which nothing has a partner yet."""
        return MatchState(
            run, program, entries_of(program), unpacks=frozenset(unpacking(run.plan, program))
        )

    def opened(self, entry: Entry, branch: Branch) -> MatchState:
        """Return the side of a branch of this graph as if its operations were in place of the
        node.
        """
        self.alias.update(branch.bindings)
        taken = self.run.timeline.executions.rows[branch.program.index] == self.rows
        if taken:
            self.alias.update(zip(entry.outputs, branch.results, strict=False))
        operations = tuple(one for one in entries_of(branch.program) if one.instruction is not None)
        unpacks = frozenset(unpacking(self.run.plan, branch.program))
        return MatchState(
            self.run, branch.program, operations, same=self.same, unpacks=unpacks, alias=self.alias
        )

    @property
    def free(self) -> list[Entry]:
        """The entries that have no partner yet."""
        taken = self.matched | self.reserved
        return [
            one for one in self.entries if one not in taken and one.position not in self.unpacks
        ]

    @property
    def unpacking(self) -> tuple[Entry, ...]:
        """Those that only unpack weights, and have no partner."""
        return tuple(
            one for one in self.entries if one not in self.matched and one.position in self.unpacks
        )

    @property
    def rows(self) -> int:
        """How often the graph ran."""
        return self.run.timeline.executions.rows[self.program.index]

    def lacking(self) -> tuple[Entry, ...]:
        """The free entries that the other model really lacks.

        Neither a rounding is one of those nor the value that it rounds: that value belongs with the
        rounded one.
        """
        rounded = {
            slot
            for one in self.entries
            if one.rounds and one.instruction
            for slot in one.instruction.inputs
        }
        return tuple(
            one
            for one in self.free
            if one.outputs and not one.rounds and not rounded.issuperset(one.outputs)
        )

    def binding(self, entry: Entry) -> Hashable | None:
        """What a Parameter receives: a body's by the kind of its binding, a model's as an input;
        None for operations.
        """
        if entry.instruction is not None:
            return None
        loop = self.program.loop
        bound = loop.binding.get(entry.outputs[0]) if loop is not None else None
        return "Parameter", type(bound).__name__

    def structure(self, entry: Entry) -> Hashable | None:
        """The operation and which values with partners it reads, any Const being like any other;
        None where an input has no partner.
        """
        if entry.instruction is None:
            return None
        constants = self.run.plan.constant_numbers
        slots = [self._meant(slot) for slot in entry.instruction.inputs if slot]
        read = [-1 if slot in constants else self.same.get(slot) for slot in slots]
        if None in read or all(number == -1 for number in read):
            return None
        return entry.type, entry.region_class, tuple(read), len(entry.outputs)

    def result(self, entry: Entry) -> Hashable | None:
        """The operation and which result of the graph it gives; None where it gives none."""
        results = list(self.program.results.values())
        place = next((number for number, slot in enumerate(results) if slot in entry.outputs), None)
        return None if place is None else (entry.type, entry.region_class, place)

    def shape(self, entry: Entry) -> Hashable | None:
        """The operation with the type and shape of its first value, all floats being one type;
        None where it gives nothing to compare.
        """
        if isinstance(entry.region, CallRegion) or not entry.outputs or not self.rows:
            return None
        value = self._value(entry, 0)
        if not is_tensor(value) or not is_comparable(array := np.asarray(value)):
            return None
        kind = array.dtype.kind if array.dtype.kind in "biu" else "f"
        return entry.region_class or entry.type, len(entry.outputs), kind, array.shape

    def shape_of_untold(self, entry: Entry, rows: int) -> Hashable | None:
        """The shape of values of which a correlation tells nothing: single numbers, and what is
        the same everywhere.
        """
        key = self.shape(entry)
        return key if key is not None and not tells(self.numbers(entry, rows)) else None

    def numbers(self, entry: Entry, rows: int) -> np.ndarray:
        """Some numbers of an entry's first values, of at most as many as ``rows``, which stays
        the same from call to call.
        """
        if entry not in self._numbers:
            first = np.asarray(self._value(entry, 0)).astype(np.float64)
            every = max(1, -(-first.size // _MOST_NUMBERS))
            some = [first.reshape(-1)[::every]]
            for row in range(1, min(rows, _MOST_ROWS, _MOST_NUMBERS // max(some[0].size, 1))):
                value = self._value(entry, row)
                if not is_tensor(value) or (array := np.asarray(value)).shape != first.shape:
                    break
                some.append(array.astype(np.float64).reshape(-1)[::every])
            self._numbers[entry] = np.concatenate(some)
        return self._numbers[entry]

    def _meant(self, slot: Slot) -> Slot:
        while slot in self.alias:
            slot = self.alias[slot]
        return slot

    def _value(self, entry: Entry, row: int) -> object:
        return self.run.values.get(self.run.timeline, self.program, row, entry.outputs[0])
