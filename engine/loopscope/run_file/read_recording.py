"""A recording put back into a run at its beginning, as if it had just been computed: read from a
file that anybody may have written.
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
from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan, Program, settle
from loopscope.executor.record.branch_log import BranchLog
from loopscope.executor.record.columns import RecordedRows, SlotColumn
from loopscope.executor.record.endings import ENDINGS
from loopscope.executor.record.recording import LoopTable, recorded_slots
from loopscope.run_file.layout import layout_of
from loopscope.run_file.recorded_types import RecordedTypes
from loopscope.run_file.value_codec import read
from loopscope.timeline.sizes import ExecutionIndex

MOST_ITERATIONS = 2**31
"""Of all loops together, and steps of a row: what a file may promise at most, since tables are
as long as that.
"""
_LONGEST_TEXT = 10_000


def put_back(run: Run, document: bytes, entries: Mapping[str, Any]) -> None:
    """``ValueError`` when the recording is not one of this model and this version's plan, or
    contradicts itself; the run stays as is.
    """
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        raise ValueError("its recording.json is not JSON") from None
    if not isinstance(data, dict):
        raise ValueError("its recording.json is no table")
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
    machine.control = replace(fresh.control, iterations=_whole(data, "iterations"))
    types = RecordedTypes(plan)
    try:
        _tables(machine, entries)
        machine.frames = _frames(plan, _listed(data, "frames"), entries, types)
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
    if (
        bound is not None and machine.control.iterations >= bound
    ):  # after a limit a run may go on for as much again
        machine.control.limits = replace(
            machine.control.limits, iterations=machine.control.iterations + bound
        )
    run.put_back(
        machine, limit=_text(data, "limit"), endless=_text(data, "endless"), missing=missing
    )


# -- what ran
# ---------------------------------------------------------------------------------------------------------


def _tables(machine: Machine, entries: Mapping[str, Any]) -> None:
    total = 0
    for number, table in enumerate(machine.recording.tables):
        if isinstance(table, BranchLog):
            taken = _numbers(entries, f"branches.{number}", np.uint8)
            if taken.max(initial=0) > 1:
                raise ValueError("its recording has a branch that is neither then nor else")
            machine.recording.tables[number] = BranchLog.of(taken.tobytes())
            continue
        counts, endings = (
            _numbers(entries, f"counts.{number}", np.int64),
            _numbers(entries, f"endings.{number}", np.uint8),
        )
        if (
            len(counts) != len(endings)
            or counts.min(initial=0) < 0
            or endings.max(initial=0) >= len(ENDINGS)
        ):
            raise ValueError("its recording has a loop whose counts and endings do not go together")
        total += sum(counts.tolist())
        if total > MOST_ITERATIONS:
            raise ValueError(f"its recording has more than {MOST_ITERATIONS:,} iterations")
        machine.recording.tables[number] = LoopTable(counts.tolist(), endings.tolist())


def _frames(
    plan: Plan, told: list[Any], entries: Mapping[str, Any], types: RecordedTypes
) -> list[Frame]:
    frames: list[Frame] = []
    for depth, one in enumerate(told):
        program = plan.main if not depth else _inside(frames[-1], one["graph"])
        position, iteration = _whole(one, "position"), _whole(one, "iteration")
        if position > len(program.instructions):
            raise ValueError("its recording stands behind the end of a graph")
        bound = NO_BOUND if one["bound"] is None else _whole(one, "bound")
        collected = tuple(
            list(read(f"collected.{depth}.{number}", form, entries))
            for number, form in enumerate(one["collected"])
        )
        region = program.loop
        wanted = len(concatenated(region)) if region is not None else 0
        if len(collected) != wanted or any(abs(len(parts) - iteration) > 1 for parts in collected):
            raise ValueError(
                "its recording has collected other parts than its loop's iterations give"
            )
        for joined, parts in zip(
            concatenated(region) if region is not None else (), collected, strict=True
        ):
            types.expect_rows(joined.result, parts)
        if region is not None and iteration >= max(bound, 1):
            raise ValueError("its recording is in an iteration that its loop never comes to")
        if one["ending"] not in ENDINGS or not isinstance(one["behind"], bool):
            raise ValueError("its recording has an open loop that is none")
        frames.append(
            Frame(
                program,
                position=position,
                region=region,
                branch=program.branch,
                iteration=iteration,
                bound=bound if region is not None else 0,
                bound_ending=one["ending"],
                collected=collected,
                is_behind=one["behind"],
            )
        )
    if not frames:
        raise ValueError("its recording has no open graph")
    return frames


def _inside(outer: Frame, address: object) -> Program:
    """The graph that an open graph stands at."""
    region = outer.program.instructions[outer.position].region
    for program in region.programs if region is not None else ():
        if program.address == address:
            return program
    raise ValueError("its recording has an open graph that does not lie in the one around it")


def _state(machine: Machine, data: Mapping[str, Any]) -> None:
    state, main = data.get("state"), machine.frames[0]
    at_end = len(machine.frames) == 1 and main.position == len(main.program.instructions)
    if state not in ("paused", "finished", "failed") or (state == "finished") != at_end:
        raise ValueError("its recording is in a state in which no run can be")
    machine.state, machine.failure = state, _text(data, "failure")
    machine.out_of_memory = data.get("out_of_memory") is True


# -- values
# -----------------------------------------------------------------------------------------------------------


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
            raise ValueError("its recording lacks a value that it names")
        values[slot] = plan.constant[source] if entry is None else settle(entry)
        types.expect(slot, values[slot])
    hidden = (*plan.states, *plan.variables.values())
    for slot, value in zip(hidden, read("hidden", data["hidden"], entries), strict=True):
        types.expect_hidden(slot, value)
        values[slot] = value
    begun = read("begun_with", data["begun_with"], entries)
    for slot, value in zip(plan.main.hidden, begun, strict=True):
        types.expect_hidden(slot, value)
    machine.begun_with = dict(zip(plan.main.hidden, begun, strict=True))
    missing = frozenset(_slot(plan, slot) for slot in _listed(data, "missing"))
    if not missing <= plan.main.producer.keys() or (missing and plan.main.hidden):
        raise ValueError("its recording misses values that cannot be computed again")
    done = plan.main.instructions[: machine.frames[0].position]
    if any(
        values[slot] is None and slot not in missing and slot > 0
        for one in done
        for slot in one.outputs
    ):
        raise ValueError("its recording lacks a value of an operation that has run")
    return missing


def _rows(
    machine: Machine, data: Mapping[str, Any], entries: Mapping[str, Any], types: RecordedTypes
) -> None:
    recording = machine.recording
    for text, one in data["rows"].items():
        program = machine.plan.programs[_index(text, len(machine.plan.programs))]
        allowed = set(recorded_slots(program, recording.record))
        columns: dict[Slot, SlotColumn] = {}
        stride, packed = _whole(one, "stride"), _whole(one, "rows")
        if (
            stride < 1
            or one["columns"].keys() != one["pending"].keys()
            or not {*map(int, one["columns"])} <= allowed
        ):
            raise ValueError("its recording has columns of other values than a run records")
        for name, form in one["columns"].items():
            slot = Slot(int(name))
            column = columns[slot] = SlotColumn()
            packed_values = read(f"column.{program.index}.{name}", form, entries)
            types.expect_rows(slot, packed_values)
            column.add(packed_values)
            column.pending = list(
                read(f"pending.{program.index}.{name}", one["pending"][name], entries)
            )
            types.expect_rows(slot, column.pending)
            if column.packed != -(-packed // stride):
                raise ValueError("its recording has a column that is not as long as it says")
        recording.rows[program.index] = RecordedRows(
            columns, stride, packed, is_judged=one["is_judged"] is True
        )
    for index in [index for index in recording.rows if str(index) not in data["rows"]]:
        del recording.rows[index]
    recording.iterations()
    recording.bytes = sum(rows.bytes for rows in recording.rows.values())


def _expect_agreement(machine: Machine, executions: ExecutionIndex) -> None:
    """``ValueError`` when tables, open graphs and columns are not those of one run."""
    plan, recording = machine.plan, machine.recording
    for program in plan.programs:
        for number in program.regions:
            region = program.instructions[number].region
            assert region is not None
            calls = executions.calls(program, number)
            table = recording.tables[region.table]
            is_open = any(one.index in executions.open for one in region.programs)
            match region:
                case IfRegion():
                    there = len(table.branches) if isinstance(table, BranchLog) else -1
                case LoopRegion():
                    there = len(table.counts) + is_open if isinstance(table, LoopTable) else -1
                case _:
                    there = calls
            if there != calls:
                raise ValueError(
                    "its recording has another number of executions of a loop or branch than what is around it"
                )
    for index, rows in recording.rows.items():
        if rows.begun > executions.rows[index] or any(
            len(one.pending) > 2 for one in rows.columns.values()
        ):
            raise ValueError("its recording has more rows than its loops have iterations")


# -- fields
# -----------------------------------------------------------------------------------------------------------


def _numbers(entries: Mapping[str, Any], name: str, dtype: type[np.generic]) -> np.ndarray:
    found = entries.get(name, np.zeros(0, dtype))
    if not isinstance(found, np.ndarray) or found.dtype != dtype or found.ndim != 1:
        raise ValueError(f"its recording has no list of whole numbers as {name}")
    return found


def _whole(table: Mapping[str, Any], name: str) -> int:
    found = table.get(name)
    if type(found) is not int or not 0 <= found < NO_BOUND:
        raise ValueError(f"its recording has no whole number as {name}")
    return found


def _listed(table: Mapping[str, Any], name: str) -> list[Any]:
    found = table.get(name)
    if not isinstance(found, list):
        raise ValueError(f"its recording has no list as {name}")
    return found


def _text(table: Mapping[str, Any], name: str) -> str:
    found = table.get(name)
    if not isinstance(found, str) or len(found) > _LONGEST_TEXT:
        raise ValueError(f"its recording has no text as {name}")
    return found


def _slot(plan: Plan, number: object) -> Slot:
    if type(number) is not int or not 0 < number < plan.slot_count:
        raise ValueError("its recording has a value that the model has not")
    return Slot(number)


def _index(text: str, count: int) -> ProgramIndex:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) >= count:
        raise ValueError("its recording has columns of a graph that the model has not")
    return ProgramIndex(int(text))
