"""Conversion of a run's recording to the entries of a file, so that it opens without running again.

The entries are counts and branches, columns, values and open graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.machine.state import NO_BOUND, Frame
from loopscope.executor.plan.slots import ProgramIndex, Slot
from loopscope.executor.record.buffers import BranchLog, RecordedRows, SlotColumn
from loopscope.ops.values import NOT_KEPT
from loopscope.run_file.recording_codec import encode_values, layout_of, value_bytes
from loopscope.run_file.weightless import SMALL, weight_slots

_MAX_VALUES = 4000
"""Maximum number of stored values of the outermost graph; the file has an entry for each."""
_MAX_LISTS = 2000
"""Maximum number of columns, and of lists that open loops have collected."""


@dataclass(frozen=True, slots=True)
class StoredRecording:
    """A recording in the form that a file stores."""

    document: Mapping[str, Any]
    """Content of ``recording.json``."""
    values: Mapping[str, Any]
    """Values of the machine by entry."""


@dataclass(eq=False, slots=True)
class _Writer:
    run: Run
    remaining_bytes: int
    """Bytes that remain of the budget."""
    weights: frozenset[Slot]
    """Slots of large values that are omitted like weights; small values stay."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    shared: dict[int, Slot] = field(default_factory=dict[int, Slot])
    """Slot under which a value is stored, or its Const, by identity of the value."""
    slots: dict[str, int] = field(default_factory=dict[str, int])


def stored_recording(
    run: Run, budget_bytes: int, *, weights: bool = True
) -> StoredRecording | None:
    """Return the recording within the budget; None if not even the required values fit.

    ``weights=False`` omits values that are computed from weights alone.

    Optional values that do not fit are computed again on request: rows of columns, every other one
    first, and values of the outermost graph.
    """
    machine, plan = run.machine, run.plan
    machine.recording.pack()
    writer = _Writer(run, budget_bytes, frozenset() if weights else weight_slots(plan))
    writer.shared.update(
        (id(value), slot) for slot, value in plan.constants if value is not NOT_KEPT
    )
    _tables(writer)
    frames = [_frame(writer, frame, depth) for depth, frame in enumerate(machine.frames)]
    for slot in _required_slots(run):
        if not _is_weight(writer, slot):
            _store(writer, slot)
    hidden = (*plan.states, *plan.variables.values())
    states = (
        encode_values("hidden", [machine.values[slot] for slot in hidden], writer.values)
        if hidden
        else {"plain": []}
    )
    begun = [machine.begun_with.get(slot) for slot in plan.main.hidden]
    if writer.remaining_bytes < 0 or len(frames) > _MAX_LISTS:
        return None
    rows = _rows(writer)
    missing = _store_optional(writer)
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
        "begun_with": encode_values("begun_with", begun, writer.values) if begun else {"plain": []},
        "rows": rows,
        "slots": writer.slots,
        "missing": missing,
    }
    return StoredRecording(document, writer.values)


def _tables(writer: _Writer) -> None:
    """Store counts and endings of loops, and branches of Ifs."""
    for number, table in enumerate(writer.run.machine.recording.tables):
        if isinstance(table, BranchLog):
            _store_list(
                writer, f"branches.{number}", np.frombuffer(bytes(table.branches), np.uint8)
            )
        else:
            _store_list(writer, f"counts.{number}", np.array(table.counts, np.int64))
            _store_list(writer, f"endings.{number}", np.array(table.endings, np.uint8))


def _store_list(writer: _Writer, name: str, array: np.ndarray) -> None:
    if len(array):
        writer.values[name] = array
        writer.remaining_bytes -= array.nbytes


def _frame(writer: _Writer, frame: Frame, depth: int) -> dict[str, Any]:
    collected = [
        encode_values(f"collected.{depth}.{number}", parts, writer.values)
        for number, parts in enumerate(frame.collected)
    ]
    writer.remaining_bytes -= sum(value_bytes(part) for parts in frame.collected for part in parts)
    return {
        "graph": frame.program.address,
        "position": frame.position,
        "iteration": frame.iteration,
        "bound": None if frame.bound >= NO_BOUND else frame.bound,
        "ending": frame.bound_ending,
        "behind": frame.is_behind,
        "collected": collected,
    }


def _required_slots(run: Run) -> Iterator[Slot]:
    """Yield the slots that must be stored.

    They are values of open bodies, outputs of the model, and outputs of loops and branches.
    """
    main = run.plan.main
    for frame in run.machine.frames[1:]:
        yield from sorted(frame.program.owned)
    yield from main.results.values()
    for number in main.regions:
        yield from main.instructions[number].outputs


