"""Serial runner of samples, each in a run of its own."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from loopscope.debug.inputs import bind
from loopscope.debug.progress import place, start
from loopscope.debug.result import as_public
from loopscope.debug.run import Run
from loopscope.errors import EngineError, InputError
from loopscope.executor import drive
from loopscope.executor.machine.limits import Limits, Paused
from loopscope.executor.machine.machine import Failure, Machine
from loopscope.executor.plan.plan import LoopRegion
from loopscope.executor.plan.slots import Slot
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import ENDINGS, NOTHING, Ending, LoopTable, Record
from loopscope.explain.not_finite import first_not_finite
from loopscope.ops.kernel_checks import at_most
from loopscope.ops.values import is_tensor
from loopscope.sweeps.job import Batch, Stop, SweepJob
from loopscope.sweeps.margins import distances
from loopscope.sweeps.row_layout import ERROR, FIRST_NAN, SAMPLE, SECONDS, Kind, value_of

_SHARE_OF_RECORDS = 8
_NUMBERS: Mapping[Kind, type[bool] | type[int] | type[float]] = {
    "bool": bool,
    "int64": int,
    "uint64": int,
    "float64": float,
}


def rows_one_by_one(order: SweepJob, batch: Batch, stop: Stop) -> pa.RecordBatch:
    """Return a row for each sample; a failed sample has its error in its row. After a ``stop``,
    return the rows done before it.
    """
    rows: list[dict[str, Any]] = []
    for number, sample in enumerate(batch.samples):
        row = _row(order, int(sample), partial(batch.inputs, number), stop)
        if stop.asked:
            break
        rows.append(row)
    return pa.RecordBatch.from_pylist(rows, order.schema)


def _row(
    order: SweepJob, sample: int, inputs: Callable[[], Mapping[int, Any]], stop: Stop
) -> dict[str, Any]:
    begun = time.perf_counter()
    row: dict[str, Any] = {SAMPLE: sample}
    try:
        row |= _run_row(order, sample, inputs(), row, stop)
    except EngineError as error:
        row[ERROR] = str(error)
    row[SECONDS] = time.perf_counter() - begun
    return row


def _run_row(
    order: SweepJob, sample: int, inputs: Mapping[int, Any], row: dict[str, Any], stop: Stop
) -> dict[str, Any]:
    plan, layout = order.plan, order.layout
    arrays = bind(plan.model, inputs)
    for column in layout.inputs:
        row[column.name] = number(arrays[plan.model.inputs[column.position].layer], column.kind)
    inspects = layout.finds_nan or layout.tells_margins or bool(layout.expressions)
    values = {plan.main.parameters[layer]: array for layer, array in arrays.items()}
    overrides = Overrides(plan)
    machine = start(
        overrides,
        values,
        order.limits,
        _record(order.limits) if inspects else NOTHING,
        order.seed + sample,
        keeps=inspects,
    )
    stop.watch(machine.control)
    cause: Ending | None = None
    try:
        drive.run(machine)
    except Paused as pause:
        cause, row[ERROR] = pause.cause, f"{place(machine)}: {pause.message}"
    except Failure as failure:
        cause, row[ERROR] = "error", f"{place(machine)}: {failure}"
    row |= _control_flow(order, machine, cause)
    if cause is None:
        row |= {
            column.name: number(machine.values[column.slot], column.kind)
            for column in layout.outputs
        }
    if inspects:
        with at_most(machine.control.most_elements):
            _inspect(order, Run(plan.model, overrides, machine, order.limits), row)
    return row


def _record(limits: Limits) -> Record:
    """Return a recording that leaves most of a run's memory to its values. Unrecorded rows are
    recomputed.
    """
    default = Record()
    budget = (
        default.budget_bytes
        if limits.memory_bytes is None
        else min(default.budget_bytes, limits.memory_bytes // _SHARE_OF_RECORDS)
    )
    return replace(default, budget_bytes=budget)


def _inspect(order: SweepJob, run: Run, row: dict[str, Any]) -> None:
    """Add the first NaN, the margins and the user's columns to the row.

    The first column without a value sets the row's error.
    """
    row |= _margins(order, run)
    if order.layout.finds_nan and (first_nan := first_not_finite(run, math.inf)).step is not None:
        row[FIRST_NAN] = first_nan.address
    for name, expression in order.layout.expressions:
        try:
            value = expression.value(lambda name: value_of(run, order.layout.addresses[name]))
            if np.size(value) != 1 or isinstance(value, tuple):
                raise InputError(
                    f"the column {name!r} has {np.size(value)} elements, one is expected: "
                    "take max(...) or sum(...) of it"
                )
            row[name] = float(np.asarray(value).item())
        except EngineError as error:
            row.setdefault(ERROR, str(error))


def _margins(order: SweepJob, run: Run) -> dict[str, float]:
    """Return the margin by which a condition ended each loop; for a nested loop the sum, minimum
    and maximum.
    """
    columns: dict[str, float] = {}
    regions = {
        instruction.region.table: instruction.region
        for _, instruction in order.plan.regions
        if isinstance(instruction.region, LoopRegion)
    }
    for loop in order.layout.loops:
        if loop.condition is None:
            continue
        region, table = regions[loop.table], run.machine.recording.tables[loop.table]
        assert isinstance(table, LoopTable)
        ended = [
            number for number, ending in enumerate(table.endings) if ENDINGS[ending] == "condition"
        ]
        rows = [run.timeline.executions.rows_of(region, number)[1] - 1 for number in ended]
        margins = (
            distances(loop.condition, partial(_values_in_rows, run, region, rows))
            if rows
            else np.zeros(0)
        )
        margins = margins[~np.isnan(margins)]
        if len(margins):  # summed one after another, as the lanes sum them
            columns |= zip(
                loop.margins,
                map(float, (np.add.accumulate(margins)[-1], margins.min(), margins.max())),
                strict=False,
            )
    return columns


def _values_in_rows(run: Run, region: LoopRegion, rows: Sequence[int], slot: Slot) -> np.ndarray:
    return np.array(
        [
            np.asarray(run.values.get(run.timeline, region.program, row, slot)).reshape(())
            for row in rows
        ]
    )


def _control_flow(order: SweepJob, machine: Machine, cause: Ending | None) -> dict[str, Any]:
    """Return the counts and endings of loops and branches, as far as the run came."""
    columns: dict[str, Any] = {}
    open_loops = {
        frame.region.table: frame.iteration for frame in machine.frames if frame.region is not None
    }
    for loop in order.layout.loops:
        table = machine.recording.tables[loop.table]
        assert isinstance(table, LoopTable)
        counts, endings = list(table.counts), {ENDINGS[ending] for ending in table.endings}
        names: list[str] = [ending for ending in ENDINGS if ending in endings]
        if loop.table in open_loops:
            counts.append(open_loops[loop.table])
            names += [cause] if cause is not None else []
        if counts:
            numbers = (sum(counts), min(counts), max(counts)) if loop.nested else (counts[0],)
            columns |= zip(loop.counts, numbers, strict=True)
            columns[f"ended {loop.address}"] = ", ".join(names)
        elif loop.nested:
            columns[loop.counts[0]] = 0
    for branch in order.layout.branches:
        branches_taken = machine.recording.branch_log(branch.table).branches
        columns[f"then {branch.address}"] = thens = sum(branches_taken)
        columns[f"else {branch.address}"] = len(branches_taken) - thens
    return columns


def number(value: Any, kind: Kind) -> bool | int | float | str | None:
    """Return a value in the form that a row has."""
    if kind == "string":
        return fingerprint(value)
    return (
        _NUMBERS[kind](np.asarray(value).item())
        if is_tensor(value) and np.size(value) == 1
        else None
    )


def fingerprint(value: Any) -> str | None:
    """Return type, shape and a digest of all bytes of a tensor; the number itself for one element;
    None for other values.

    >>> fingerprint(np.int64(7)), fingerprint(np.zeros((2, 3), np.float32))
    ('7', 'float32[2,3] 2bb6ae06ad472028')
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"sequence of {len(value)}: " + ", ".join(str(fingerprint(item)) for item in value)
    if not is_tensor(value):
        return None
    array = np.asarray(as_public(value))
    if array.size == 1:
        return str(array.item())
    data = (
        "\0".join(map(str, array.reshape(-1).tolist())).encode()
        if array.dtype == object
        else np.ascontiguousarray(array).tobytes()
    )
    digest = hashlib.blake2b(data, digest_size=8).hexdigest()
    return f"{array.dtype}[{','.join(map(str, array.shape))}] {digest}"
