"""The control flow of a run as a sequence of records: how often each loop ran and why it ended,
which branch each If took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from loopscope.executor.plan.plan import Instruction, LoopRegion, Program, Region, RegionKind
from loopscope.executor.record.branch_log import BranchLog
from loopscope.executor.record.endings import ENDINGS, Ending, StopCause
from loopscope.executor.record.recording import LoopTable
from loopscope.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFlowRecord:
    """One execution of a Loop, TensorIterator or If."""

    address: str
    """Such as ``main/while_3[2]/body/if_2``."""
    kind: RegionKind
    iterations: int | None = None
    """Iterations of this one execution; None for If."""
    ended_by: Ending | None = None
    """``trip_count``, ``condition``, ``zero_trip_count``, ``initial_condition``,
    ``slices_exhausted``, ``limit``, ``error`` or ``stopped``; None for If, and for a loop that has
    not ended.
    """
    branch: str | None = None
    """``then`` or ``else`` for If."""
    endless: bool = False
    """Whether it is proved that this loop, or one inside it that is under way, can never end;
    ``ended_by`` is ``limit`` then.
    """


class ControlFlow(Sequence[ControlFlowRecord]):
    """Records in pre-order (an outer loop before what ran in it), each made when asked for."""

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
        for found in self._timeline.walk():
            yield self.of(*found)

    def of(self, program: Program, row: int, instruction: Instruction) -> ControlFlowRecord:
        """The record of what an instruction with bodies did in one row of the program that holds
        it.
        """
        region = instruction.region
        assert region is not None
        address = f"{self._timeline.address(program, row)}/{instruction.label}"
        return self.record_of(region, row, address)

    def record_of(self, region: Region, row: int, address: str) -> ControlFlowRecord:
        """The record of the execution of a region in one row of the graph that holds it."""
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
