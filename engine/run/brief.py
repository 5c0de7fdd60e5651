"""Brief loops inside others: what each of their executions begins with is written down, and every row in it follows from that.

A row for each iteration would be most of what a nest records. Where all that is carried follows from its initial values bit for bit,
through Python's operators alone, the state of any iteration is computed when somebody looks, for many executions of the loop at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.run.columns import Rows
from engine.run.derived import Derived
from engine.run.plan import LoopRegion

_MOST_ITERATIONS = 1024
"""Of a loop that is brief: so many are soon computed again where an execution has not ended."""
_FEWEST_EXECUTIONS = 16
"""Of fewer, computing one iteration of all takes as long as recording them would have taken."""
_ROWS_AT_ONCE = 1 << 20
_MOST_BLOCKS = 8
_MOST_IN_ONE = 1 << 24
"""Rows of which there is one column."""
_Key = tuple[bool, int, int]
"""Of a block: whether its executions have ended, every how many one is kept, and its number."""


def is_brief(iterations: int, executions: int) -> bool:
    """Whether a loop of so many iterations at most, in one that has so many at most, is worth while."""
    return 0 < iterations <= _MOST_ITERATIONS and executions >= _FEWEST_EXECUTIONS


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The executions that had an iteration so far."""

    of: tuple[int, int, int]
    """How many have ended, those without an iteration too; how many have begun; and every how many one is kept."""
    starts: np.ndarray
    """The first row of each that has ended, and of the one after."""
    given: Mapping[int, np.ndarray] | None
    """What they began with, by slot; None where that is not of the types that it should be."""

    @property
    def ended(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """The carried state of all rows of some executions."""

    executions: int
    starts: np.ndarray
    """The first row of each in the columns."""
    columns: Mapping[int, np.ndarray]


@dataclass(eq=False)
class Brief:
    """What is written down of one brief loop, from some execution on, and what follows from it."""

    region: LoopRegion
    step: Derived
    """What makes the carried state of the next iteration."""
    types: Mapping[int, np.dtype]
    """Of the Parameters that an execution begins with: those carried, and invariant ones that the step needs."""
    counts: list[int]
    """How many iterations each execution had that has ended."""
    bound: int
    first_row: int
    first_execution: int = field(init=False)
    entering: Rows = field(init=False)
    """A row for each execution that has an iteration: what it began with."""
    _seen: _Known | None = None
    _blocks: OrderedDict[_Key, _Block] = field(default_factory=OrderedDict[_Key, _Block])

    def __post_init__(self) -> None:
        self.first_execution = len(self.counts)
        self.entering = Rows.of(self.types)

    def has(self, row: int) -> bool:
        """Whether the state that a row begins with is known here, if that row has begun."""
        return self._execution(self._known, row) is not None

    def value(self, row: int, slot: int) -> Any | None:
        """A carried Parameter in a row that has begun; None where it is not known here."""
        known = self._known
        execution = self._execution(known, row)
        if execution is None:
            return None
        kept = execution // self.entering.stride
        number, place = divmod(kept, self._executions_at_once)
        block = self._open(known, kept) if execution == known.ended else self._block(known, number)
        place = 0 if execution == known.ended else place
        return block.columns[slot][block.starts[place] + row - known.starts[execution]]

    def whole(self, slot: int) -> np.ndarray | None:
        """A carried Parameter in all rows of executions that have ended; None where not all are known here, or there are too many."""
        known = self._known
        if known.given is None or self.entering.stride > 1 or known.starts[-1] - self.first_row > _MOST_IN_ONE:
            return None
        blocks = range(-(-known.ended // self._executions_at_once))
        return np.concatenate([np.empty(0, self.types[slot]), *(self._block(known, number).columns[slot] for number in blocks)])

    # -- what is known --------------------------------------------------------------------------------------------

    @property
    def _known(self) -> _Known:
        now = len(self.counts), self.entering.begun, self.entering.stride
        if self._seen is None or self._seen.of != now:
            counts = np.array(self.counts[self.first_execution :], np.int64)
            starts = self.first_row + np.concatenate([[0], np.cumsum(counts[counts > 0])])
            self._seen = _Known(now, starts, self._given())
        return self._seen

    def _given(self) -> Mapping[int, np.ndarray] | None:
        self.entering.pack(self.entering.begun)
        found: dict[int, np.ndarray] = {}
        for slot, dtype in self.types.items():
            column = self.entering.whole(slot) if self.entering.packed_rows else np.empty(0, dtype)
            if column is None or column.dtype != dtype or column.ndim != 1:
                return None
            found[slot] = column
        return found

    def _execution(self, known: _Known, row: int) -> int | None:
        """The execution that a row belongs to; None where that is not kept."""
        if known.given is None or row < self.first_row:
            return None
        execution = int(np.searchsorted(known.starts, row, side="right")) - 1
        return execution if execution < known.of[1] and execution % self.entering.stride == 0 else None

    # -- what follows ---------------------------------------------------------------------------------------------

    @property
    def _executions_at_once(self) -> int:
        return max(1, _ROWS_AT_ONCE // self.bound)

    def _block(self, known: _Known, number: int) -> _Block:
        """Some executions that have ended."""
        stride, most = self.entering.stride, self._executions_at_once
        executions = np.arange(0, known.ended, stride)[number * most : (number + 1) * most]
        return self._made((True, stride, number), known, number * most, known.starts[executions + 1] - known.starts[executions])

    def _open(self, known: _Known, kept: int) -> _Block:
        """The execution that has not ended, as if it had all iterations that it may have."""
        return self._made((False, self.entering.stride, kept), known, kept, np.array([self.bound]))

    def _made(self, key: _Key, known: _Known, first: int, counts: np.ndarray) -> _Block:
        found = self._blocks.get(key)
        if found is None or found.executions < len(counts):
            given = known.given or {}
            state = {slot: column[first : first + len(counts)] for slot, column in given.items()}
            found = self._blocks[key] = self._computed(state, counts)
            if len(self._blocks) > _MOST_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(key)
        return found

    def _computed(self, state: dict[int, np.ndarray], counts: np.ndarray) -> _Block:
        """All rows of executions that begin with ``state`` and have so many iterations, one iteration of all of them after the other."""
        carried = self.region.carried
        starts = np.cumsum(counts) - counts
        columns = {one.parameter: np.empty(int(counts.sum()), self.types[one.parameter]) for one in carried}
        at, left = starts, counts
        for iteration in range(int(counts.max(initial=0))):
            for slot, column in columns.items():
                column[at + iteration] = state[slot]
            goes_on = left > iteration + 1
            if not goes_on.all():
                at, left, state = at[goes_on], left[goes_on], {slot: column[goes_on] for slot, column in state.items()}
            state = self._next(state, iteration, len(at))
        return _Block(len(counts), starts, columns)

    def _next(self, state: dict[int, np.ndarray], iteration: int, count: int) -> dict[int, np.ndarray]:
        numbers = {one.parameter: np.full(count, iteration, one.element_type.dtype) for one in self.region.counters}
        found = self.step.columns({**state, **numbers}, range(count))
        assert found is not None
        return {**state, **{one.parameter: found.columns[one.result] for one in self.region.carried}}
