"""The first NaN or infinity of a run, wherever it was made: in carried values, in the interior of
bodies, in branches.

What follows elementwise from recorded values is looked at in whole columns; everything else is
computed again row by row, within a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Instruction, LoopRegion, Program
from loopscope.explain.provenance import BY_HAND, ProvenanceWalk, SlotPart
from loopscope.ir.readable import readable
from loopscope.ops.unusual_floats import NOUNS, UnusualFloat, holds_unusual, rows_with
from loopscope.timeline.vectorised import Columns, Recorded

SECONDS = 1.0
_SECONDS_AT_HAND = 2.0
"""More for what is at hand or had in columns, which takes milliseconds but for the largest runs."""
_FIRST_ROWS, _MOST_ROWS = 1 << 10, 1 << 16
_MOST_ELEMENTS = 1 << 22
"""Of all rows that are looked at together."""


@dataclass(frozen=True, slots=True)
class NotFinite:
    """What a search for the first NaN or infinity has found."""

    step: int | None
    """Before which the value has just been made; None when there is none in what was looked at."""
    address: str
    """Of the value."""
    left: tuple[str, ...]
    """What was not looked at though it ran earlier, in words; empty when the answer is certain."""
    source: str = ""
    """Address of the input, the constant or the value set by hand that held one before any
    operation did, and that it came from; the address itself where it was set by hand there. Empty
    where the operation made it of others. Where none made any, the first input that holds one.
    """
    kind: UnusualFloat | None = None
    """What was searched for; None: a NaN or an infinity, whichever comes first."""

    @property
    def is_certain(self) -> bool:
        return not self.left

    @property
    def noun(self) -> str:
        """The name of what was searched for."""
        return NOUNS[self.kind]

    @property
    def sentence(self) -> str:
        """One readable line."""
        left = f": {'; '.join(self.left)}" if self.left else ""
        noun, article = self.noun, "An" if self.kind == "infinity" else "A"
        if self.step is None:
            if left:
                return f"No {noun} was found in what could be looked at in time{left}."
            held = f"No operation made {article.lower()} {noun}, but the input {readable(self.source)} holds one."
            return held if self.source else f"No {noun} was made."
        first = (
            f"The first {noun} is"
            if self.is_certain
            else f"{article} {noun}, perhaps not the first, was"
        )
        if self.source == self.address:
            return f"{first} in {readable(self.address)}, where it was set by hand{left}."
        came = f" from {readable(self.source)}, which holds one" if self.source else ""
        return f"{first} made by {readable(self.address)}{came}{left}."


def first_not_finite(run: Run, seconds: float = SECONDS) -> NotFinite:
    """The first moment at which an operation gives a NaN or an infinity, in all that has run.

    After so many ``seconds`` nothing more is computed again; the answer then says what was left.
    """
    return _Search(run, seconds, None).found()


def first_nan(run: Run, seconds: float = SECONDS) -> NotFinite:
    """Return the first moment at which an operation gives a NaN; infinities that it is made of
    do not count. As ``first_not_finite``.
    """
    return _Search(run, seconds, "nan").found()


def first_infinity(run: Run, seconds: float = SECONDS) -> NotFinite:
    """Return the first moment at which an operation gives an infinity. As ``first_not_finite``."""
    return _Search(run, seconds, "infinity").found()


class _Search:
    def __init__(self, run: Run, seconds: float, kind: UnusualFloat | None) -> None:
        self.run, self.kind = run, kind
        self.timeline = run.timeline
        self.recorded = Recorded(run.timeline)
        self.deadline = time.monotonic() + seconds
        self.latest = self.deadline + _SECONDS_AT_HAND
        self.best: tuple[int, str] | None = None

    def found(self) -> NotFinite:
        programs = [
            one for one in self.run.plan.programs if self.timeline.executions.rows[one.index]
        ]
        left = list(self._look_at_outermost())
        for program in programs:
            self._look_at_carried(program)
        slow = {program.index: self._look_at_columns(program) for program in programs}
        waiting = [one for one in programs if slow[one.index]]
        for number, program in enumerate(waiting):
            remaining = max(0.0, self.deadline - time.monotonic())
            left += self._look_row_by_row(
                program, slow[program.index], time.monotonic() + remaining / (len(waiting) - number)
            )
        self._look_at_open_rows(programs)
        step, address = self.best or (None, "")
        return NotFinite(
            step,
            address,
            tuple(left),
            self._source(address) if address else self._odd_input(),
            self.kind,
        )

    def _odd_input(self) -> str:
        """The address of the first input that holds a NaN or an infinity, such as one that an
        index was made of; empty for none.
        """
        walk, main = ProvenanceWalk(self.run), self.run.plan.main
        inputs = (SlotPart(main, 0, slot) for slot in main.parameters.values())
        return next((walk.address(one) for one in inputs if self._is_odd(walk.value(one))), "")

    def _source(self, address: str) -> str:
        """The address of what was not finite before any operation was, and that an operation got
        it from; empty for none.
        """
        walk = ProvenanceWalk(self.run)
        place = walk.place(address)
        if walk.operation(place) == BY_HAND:
            return address
        for operand, _ in walk.made_of(place):
            if self._is_odd(walk.taken(operand)):
                while (
                    operand.slot not in operand.program.producer
                    and (before := next(walk.made_of(operand), None)) is not None
                ):
                    operand = before[0]
                return (
                    walk.address(operand)
                    if walk.operation(operand) in ("Parameter", "Const", BY_HAND)
                    else ""
                )
        return ""

    def _is_odd(self, value: Any) -> bool:
        return holds_unusual(value, self.kind)

    # -- bounds
    # ---------------------------------------------------------------------------------------------------

    def _take(self, candidate: tuple[int, str] | None) -> None:
        if candidate is not None and (self.best is None or candidate < self.best):
            self.best = candidate

    def _rows(self, program: Program) -> int:
        """The rows that have ended and began before the best candidate."""
        executions = self.timeline.executions
        rows = executions.rows[program.index]
        high = rows - 1 if program.index in executions.open and program.parent is not None else rows
        if self.best is None or program.parent is None:
            return high
        low = 0
        while low < high:
            middle = (low + high) // 2
            if self.timeline.step_at(program, middle, 0) < self.best[0]:
                low = middle + 1
            else:
                high = middle
        return high

    def _look_at_carried(self, program: Program) -> None:
        """A carried value that is not finite was made in the iteration before, unless it was only
        handed on: then no row after need be looked at.
        """
        region = program.region
        for one in region.carried if isinstance(region, LoopRegion) else ():
            column = self.recorded.column(program, one.parameter)
            odd = rows_with(column, self.kind) if column is not None else np.zeros(0, bool)
            if odd.any() and self.timeline.executions.parent_row(program, int(odd.argmax()))[1]:
                self._take(self._first_in(program, int(odd.argmax()) - 1))

    def _first_in(self, program: Program, row: int) -> tuple[int, str] | None:
        """The first operation of one row that gave such a value."""
        found = (
            self._made_by(program, row, number, instruction)
            for number, instruction in enumerate(program.instructions)
        )
        return next((one for one in found if one is not None), None)

    def _made_by(
        self, program: Program, row: int, number: int, instruction: Instruction
    ) -> tuple[int, str] | None:
        """Step and address of the first output of an operation in one row that is not finite."""
        for output, slot in _made(instruction):
            if self.run.has_run(program, row, slot) and self._is_odd(
                self._value(program, row, slot)
            ):
                place = f"{self.timeline.address(program, row)}/{instruction.label}" + (
                    f":{output}" if output else ""
                )
                return self.timeline.step_at(program, row, number + 1), place
        return None

    def _value(self, program: Program, row: int, slot: Slot) -> Any:
        try:
            return self.run.values.get(self.timeline, program, row, slot)
        except (EngineError, ValueError, TypeError):
            return ()

    # -- looking
    # --------------------------------------------------------------------------------------------------

    def _look_at_outermost(self) -> Iterator[str]:
        """Looks at the values of the outermost graph, which are all there; what is left when it
        is late.
        """
        main = self.run.plan.main
        for number, instruction in enumerate(main.instructions):
            if time.monotonic() > self.latest:
                yield f"of {readable(main.address)} {number:,} of {len(main.instructions):,} operations were looked at"
                return
            if (found := self._made_by(main, 0, number, instruction)) is not None:
                self._take(found)
                return

    def _look_at_columns(self, program: Program) -> list[Slot]:
        """Looks at all rows in columns as far as that goes; the slots that have to be computed
        row by row.
        """
        if program.parent is None:
            return []
        waiting = self._floats(program)
        slow: list[Slot] = []
        begin, count = 0, _FIRST_ROWS
        while waiting and begin < self._rows(program):
            if time.monotonic() > self.latest:
                return slow + waiting
            rows = np.arange(begin, min(begin + count, self._rows(program)))
            columns = Columns(self.recorded, program, rows)
            odd = np.zeros(len(rows), bool)
            widest = 1
            for slot in list(waiting):
                column = columns.column(slot)
                if column is None:
                    waiting.remove(slot)
                    slow.append(slot)
                    continue
                values = np.asarray(column.values)
                widest = max(widest, values.size // len(rows) if column.varies else 1)
                odd |= rows_with(values, self.kind) if column.varies else self._is_odd(values)
            for row in np.flatnonzero(odd):
                found = self._first_in(program, int(rows[row]))
                if found is not None:
                    self._take(found)
                    break
            begin, count = int(rows[-1]) + 1, max(1, min(_MOST_ROWS, _MOST_ELEMENTS // widest))
        return slow

    def _look_row_by_row(
        self, program: Program, slots: Sequence[Slot], deadline: float
    ) -> Iterator[str]:
        """Looks at slots that columns do not give; what is left when it is late."""
        row, backwards = (
            0,
            sorted(slots, reverse=True),
        )  # the last slots first: one replay gives all that they depend on
        while row < self._rows(program):
            if time.monotonic() > deadline:
                yield f"of {readable(program.address)} {row:,} of {self._rows(program):,} executions were looked at"
                return
            if any(self._is_odd(self._value(program, row, slot)) for slot in backwards):
                self._take(self._first_in(program, row))
            row += 1

    def _look_at_open_rows(self, programs: Sequence[Program]) -> None:
        """Looks at the rows that have not ended."""
        executions = self.timeline.executions
        for program in programs:
            if program.index in executions.open and program.parent is not None:
                self._take(self._first_in(program, executions.rows[program.index] - 1))

    def _floats(self, program: Program) -> list[Slot]:
        """The slots of operations that may hold floats."""
        return [
            slot
            for instruction in program.instructions
            for output, slot in _made(instruction)
            if self._may_be_float(program, instruction, output)
        ]

    def _may_be_float(self, program: Program, instruction: Instruction, output: int) -> bool:
        known = self.run.plan.propagated.output(
            program.address, instruction.node.id, output
        ).element_type
        return known is None or known.is_float


def _made(instruction: Instruction) -> Iterator[tuple[int, Slot]]:
    """Number and slot of the outputs that an operation makes itself; a node with bodies hands on
    what was made in them.
    """
    if instruction.region is None:
        yield from (
            (output, slot) for output, slot in enumerate(instruction.outputs) if slot != ABSENT
        )
