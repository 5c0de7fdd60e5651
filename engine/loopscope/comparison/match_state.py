"""Matching state of one of two graphs: which entries have a partner, and the properties used to
find partners.
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

_MAX_NUMBERS, _MAX_ROWS = 1024, 256
"""Maximum numbers of a value to correlate: from its first rows, sampled evenly from each row."""


@dataclass(slots=True, eq=False)
class MatchState:
    """Matching state of a graph of one of the runs."""

    run: Run
    program: Program
    entries: tuple[Entry, ...]
    matched: set[Entry] = field(default_factory=set[Entry])
    same: dict[Slot, int] = field(default_factory=dict[Slot, int])
    """Number of each value that has a partner; the partner has the same number in its own graph."""
    unpacks: frozenset[int] = frozenset()
    """Instructions that only unpack weights and are not operations of the model; only names match
    them.
    """
    reserved: set[Entry] = field(default_factory=set[Entry])
    """Unmatched entries that only their names may match.

    A branch of the other model contains an operation of the same name.
    """
    alias: dict[Slot, Slot] = field(default_factory=dict[Slot, Slot])
    """Slots that stand for another slot: Parameters of opened branches, and outputs of their
    nodes.
    """
    _numbers: dict[Entry, np.ndarray] = field(default_factory=dict[Entry, np.ndarray])

    @staticmethod
    def of(run: Run, program: Program) -> MatchState:
        """Return the state of a graph without matches."""
        return MatchState(
            run, program, entries_of(program), unpacks=frozenset(unpacking(run.plan, program))
        )

    def opened(self, entry: Entry, branch: Branch) -> MatchState:
        """Return the state of a branch of this graph, as if its operations replaced the node."""
        self.alias.update(branch.bindings)
        always_runs = self.run.timeline.executions.rows[branch.program.index] == self.rows
        if always_runs:
            self.alias.update(zip(entry.outputs, branch.results, strict=False))
        operations = tuple(
            inner for inner in entries_of(branch.program) if inner.instruction is not None
        )
        unpacks = frozenset(unpacking(self.run.plan, branch.program))
        return MatchState(
            self.run, branch.program, operations, same=self.same, unpacks=unpacks, alias=self.alias
        )

    @property
    def unmatched(self) -> list[Entry]:
        """Entries without a partner."""
        excluded = self.matched | self.reserved
        return [
            entry
            for entry in self.entries
            if entry not in excluded and entry.position not in self.unpacks
        ]

    @property
    def unpacking(self) -> tuple[Entry, ...]:
        """Entries without a partner that only unpack weights."""
        return tuple(
            entry
            for entry in self.entries
            if entry not in self.matched and entry.position in self.unpacks
        )

    @property
    def rows(self) -> int:
        """Number of executions of the graph."""
        return self.run.timeline.executions.rows[self.program.index]

    def missing(self) -> tuple[Entry, ...]:
        """Return the unmatched entries that the other model does not have.

        A rounding, and the value that it rounds, are excluded: that value belongs to the rounded
        one.
        """
        rounded = {
            slot
            for entry in self.entries
            if entry.rounds and entry.instruction
            for slot in entry.instruction.inputs
        }
        return tuple(
            entry
            for entry in self.unmatched
            if entry.outputs and not entry.rounds and not rounded.issuperset(entry.outputs)
        )

    def binding(self, entry: Entry) -> Hashable | None:
        """Return the kind of a body Parameter's binding, or model input; None for operations."""
        if entry.instruction is not None:
            return None
        loop = self.program.loop
        bound = loop.binding.get(entry.outputs[0]) if loop is not None else None
        return "Parameter", type(bound).__name__

    def structure(self, entry: Entry) -> Hashable | None:
        """Return the operation and the numbers of the matched values that it reads; all Consts are
        alike.

        Return None if an input does not have a partner.
        """
        if entry.instruction is None:
            return None
        constants = self.run.plan.constant_numbers
        slots = [self._resolve_alias(slot) for slot in entry.instruction.inputs if slot]
        read = [-1 if slot in constants else self.same.get(slot) for slot in slots]
        if None in read or all(number == -1 for number in read):
            return None
        return entry.type, entry.region_class, tuple(read), len(entry.outputs)

    def result(self, entry: Entry) -> Hashable | None:
        """Return the operation and the index of the graph result that it computes; None if it
        computes none.
        """
        results = list(self.program.results.values())
        index = next((number for number, slot in enumerate(results) if slot in entry.outputs), None)
        return None if index is None else (entry.type, entry.region_class, index)

    def shape(self, entry: Entry) -> Hashable | None:
        """Return the operation with type and shape of its first value; all floats are one type.

        Return None if there is nothing to compare.
        """
        if isinstance(entry.region, CallRegion) or not entry.outputs or not self.rows:
            return None
        value = self._value(entry, 0)
        if not is_tensor(value) or not is_comparable(array := np.asarray(value)):
            return None
        kind = array.dtype.kind if array.dtype.kind in "biu" else "f"
        return entry.region_class or entry.type, len(entry.outputs), kind, array.shape

    def shape_if_uncorrelated(self, entry: Entry, rows: int) -> Hashable | None:
        """Return the shape of a value that correlation cannot identify: a single number or a
        constant tensor.

        Return None for other values.
        """
        key = self.shape(entry)
        return key if key is not None and not tells(self.numbers(entry, rows)) else None

    def numbers(self, entry: Entry, rows: int) -> np.ndarray:
        """Return a sample of an entry's values in at most ``rows`` rows, cached; ``rows`` must not
        vary between calls.
        """
        if entry not in self._numbers:
            first = np.asarray(self._value(entry, 0)).astype(np.float64)
            stride = max(1, -(-first.size // _MAX_NUMBERS))
            samples = [first.reshape(-1)[::stride]]
            for row in range(1, min(rows, _MAX_ROWS, _MAX_NUMBERS // max(samples[0].size, 1))):
                value = self._value(entry, row)
                if not is_tensor(value) or (array := np.asarray(value)).shape != first.shape:
                    break
                samples.append(array.astype(np.float64).reshape(-1)[::stride])
            self._numbers[entry] = np.concatenate(samples)
        return self._numbers[entry]

    def _resolve_alias(self, slot: Slot) -> Slot:
        while slot in self.alias:
            slot = self.alias[slot]
        return slot

    def _value(self, entry: Entry, row: int) -> object:
        return self.run.values.get(self.run.timeline, self.program, row, entry.outputs[0])
