"""Search for the operation that made the first NaN or infinity of a run, in all graphs and carried
values.

Values that follow elementwise from recorded values are checked in whole columns. All others are
replayed row by row, within a time limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.plan import ABSENT, Instruction, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.provenance import BY_HAND, ProvenanceWalk, SlotPart
from loopscope.ir.readable import readable
from loopscope.ops.values import NOUNS, UnusualFloat, holds_unusual, rows_with
from loopscope.timeline.vectorised import Columns, Recorded

SECONDS = 1.0
_COLUMN_SECONDS = 2.0
"""Additional seconds for recorded values and columns; a search takes milliseconds except on very
large runs.
"""
_FIRST_ROWS, _MAX_ROWS = 1 << 10, 1 << 16
_MAX_ELEMENTS = 1 << 22
"""Maximum elements of the rows that are checked together."""


@dataclass(frozen=True, slots=True)
class NotFinite:
    """Result of a search for the first NaN or infinity."""

    step: int | None
    """Step before which the value was made; None if none was found in the checked part."""
    address: str
    """Address of the value."""
    left: tuple[str, ...]
    """Descriptions of earlier executions that were not checked; empty if the result is certain."""
    source: str = ""
    """Address of the input, constant or hand-set value that the NaN or infinity came from.

    Equal to ``address`` if the value was set by hand there. Empty if the operation made it from
    finite values. If no operation made any, the first input that contains one.
    """
    kind: UnusualFloat | None = None
    """Kind of value searched for; None for NaN and infinity."""

    @property
    def is_certain(self) -> bool:
        return not self.left

    @property
    def noun(self) -> str:
        """Noun for the kind of value searched for."""
        return NOUNS[self.kind]

    @property
    def sentence(self) -> str:
        """Readable result."""
        unchecked = f": {'; '.join(self.left)}" if self.left else ""
        noun, article = self.noun, "An" if self.kind == "infinity" else "A"
        if self.step is None:
            if unchecked:
                return f"No {noun} was found in the values that were searched in time{unchecked}."
            if not self.source:
                return f"No operation computed {article.lower()} {noun}."
            return (
                f"No operation computed {article.lower()} {noun}, "
                f"but the input {readable(self.source)} contains one."
            )
        first = (
            f"The first {noun} is"
            if self.is_certain
            else f"{article} {noun}, perhaps not the first, was"
        )
        if self.source == self.address:
            return f"{first} in {readable(self.address)}, where it was set by hand{unchecked}."
        origin = f" from {readable(self.source)}, which contains one" if self.source else ""
        return f"{first} computed by {readable(self.address)}{origin}{unchecked}."


def first_not_finite(run: Run, seconds: float = SECONDS) -> NotFinite:
    """Return the first execution of an operation that gave a NaN or an infinity.

    After ``seconds`` no more rows are replayed; the result then lists what was not checked.
    """
    return _Search(run, seconds, None).result()


def first_nan(run: Run, seconds: float = SECONDS) -> NotFinite:
    """Return the first execution of an operation that gave a NaN, ignoring infinities.

    ``seconds`` is the limit as in ``first_not_finite``.
    """
    return _Search(run, seconds, "nan").result()


def first_infinity(run: Run, seconds: float = SECONDS) -> NotFinite:
    """Return the first execution of an operation that gave an infinity.

    ``seconds`` is the limit as in ``first_not_finite``.
    """
    return _Search(run, seconds, "infinity").result()


class _Search:
    def __init__(self, run: Run, seconds: float, kind: UnusualFloat | None) -> None:
        self.run, self.kind = run, kind
        self.timeline = run.timeline
        self.recorded = Recorded(run.timeline)
        self.deadline = time.monotonic() + seconds
        self.latest = self.deadline + _COLUMN_SECONDS
        self.best: tuple[int, str] | None = None

    def result(self) -> NotFinite:
        programs = [
            program
            for program in self.run.plan.programs
            if self.timeline.executions.rows[program.index]
        ]
        unchecked = list(self._check_outermost())
        for program in programs:
            self._check_carried(program)
        slow = {program.index: self._check_columns(program) for program in programs}
        waiting = [program for program in programs if slow[program.index]]
        for number, program in enumerate(waiting):
            remaining = max(0.0, self.deadline - time.monotonic())
            unchecked += self._check_row_by_row(
                program, slow[program.index], time.monotonic() + remaining / (len(waiting) - number)
            )
        self._check_open_rows(programs)
        step, address = self.best or (None, "")
        return NotFinite(
            step,
            address,
            tuple(unchecked),
            self._source(address) if address else self._unusual_input(),
            self.kind,
        )

    def _unusual_input(self) -> str:
        """Return the address of the first input that contains a NaN or infinity; empty if none
        does.
        """
        walk, main = ProvenanceWalk(self.run), self.run.plan.main
        inputs = (SlotPart(main, 0, slot) for slot in main.parameters.values())
        return next(
            (walk.address(part) for part in inputs if self._is_unusual(walk.value(part))), ""
        )

    def _source(self, address: str) -> str:
        """Return the address of the unusual input, constant or hand-set value that an operation
        received.

        Return an empty text if an operation computed it.
        """
        walk = ProvenanceWalk(self.run)
        place = walk.place(address)
        if walk.operation(place) == BY_HAND:
            return address
        for operand, _ in walk.sources_of(place):
            if self._is_unusual(walk.part_value(operand)):
                while (
                    operand.slot not in operand.program.producer
                    and (before := next(walk.sources_of(operand), None)) is not None
                ):
                    operand = before[0]
                return (
                    walk.address(operand)
                    if walk.operation(operand) in ("Parameter", "Const", BY_HAND)
                    else ""
                )
        return ""

    def _is_unusual(self, value: Any) -> bool:
        return holds_unusual(value, self.kind)

    # -- bounds

    def _offer(self, candidate: tuple[int, str] | None) -> None:
        if candidate is not None and (self.best is None or candidate < self.best):
            self.best = candidate

    def _rows(self, program: Program) -> int:
        """Return the number of finished rows that began before the best candidate."""
        executions = self.timeline.executions
        rows = executions.rows[program.index]
        upper = (
            rows - 1 if program.index in executions.open and program.parent is not None else rows
        )
        if self.best is None or program.parent is None:
            return upper
        lower = 0
        while lower < upper:
            middle = (lower + upper) // 2
            if self.timeline.step_at(program, middle, 0) < self.best[0]:
                lower = middle + 1
            else:
                upper = middle
        return upper

    def _check_carried(self, program: Program) -> None:
        """Check the recorded carried values of a program.

        An unusual carried value was made in the previous iteration, or in an earlier one that
        handed it on. Later rows need no check.
        """
        region = program.region
        for port in region.carried if isinstance(region, LoopRegion) else ():
            column = self.recorded.column(program, port.parameter)
            is_unusual = rows_with(column, self.kind) if column is not None else np.zeros(0, bool)
            if (
                is_unusual.any()
                and self.timeline.executions.parent_row(program, int(is_unusual.argmax()))[1]
            ):
                self._offer(self._unusual_in_row(program, int(is_unusual.argmax()) - 1))

    def _unusual_in_row(self, program: Program, row: int) -> tuple[int, str] | None:
        """Return step and address of the first unusual value that an operation of a row gave."""
        candidates = (
            self._unusual_output(program, row, number, instruction)
            for number, instruction in enumerate(program.instructions)
        )
        return next((candidate for candidate in candidates if candidate is not None), None)

    def _unusual_output(
        self, program: Program, row: int, number: int, instruction: Instruction
    ) -> tuple[int, str] | None:
        """Return step and address of the first unusual output of an operation in a row."""
        for output, slot in _computed_outputs(instruction):
            if self.run.has_run(program, row, slot) and self._is_unusual(
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

    def _check_outermost(self) -> Iterator[str]:
        """Check the values of the outermost graph, which are all stored; yield what was not checked
        in time.
        """
        main = self.run.plan.main
        for number, instruction in enumerate(main.instructions):
            if time.monotonic() > self.latest:
                yield (
                    f"of {readable(main.address)} {number:,} of {len(main.instructions):,} "
                    f"operations were looked at"
                )
                return
            if (candidate := self._unusual_output(main, 0, number, instruction)) is not None:
                self._offer(candidate)
                return

    def _check_columns(self, program: Program) -> list[Slot]:
        """Check rows in columns as far as possible; return the slots that must be replayed row by
        row.
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
            is_unusual = np.zeros(len(rows), bool)
            widest = 1
            for slot in list(waiting):
                column = columns.column(slot)
                if column is None:
                    waiting.remove(slot)
                    slow.append(slot)
                    continue
                values = np.asarray(column.values)
                widest = max(widest, values.size // len(rows) if column.varies else 1)
                is_unusual |= (
                    rows_with(values, self.kind) if column.varies else self._is_unusual(values)
                )
            for row in np.flatnonzero(is_unusual):
                candidate = self._unusual_in_row(program, int(rows[row]))
                if candidate is not None:
                    self._offer(candidate)
                    break
            begin, count = int(rows[-1]) + 1, max(1, min(_MAX_ROWS, _MAX_ELEMENTS // widest))
        return slow

    def _check_row_by_row(
        self, program: Program, slots: Sequence[Slot], deadline: float
    ) -> Iterator[str]:
        """Check slots that are not available as columns; yield what was not checked in time."""
        # The last slots first: one replay computes all the slots that they depend on.
        row, backwards = 0, sorted(slots, reverse=True)
        while row < self._rows(program):
            if time.monotonic() > deadline:
                yield (
                    f"of {readable(program.address)} {row:,} of {self._rows(program):,} "
                    f"executions were looked at"
                )
                return
            if any(self._is_unusual(self._value(program, row, slot)) for slot in backwards):
                self._offer(self._unusual_in_row(program, row))
            row += 1

    def _check_open_rows(self, programs: Sequence[Program]) -> None:
        """Check the rows that are still running."""
        executions = self.timeline.executions
        for program in programs:
            if program.index in executions.open and program.parent is not None:
                self._offer(self._unusual_in_row(program, executions.rows[program.index] - 1))

    def _floats(self, program: Program) -> list[Slot]:
        """Return the slots of operations that may contain floats."""
        return [
            slot
            for instruction in program.instructions
            for output, slot in _computed_outputs(instruction)
            if self._may_be_float(program, instruction, output)
        ]

    def _may_be_float(self, program: Program, instruction: Instruction, output: int) -> bool:
        known = self.run.plan.propagated.output(
            program.address, instruction.node.id, output
        ).element_type
        return known is None or known.is_float


def _computed_outputs(instruction: Instruction) -> Iterator[tuple[int, Slot]]:
    """Yield index and slot of the outputs that an operation computes; a node with bodies computes
    none.
    """
    if instruction.region is None:
        yield from (
            (output, slot) for output, slot in enumerate(instruction.outputs) if slot != ABSENT
        )
