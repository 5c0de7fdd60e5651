"""Restoring of a recording into a new run, as if the run had just computed it.

The recording comes from an untrusted file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.machine.machine import Machine
from loopscope.executor.machine.regions import concatenated
from loopscope.executor.machine.state import NO_BOUND, Frame
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan, Program
from loopscope.executor.plan.slots import ProgramIndex, Slot, settle
from loopscope.executor.record.buffers import BranchLog, RecordedRows, SlotColumn
from loopscope.executor.record.recording import ENDINGS, LoopTable, recorded_slots
from loopscope.run_file.recording_codec import RecordedTypes, decode_values, layout_of
from loopscope.timeline.sizes import ExecutionIndex

MOST_ITERATIONS = 2**31
"""Maximum number of iterations of all loops together, and of steps of a row.

It bounds the lengths of tables that a file can request.
"""
_MAX_TEXT = 10_000


def put_back(run: Run, document: bytes, entries: Mapping[str, Any]) -> None:
    """Restore a recording into a run.

    ``ValueError`` when it does not belong to this model and this version's plan or contradicts
    itself. The run is then unchanged.
    """
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        raise ValueError("its recording.json is not JSON") from None
    if not isinstance(data, dict):
        raise ValueError("its recording.json is not a table")
    plan = run.plan
    if data.get("layout") != layout_of(plan):
        raise ValueError(
            "its recording numbers the model's values in another way than this version of Loopscope"
        )
    fresh = run.machine
    machine = replace(
        fresh,
        values=list(fresh.values),
        recording=type(fresh.recording)(plan, fresh.recording.record),
        frames=[],
    )
    machine.control = replace(fresh.control, iterations=_integer(data, "iterations"))
    types = RecordedTypes(plan)
    try:
        _tables(machine, entries)
        machine.frames = _frames(plan, _items(data, "frames"), entries, types)
        _state(machine, data)
        missing = _values(machine, data, entries, types)
        _rows(machine, data, entries, types)
        executions = ExecutionIndex(machine)
    except (
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        OverflowError,
        AssertionError,
    ) as error:
        raise ValueError(f"its recording contradicts itself ({type(error).__name__})") from None
    _expect_agreement(machine, executions)
    bound = machine.control.limits.iterations
    if bound is not None and machine.control.iterations >= bound:
        # After a limit, a run may continue for as many iterations again.
        machine.control.limits = replace(
            machine.control.limits, iterations=machine.control.iterations + bound
        )
    run.put_back(
        machine, limit=_text(data, "limit"), endless=_text(data, "endless"), missing=missing
    )


# -- control flow ----------------------------------------------------------------------------------


def _tables(machine: Machine, entries: Mapping[str, Any]) -> None:
    total = 0
    for number, table in enumerate(machine.recording.tables):
        if isinstance(table, BranchLog):
            branches = _numbers(entries, f"branches.{number}", np.uint8)
            if branches.max(initial=0) > 1:
                raise ValueError("its recording has a branch that is neither then nor else")
            machine.recording.tables[number] = BranchLog.of(branches.tobytes())
            continue
        counts = _numbers(entries, f"counts.{number}", np.int64)
        endings = _numbers(entries, f"endings.{number}", np.uint8)
        if (
            len(counts) != len(endings)
            or counts.min(initial=0) < 0
            or endings.max(initial=0) >= len(ENDINGS)
        ):
            raise ValueError("its recording has a loop whose counts and endings do not match")
        total += sum(counts.tolist())
        if total > MOST_ITERATIONS:
            raise ValueError(f"its recording has more than {MOST_ITERATIONS:,} iterations")
        machine.recording.tables[number] = LoopTable(counts.tolist(), endings.tolist())


def _frames(
    plan: Plan, descriptions: list[Any], entries: Mapping[str, Any], types: RecordedTypes
) -> list[Frame]:
    frames: list[Frame] = []
    for depth, description in enumerate(descriptions):
        program = plan.main if not depth else _inner_program(frames[-1], description["graph"])
        position, iteration = _integer(description, "position"), _integer(description, "iteration")
        if position > len(program.instructions):
            raise ValueError("its recording has a position after the end of a graph")
        bound = NO_BOUND if description["bound"] is None else _integer(description, "bound")
        collected = tuple(
            list(decode_values(f"collected.{depth}.{number}", form, entries))
            for number, form in enumerate(description["collected"])
        )
        region = program.loop
        expected_lists = len(concatenated(region)) if region is not None else 0
        if len(collected) != expected_lists or any(
            abs(len(parts) - iteration) > 1 for parts in collected
        ):
            raise ValueError(
                "its recording has collected other parts than the iterations of its loop"
            )
        for output, parts in zip(
            concatenated(region) if region is not None else (), collected, strict=True
        ):
            types.expect_rows(output.result, parts)
        if region is not None and iteration >= max(bound, 1):
            raise ValueError("its recording is in an iteration that its loop never reaches")
        if description["ending"] not in ENDINGS or not isinstance(description["behind"], bool):
            raise ValueError(f"its recording.json: frame {depth} has an unknown loop ending")
        frames.append(
            Frame(
                program,
                position=position,
                region=region,
                branch=program.branch,
                iteration=iteration,
                bound=bound if region is not None else 0,
                bound_ending=description["ending"],
                collected=collected,
                is_behind=description["behind"],
            )
        )
    if not frames:
        raise ValueError("its recording has no open graph")
    return frames


def _inner_program(outer: Frame, address: object) -> Program:
    """Return the inner graph of this address at which an open graph is stopped."""
    region = outer.program.instructions[outer.position].region
    for program in region.programs if region is not None else ():
        if program.address == address:
            return program
    raise ValueError(
        "its recording has an open graph that does not lie inside the outer open graph"
    )


def _state(machine: Machine, data: Mapping[str, Any]) -> None:
    state, main = data.get("state"), machine.frames[0]
    at_end = len(machine.frames) == 1 and main.position == len(main.program.instructions)
    if state not in ("paused", "finished", "failed") or (state == "finished") != at_end:
        raise ValueError("its recording is in a state in which no run can be")
    machine.state, machine.failure = state, _text(data, "failure")
    machine.out_of_memory = data.get("out_of_memory") is True


# -- values ----------------------------------------------------------------------------------------


def _values(
    machine: Machine, data: Mapping[str, Any], entries: Mapping[str, Any], types: RecordedTypes
) -> frozenset[Slot]:
    plan, values = machine.plan, machine.values
    filled = [Slot(int(text)) for text in data["slots"]]
    sources = [_slot(plan, data["slots"][str(slot)]) for slot in filled]
    for slot, source in zip(filled, sources, strict=True):
        _slot(plan, slot)
        entry = entries.get(f"slot.{source}")
        if entry is None and source not in plan.constant_numbers:
            raise ValueError("its recording refers to a missing value")
        values[slot] = plan.constant[source] if entry is None else settle(entry)
        types.expect(slot, values[slot])
    hidden = (*plan.states, *plan.variables.values())
    for slot, value in zip(hidden, decode_values("hidden", data["hidden"], entries), strict=True):
        types.expect_hidden(slot, value)
        values[slot] = value
    begun = decode_values("begun_with", data["begun_with"], entries)
    for slot, value in zip(plan.main.hidden, begun, strict=True):
        types.expect_hidden(slot, value)
    machine.begun_with = dict(zip(plan.main.hidden, begun, strict=True))
    missing = frozenset(_slot(plan, slot) for slot in _items(data, "missing"))
    if not missing <= plan.main.producer.keys() or (missing and plan.main.hidden):
        raise ValueError("its recording lacks values that cannot be computed again")
    executed = plan.main.instructions[: machine.frames[0].position]
    if any(
        values[slot] is None and slot not in missing and slot > 0
        for instruction in executed
        for slot in instruction.outputs
    ):
        raise ValueError("its recording lacks a value of an executed operation")
    return missing


def _rows(
    machine: Machine, data: Mapping[str, Any], entries: Mapping[str, Any], types: RecordedTypes
) -> None:
    recording = machine.recording
    for text, table in data["rows"].items():
        program = machine.plan.programs[_index(text, len(machine.plan.programs))]
        allowed = set(recorded_slots(program, recording.record))
        columns: dict[Slot, SlotColumn] = {}
        stride, packed = _integer(table, "stride"), _integer(table, "rows")
        if (
            stride < 1
            or table["columns"].keys() != table["pending"].keys()
            or not {*map(int, table["columns"])} <= allowed
        ):
            raise ValueError("its recording has columns of other values than a run records")
        for name, form in table["columns"].items():
            slot = Slot(int(name))
            column = columns[slot] = SlotColumn()
            packed_values = decode_values(f"column.{program.index}.{name}", form, entries)
            types.expect_rows(slot, packed_values)
            column.add(packed_values)
            column.pending = list(
                decode_values(f"pending.{program.index}.{name}", table["pending"][name], entries)
            )
            types.expect_rows(slot, column.pending)
            if column.packed != -(-packed // stride):
                raise ValueError("its recording has a column that is not as long as it says")
        recording.rows[program.index] = RecordedRows(
            columns, stride, packed, is_judged=table["is_judged"] is True
        )
    for index in [index for index in recording.rows if str(index) not in data["rows"]]:
        del recording.rows[index]
    recording.iterations()
    recording.bytes = sum(rows.bytes for rows in recording.rows.values())


def _expect_agreement(machine: Machine, executions: ExecutionIndex) -> None:
    """Raise ``ValueError`` if tables, open graphs and columns do not belong to one run."""
    plan, recording = machine.plan, machine.recording
    for program in plan.programs:
        for number in program.regions:
            region = program.instructions[number].region
            assert region is not None
            calls = executions.calls(program, number)
            table = recording.tables[region.table]
            is_open = any(inner.index in executions.open for inner in region.programs)
            match region:
                case IfRegion():
                    executions_recorded = (
                        len(table.branches) if isinstance(table, BranchLog) else -1
                    )
                case LoopRegion():
                    executions_recorded = (
                        len(table.counts) + is_open if isinstance(table, LoopTable) else -1
                    )
                case _:
                    executions_recorded = calls
            if executions_recorded != calls:
                raise ValueError(
                    "its recording has another number of executions of a loop or branch "
                    "than the graph around it"
                )
    for index, rows in recording.rows.items():
        if rows.begun > executions.rows[index] or any(
            len(column.pending) > 2 for column in rows.columns.values()
        ):
            raise ValueError("its recording has more rows than its loops have iterations")


# -- fields ----------------------------------------------------------------------------------------


def _numbers(entries: Mapping[str, Any], name: str, dtype: type[np.generic]) -> np.ndarray:
    value = entries.get(name, np.zeros(0, dtype))
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != 1:
        raise ValueError(f"its recording has no list of whole numbers as {name}")
    return value


def _integer(table: Mapping[str, Any], name: str) -> int:
    value = table.get(name)
    if type(value) is not int or not 0 <= value < NO_BOUND:
        raise ValueError(f"its recording has no whole number as {name}")
    return value


def _items(table: Mapping[str, Any], name: str) -> list[Any]:
    value = table.get(name)
    if not isinstance(value, list):
        raise ValueError(f"its recording has no list as {name}")
    return value


def _text(table: Mapping[str, Any], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise ValueError(f"its recording has no text as {name}")
    return value


def _slot(plan: Plan, number: object) -> Slot:
    if type(number) is not int or not 0 < number < plan.slot_count:
        raise ValueError("its recording has a value that the model does not have")
    return Slot(number)


def _index(text: str, count: int) -> ProgramIndex:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) >= count:
        raise ValueError("its recording has columns of a graph that the model does not have")
    return ProgramIndex(int(text))
