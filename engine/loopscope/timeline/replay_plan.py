"""Plan of a replay, which recomputes values that are not stored, and their cache.

The plan has the instructions and rows to run. The cache has recomputed values by row, and is
bounded in bytes and rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.slots import ProgramIndex, Slot
from loopscope.executor.record.buffers import RecordedRows
from loopscope.timeline.timeline import Timeline


@dataclass(slots=True, eq=False)
class RowReplay:
    """Replay of one row: the requested slots, and the instructions to run for them."""

    program: Program
    row: int
    iteration: int | None
    slots: set[Slot]
    numbers: list[int]
    first_row: int
    """Row to replay from; equal to ``row`` if the carried state at ``row`` is available."""
    before: int | None = None
    """An instruction before which random states and variables are requested too."""
    from_outside: bool = False
    """True if the random states and variables at the first row are not available and must come from
    the enclosing graph.
    """


class ReplayPlanner:
    """Planner of replays over the recording of a machine and the cache of recomputed values."""

    def __init__(self, machine: Machine, cache: RowCache) -> None:
        self.machine = machine
        self._cache = cache

    def plan(self, timeline: Timeline, program: Program, row: int, slot: Slot) -> list[RowReplay]:
        """Return what each level must compute for the level inside it, from the requested row
        outwards.
        """
        replays: list[RowReplay] = []
        slots, before = {slot}, None
        while program.parent is not None:
            outer_row, iteration = timeline.executions.parent_row(program, row)
            replays.append(self._row_replay(program, row, iteration, slots, before))
            slots = _outer_slots(program)
            before = program.owner if replays[-1].from_outside else None
            program, row = program.parent, outer_row
        replays.append(RowReplay(program, 0, None, slots, [], 0, before))
        return replays

    def _row_replay(
        self,
        program: Program,
        row: int,
        iteration: int | None,
        slots: set[Slot],
        before: int | None,
    ) -> RowReplay:
        carried = program.loop.carried if program.loop is not None else ()
        rows = self.machine.recording.rows.get(program.index)
        first_row = row
        entry = [port.parameter for port in carried] + list(program.hidden)
        if iteration and entry:
            self._carry_on(program, row, rows)
            while first_row > row - iteration and not self._entry_kept(
                program, first_row, entry, rows
            ):
                first_row -= 1
        requested = set(slots)
        if first_row < row:
            requested |= {port.result for port in carried}
        # Run all instructions: a variable may be assigned after the requested values are computed.
        if first_row < row and program.hidden:
            replayed = list(range(len(program.instructions)))
        else:
            replayed = self._closure(program, requested, row if first_row == row else None)
        replay = RowReplay(program, row, iteration, slots, replayed, first_row, before)
        if replayed or before is not None:
            replay.from_outside = not self._entry_kept(program, first_row, program.hidden, rows)
        return replay

    def _carry_on(self, program: Program, row: int, rows: RecordedRows | None) -> None:
        """Reuse the carried values of the previous row if they are cached, so that reading rows in
        order replays each row once.
        """
        carried = program.loop.carried if program.loop is not None else ()
        before = self._cache.row((program.index, row - 1))
        if (
            program.hidden
            or self.machine.overrides.items
            or not all(port.result in before for port in carried)
        ):
            return
        if not self._entry_kept(program, row, [port.parameter for port in carried], rows):
            self._cache.keep(
                (program.index, row),
                {port.parameter: before[port.result] for port in carried},
            )

    def _entry_kept(
        self, program: Program, row: int, entry: Sequence[Slot], rows: RecordedRows | None
    ) -> bool:
        cached = self._cache.row((program.index, row))
        return all(
            slot in cached or (rows is not None and not rows.forget and rows.has_kept(row, slot))
            for slot in entry
        )

    def _closure(self, program: Program, slots: set[Slot], row: int | None = None) -> list[int]:
        """Return the instructions that the slots depend on, in order; with random states or
        variables, all up to the last.

        Values that are recorded in ``row`` are not computed.
        """
        needed: set[int] = set()
        waiting = list(slots)
        while waiting:
            slot = waiting.pop()
            number = program.producer.get(slot)
            if number is None or number in needed or self._is_recorded(program, row, slot):
                continue
            needed.add(number)
            waiting += program.instructions[number].reads
        if program.hidden and needed:
            return list(range(max(needed) + 1))
        return sorted(needed)

    def _is_recorded(self, program: Program, row: int | None, slot: Slot) -> bool:
        rows = (
            None
            if row is None or program.hidden
            else self.machine.recording.rows.get(program.index)
        )
        return row is not None and rows is not None and not rows.forget and rows.has_kept(row, slot)

    def last_numbers(self, replay: RowReplay) -> list[int]:
        """Return the instructions to run in the requested row itself."""
        if replay.before is not None:
            return list(range(replay.before))
        return (
            replay.numbers
            if replay.first_row == replay.row
            else self._closure(replay.program, replay.slots)
        )

    def kept(self, program: Program, row: int, slot: Slot) -> Any:
        """Return the cached or recorded value of a slot, or None without a recording."""
        cached = self._cache.row((program.index, row))
        if slot in cached:
            return cached[slot]
        rows = self.machine.recording.rows.get(program.index)
        return rows.kept(row, slot) if rows is not None else None


def _outer_slots(program: Program) -> set[Slot]:
    """Return the slots of the enclosing graph that the Parameters of a row may read."""
    if program.branch is not None:
        return {source for _, source in program.branch.bindings}
    return set() if program.loop is None else set(program.loop.outer_slots)


RowKey = tuple[ProgramIndex, int]
"""Graph and number of a row."""

_MAX_BYTES = 64 * 2**20
_MAX_ROWS = 512
_NUMBER_BYTES = 64
"""Approximate bytes of a value that is not an array."""


class RowCache:
    """Values of slots by row; the row that was used longest ago is dropped first."""

    def __init__(self) -> None:
        self._rows: OrderedDict[RowKey, dict[Slot, Any]] = OrderedDict()
        self.total_bytes = 0

    def clear(self) -> None:
        self._rows.clear()
        self.total_bytes = 0

    def row(self, key: RowKey) -> Mapping[Slot, Any]:
        """Return the cached values of a row, possibly none."""
        return self._rows.get(key, {})

    def mark_used(self, key: RowKey) -> None:
        self._rows.move_to_end(key)

    def keep(self, key: RowKey, values: Mapping[Slot, Any]) -> None:
        """Add values of a row, then drop other rows until the cache is within its bounds."""
        cached = self._rows.setdefault(key, {})
        self.total_bytes += sum(
            _bytes_of(value) for slot, value in values.items() if slot not in cached
        )
        cached.update(values)
        self.mark_used(key)
        while len(self._rows) > 1 and (
            self.total_bytes > _MAX_BYTES or len(self._rows) > _MAX_ROWS
        ):
            _, dropped = self._rows.popitem(last=False)
            self.total_bytes -= sum(map(_bytes_of, dropped.values()))


def _bytes_of(value: Any) -> int:
    return getattr(value, "nbytes", _NUMBER_BYTES)