def _store(writer: _Writer, slot: Slot) -> None:
    value = writer.run.machine.values[slot]
    if (
        value is None
        or value is NOT_KEPT
        or str(slot) in writer.slots
        or slot in writer.run.plan.main.parameter_slots
    ):
        return
    if isinstance(value, np.generic) or id(value) not in writer.shared:
        writer.shared[id(value)] = slot
        writer.values[f"slot.{slot}"] = value
        writer.remaining_bytes -= value_bytes(value)
        writer.slots[str(slot)] = slot
    # A Const has its value from the model, unless the user changed it.
    elif writer.shared[id(value)] != slot:
        writer.slots[str(slot)] = writer.shared[id(value)]


def _store_optional(writer: _Writer) -> list[int]:
    """Store the other values of the outermost graph, small ones first.

    Return the slots of values that do not fit.
    """
    run, main = writer.run, writer.run.plan.main
    values = run.machine.values
    missing: list[int] = sorted(run.values.missing)
    slots = sorted(
        (slot for slot in main.producer if values[slot] is not None),
        key=lambda slot: value_bytes(values[slot]),
    )
    for slot in slots:
        if str(slot) in writer.slots:
            continue
        if (
            _is_weight(writer, slot)
            or value_bytes(values[slot]) > writer.remaining_bytes
            or len(writer.slots) > _MAX_VALUES
        ):
            missing.append(slot)
        else:
            _store(writer, slot)
    return missing


def _rows(writer: _Writer) -> dict[str, Any] | None:
    """Return the columns of all graphs, thinned like a recording until they fit.

    Return None if they never fit.
    """
    recording = writer.run.machine.recording
    columns = {
        index: _Columns(rows, writer.weights)
        for index, rows in recording.rows.items()
        if not rows.forget
    }
    if sum(len(item.columns) for item in columns.values()) > _MAX_LISTS:
        return None
    while sum(item.bytes for item in columns.values()) > writer.remaining_bytes:
        largest = max(columns.values(), key=lambda item: item.bytes)
        if not largest.thin():
            return None
    writer.remaining_bytes -= sum(item.bytes for item in columns.values())
    return {
        str(index): item.encode(index, recording.rows[index], writer.values)
        for index, item in columns.items()
    }


class _Columns:
    """The columns of one graph, possibly with fewer rows than were recorded."""

    def __init__(self, rows: RecordedRows, weights: frozenset[Slot]) -> None:
        packed = {slot: _packed_values(column) for slot, column in rows.columns.items()}
        self.columns = {
            slot: values
            for slot, values in packed.items()
            if slot not in weights or all(map(_is_small, values))
        }
        self.stride = rows.stride
        self._measure()

    def _measure(self) -> None:
        self.bytes = sum(
            values.nbytes if isinstance(values, np.ndarray) else sum(map(value_bytes, values))
            for values in self.columns.values()
        )

    def thin(self) -> bool:
        """Drop every other row; return False if only one row remains."""
        if max(map(len, self.columns.values()), default=0) < 2:
            return False
        self.columns = {slot: values[::2] for slot, values in self.columns.items()}
        self.stride *= 2
        self._measure()
        return True

    def encode(
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
                columns[str(slot)] = encode_values(name, values, into)
            pending[str(slot)] = encode_values(
                f"pending.{index}.{slot}", rows.columns[slot].pending, into
            )
        return {
            "stride": self.stride,
            "rows": rows.packed_rows,
            "is_judged": rows.is_judged,
            "columns": columns,
            "pending": pending,
        }


def _is_weight(writer: _Writer, slot: Slot) -> bool:
    """Return True if a value of the outermost graph may be omitted as a weight.

    If the graph draws random numbers or has variables, none of its values can be computed again.
    """
    main = writer.run.plan.main
    return (
        slot in writer.weights
        and slot in main.producer
        and not main.hidden
        and not _is_small(writer.run.machine.values[slot])
    )


def _is_small(value: Any) -> bool:
    return value is NOT_KEPT or (
        isinstance(value, (np.ndarray, np.generic)) and value.size <= SMALL
    )


def _packed_values(column: SlotColumn) -> Any:
    """Return all packed values of a column, as an array if they stack."""
    chunks = column.chunks
    if chunks and all(
        isinstance(chunk, np.ndarray)
        and chunk.dtype == chunks[0].dtype
        and chunk.shape[1:] == chunks[0].shape[1:]
        for chunk in chunks
    ):
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
    return [value for chunk in chunks for value in chunk]
