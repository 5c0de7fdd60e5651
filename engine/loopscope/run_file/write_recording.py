"""What a file keeps of what a run recorded, so that it opens without running again: counts and
branches, columns, values, open graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.machine.state import NO_BOUND, Frame
from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.record.branch_log import BranchLog
from loopscope.executor.record.columns import RecordedRows, SlotColumn
from loopscope.ops.values import NOT_KEPT
from loopscope.run_file.layout import layout_of
from loopscope.run_file.value_codec import held, written
from loopscope.run_file.weight_taint import made_of_weights
from loopscope.run_file.weightless import SMALL

_MOST_VALUES = 4000
"""Values of the outermost graph; the file has an entry for each."""
_MOST_LISTS = 2000
"""Columns, and lists that open loops have collected."""


@dataclass(frozen=True, slots=True)
class StoredRecording:
    """A recording as a file holds it."""

    document: Mapping[str, Any]
    """For ``recording.json``."""
    values: Mapping[str, Any]
    """The machine's values by entry."""


@dataclass(eq=False, slots=True)
class _Keeping:
    run: Run
    left: int
    """Bytes that there is room for."""
    weights: frozenset[Slot]
    """Slots of values that are left out as weights are; those of a few elements stay."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    shared: dict[int, Slot] = field(default_factory=dict[int, Slot])
    """By identity of a value, the slot under which it is kept, or the Const that it is."""
    slots: dict[str, int] = field(default_factory=dict[str, int])


def kept(run: Run, budget_bytes: int, *, weights: bool = True) -> StoredRecording | None:
    """The recording within so many bytes; None where not even what a run cannot go on without has
    room.

    ``weights=False`` leaves out values that are made of weights alone.

    What has no room is computed again when it is asked for: rows of columns, every other one at
    first, and values of the outermost graph.
    """
    machine, plan = run.machine, run.plan
    machine.recording.pack()
    keeping = _Keeping(run, budget_bytes, frozenset() if weights else made_of_weights(plan))
    keeping.shared.update(
        (id(value), slot) for slot, value in plan.constants if value is not NOT_KEPT
    )
    _tables(keeping)
    frames = [_frame(keeping, frame, depth) for depth, frame in enumerate(machine.frames)]
    for slot in _needed(run):
        if not _is_weight(keeping, slot):
            _put(keeping, slot)
    hidden = (*plan.states, *plan.variables.values())
    states = (
        written("hidden", [machine.values[slot] for slot in hidden], keeping.values)
        if hidden
        else {"plain": []}
    )
    begun = [machine.begun_with.get(slot) for slot in plan.main.hidden]
    if keeping.left < 0 or len(frames) > _MOST_LISTS:
        return None
    rows = _rows(keeping)
    missing = _rest(keeping)
    if rows is None or (missing and plan.main.hidden):
        return None
    document = {
        "layout": layout_of(plan),
        "state": machine.state,
        "failure": machine.failure,
        "out_of_memory": machine.out_of_memory,
        "limit": run.failure or "" if run.state == "limit" else "",
        "endless": run.endless or "",
        "iterations": machine.control.iterations,
        "frames": frames,
        "hidden": states,
        "begun_with": written("begun_with", begun, keeping.values) if begun else {"plain": []},
        "rows": rows,
        "slots": keeping.slots,
        "missing": missing,
    }
    return StoredRecording(document, keeping.values)


def _tables(keeping: _Keeping) -> None:
    """Counts and endings of loops, branches of Ifs."""
    for number, table in enumerate(keeping.run.machine.recording.tables):
        if isinstance(table, BranchLog):
            _list(keeping, f"branches.{number}", np.frombuffer(bytes(table.branches), np.uint8))
        else:
            _list(keeping, f"counts.{number}", np.array(table.counts, np.int64))
            _list(keeping, f"endings.{number}", np.array(table.endings, np.uint8))


def _list(keeping: _Keeping, name: str, array: np.ndarray) -> None:
    if len(array):
        keeping.values[name] = array
        keeping.left -= array.nbytes


def _frame(keeping: _Keeping, frame: Frame, depth: int) -> dict[str, Any]:
    collected = [
        written(f"collected.{depth}.{number}", parts, keeping.values)
        for number, parts in enumerate(frame.collected)
    ]
    keeping.left -= sum(held(one) for parts in frame.collected for one in parts)
    return {
        "graph": frame.program.address,
        "position": frame.position,
        "iteration": frame.iteration,
        "bound": None if frame.bound >= NO_BOUND else frame.bound,
        "ending": frame.bound_ending,
        "behind": frame.is_behind,
        "collected": collected,
    }


def _needed(run: Run) -> Iterator[Slot]:
    """What cannot be left out: values of open bodies, outputs of the model, and what loops and
    branches gave.
    """
    main = run.plan.main
    for frame in run.machine.frames[1:]:
        yield from sorted(frame.program.owned)
    yield from main.results.values()
    for number in main.regions:
        yield from main.instructions[number].outputs


def _put(keeping: _Keeping, slot: Slot) -> None:
    value = keeping.run.machine.values[slot]
    if (
        value is None
        or value is NOT_KEPT
        or str(slot) in keeping.slots
        or slot in keeping.run.plan.main.parameter_slots
    ):
        return
    if isinstance(value, np.generic) or id(value) not in keeping.shared:
        keeping.shared[id(value)] = slot
        keeping.values[f"slot.{slot}"] = value
        keeping.left -= held(value)
        keeping.slots[str(slot)] = slot
    elif (
        keeping.shared[id(value)] != slot
    ):  # a Const has its value from the model, unless a person has set it
        keeping.slots[str(slot)] = keeping.shared[id(value)]


def _rest(keeping: _Keeping) -> list[int]:
    """Keeps the other values of the outermost graph, the small ones first; gives the slots of
    those that have no room.
    """
    run, main = keeping.run, keeping.run.plan.main
    values = run.machine.values
    missing: list[int] = sorted(run.values.missing)
    there = sorted(
        (slot for slot in main.producer if values[slot] is not None),
        key=lambda slot: held(values[slot]),
    )
    for slot in there:
        if str(slot) in keeping.slots:
            continue
        if (
            _is_weight(keeping, slot)
            or held(values[slot]) > keeping.left
            or len(keeping.slots) > _MOST_VALUES
        ):
            missing.append(slot)
        else:
            _put(keeping, slot)
    return missing


def _rows(keeping: _Keeping) -> dict[str, Any] | None:
    """The columns of all graphs, thinned as a recording thins them until they have room; None
    where they never have.
    """
    recording = keeping.run.machine.recording
    found = {
        index: _Thinned(rows, keeping.weights)
        for index, rows in recording.rows.items()
        if not rows.forget
    }
    if sum(len(one.columns) for one in found.values()) > _MOST_LISTS:
        return None
    while sum(one.bytes for one in found.values()) > keeping.left:
        largest = max(found.values(), key=lambda one: one.bytes)
        if not largest.thin():
            return None
    keeping.left -= sum(one.bytes for one in found.values())
    return {
        str(index): one.written(index, recording.rows[index], keeping.values)
        for index, one in found.items()
    }


class _Thinned:
    """The columns of one graph, of which fewer rows may be kept than were recorded."""

    def __init__(self, rows: RecordedRows, weights: frozenset[Slot]) -> None:
        every = {slot: _all(column) for slot, column in rows.columns.items()}
        self.columns = {
            slot: values
            for slot, values in every.items()
            if slot not in weights or all(map(_is_small, values))
        }
        self.stride = rows.stride
        self._measure()

    def _measure(self) -> None:
        self.bytes = sum(
            one.nbytes if isinstance(one, np.ndarray) else sum(map(held, one))
            for one in self.columns.values()
        )

    def thin(self) -> bool:
        """Keeps every other row; False where one is left."""
        if max(map(len, self.columns.values()), default=0) < 2:
            return False
        self.columns = {slot: values[::2] for slot, values in self.columns.items()}
        self.stride *= 2
        self._measure()
        return True

    def written(
        self, index: ProgramIndex, rows: RecordedRows, into: dict[str, Any]
    ) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        pending: dict[str, Any] = {}
        for slot, values in self.columns.items():
            name = f"column.{index}.{slot}"
            if isinstance(values, np.ndarray):
                into[name] = values
                columns[str(slot)] = {"together": len(values)}
            else:
                columns[str(slot)] = written(name, values, into)
            pending[str(slot)] = written(
                f"pending.{index}.{slot}", rows.columns[slot].pending, into
            )
        return {
            "stride": self.stride,
            "rows": rows.packed_rows,
            "is_judged": rows.is_judged,
            "columns": columns,
            "pending": pending,
        }


def _is_weight(keeping: _Keeping, slot: Slot) -> bool:
    """Of a value of the outermost graph; where that draws numbers or has variables, none of its
    values can be computed again.
    """
    main = keeping.run.plan.main
    return (
        slot in keeping.weights
        and slot in main.producer
        and not main.hidden
        and not _is_small(keeping.run.machine.values[slot])
    )


def _is_small(value: Any) -> bool:
    return value is NOT_KEPT or (
        isinstance(value, (np.ndarray, np.generic)) and value.size <= SMALL
    )


def _all(column: SlotColumn) -> Any:
    """All packed values of a column: an array where they stack."""
    chunks = column.chunks
    if chunks and all(
        isinstance(one, np.ndarray)
        and one.dtype == chunks[0].dtype
        and one.shape[1:] == chunks[0].shape[1:]
        for one in chunks
    ):
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
    return [one for chunk in chunks for one in chunk]
