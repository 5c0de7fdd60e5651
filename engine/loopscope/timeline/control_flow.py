"""Control flow of a run as a sequence of records: iteration counts and endings of loops, branches
of Ifs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

from loopscope.executor.plan.plan import Instruction, LoopRegion, Program, Region, RegionKind
from loopscope.executor.record.buffers import BranchLog
from loopscope.executor.record.recording import ENDINGS, Ending, LoopTable, StopCause
from loopscope.ir.recorded_rows import recorded_ending
from loopscope.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFlowRecord:
    """One execution of a Loop, TensorIterator or If."""

    address: str
    """Address with iterations, such as ``main/while_3[2]/body/if_2``."""
    kind: RegionKind
    iterations: int | None = None
    """Iteration count of this execution; None for If."""
    ended_by: Ending | None = None
    """``trip_count``, ``condition``, ``zero_trip_count``, ``initial_condition``,
    ``slices_exhausted``, ``limit``, ``error`` or ``stopped``; None for If and for a running loop.
    """
    branch: str | None = None
    """``then`` or ``else`` for If."""
    endless: bool = False
    """True if this loop, or an open loop inside it, is proved never to end; ``ended_by`` is then
    ``limit``.
    """
    reason: str = ""
    """Reason for the ending of a loop of a trace, as recorded; empty for other loops."""


class ControlFlow(Sequence[ControlFlowRecord]):
    """Records in pre-order (an outer loop before what ran in it), each created on access."""

    def __init__(
        self, timeline: Timeline, cause: StopCause | None, *, endless: bool = False
    ) -> None:
        self._timeline = timeline
        self._cause = cause
        self._endless = endless

    def __repr__(self) -> str:
        return f"<control flow: {len(self):,} records>"

    def __len__(self) -> int:
        return self._timeline.records.total

    @overload
    def __getitem__(self, index: int) -> ControlFlowRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ControlFlowRecord]: ...
    def __getitem__(self, index: int | slice) -> ControlFlowRecord | Sequence[ControlFlowRecord]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(index)
        return self.of(*self._timeline.record(number))

    def __iter__(self) -> Iterator[ControlFlowRecord]:
        for execution in self._timeline.walk():
            yield self.of(*execution)

    def of(self, program: Program, row: int, instruction: Instruction) -> ControlFlowRecord:
        """Return the record of an instruction with bodies in one row of its program."""
        region = instruction.region
        assert region is not None
        address = f"{self._timeline.address(program, row)}/{instruction.label}"
        record = self.record_of(region, row, address)
        ending = recorded_ending(instruction.node, row)
        if ending is None:
            return record
        left = "the program left it" if record.ended_by == "condition" else ""
        return replace(record, reason=ending.reason or left)

    def record_of(self, region: Region, row: int, address: str) -> ControlFlowRecord:
        """Return the record of the execution of a region in one row of its graph."""
        machine = self._timeline.machine
        table = machine.recording.tables[region.table]
        if isinstance(table, BranchLog):
            return ControlFlowRecord(
                address=address, kind="If", branch="then" if table.branches[row] else "else"
            )
        if not isinstance(region, LoopRegion):
            return ControlFlowRecord(address=address, kind=region.kind)
        assert isinstance(table, LoopTable)
        if row < len(table.counts):
            return ControlFlowRecord(
                address=address,
                kind=region.kind,
                iterations=table.counts[row],
                ended_by=ENDINGS[table.endings[row]],
            )
        frame = self._timeline.executions.open.get(region.program.index)
        iterations = frame.iteration if frame else 0
        return ControlFlowRecord(
            address=address,
            kind=region.kind,
            iterations=iterations,
            ended_by=self._cause,
            endless=self._endless,
        )
