"""Runner of samples: side by side in lanes if that gives the same rows, else one by one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from loopscope.debug.inputs import convert_to
from loopscope.errors import EngineError
from loopscope.executor.plan.slots import Slot, settle
from loopscope.executor.record.recording import ENDINGS
from loopscope.ir.model import Signature
from loopscope.ir.shape import DYNAMIC
from loopscope.sweeps.job import Batch, Stop, SweepJob, SweepStopped
from loopscope.sweeps.lane_data import NotInLanes, may_run_in_lanes
from loopscope.sweeps.lane_machine import Lanes
from loopscope.sweeps.row_layout import LoopColumns
from loopscope.sweeps.serial import number, rows_one_by_one
from loopscope.timeline.vectorised import RowValues

_MIN_LANES = 32
"""Minimum number of samples for lanes."""
_MAX_LANES, _MAX_VALUES = 1 << 15, 1 << 23
_NO_LIMIT = 1 << 62


def lanes_of(order: SweepJob) -> int:
    """Return the number of samples that run side by side; 0 if the model does not allow it."""
    if not order.lanes or order.columns or not may_run_in_lanes(order.plan):
        return 0
    return max(_MIN_LANES, min(_MAX_LANES, _MAX_VALUES // order.plan.slot_count))


def rows_of(order: SweepJob, batch: Batch, stop: Stop) -> pa.RecordBatch:
    """Return a row for each sample, in order, independent of how they ran. After a ``stop``, return
    the first rows only.
    """
    parts: list[pa.RecordBatch] = []
    with contextlib.suppress(SweepStopped):
        parts += _parts(order, batch, stop)
    joined = pa.Table.from_batches(parts, order.schema).combine_chunks()
    batches = joined.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], order.schema)


def _parts(order: SweepJob, batch: Batch, stop: Stop) -> Iterator[pa.RecordBatch]:
    """Yield the rows in parts. If lanes fail, halves are tried, so that one failing sample does not
    slow the others.
    """
    if len(batch) < _MIN_LANES or not lanes_of(order):
        yield rows_one_by_one(order, batch, stop)
        return
    try:
        yield _in_lanes(order, batch, stop)
    except NotInLanes:
        yield rows_one_by_one(order, batch, stop)
    except (EngineError, ValueError, TypeError, IndexError, OverflowError, MemoryError):
        middle = len(batch) // 2
        yield from _parts(order, batch.at(np.arange(middle)), stop)
        yield from _parts(order, batch.at(np.arange(middle, len(batch))), stop)


def _in_lanes(order: SweepJob, batch: Batch, stop: Stop) -> pa.RecordBatch:
    begun = time.perf_counter()
    count, limit = len(batch), order.limits.iterations
    lanes = Lanes(
        order.plan,
        _bind_inputs(order, batch),
        count,
        most_iterations=_NO_LIMIT if limit is None else int(limit),
        finds_nan=order.layout.finds_nan,
        stop=stop,
        conditions={
            loop.table: loop.condition for loop in order.layout.loops if loop.condition is not None
        },
    )
    lanes.run(count)
    must_run_alone = np.flatnonzero(lanes.left)
    if len(must_run_alone) == count:
        raise NotInLanes("no lane is left")
    rows = _rows(order, batch, lanes, time.perf_counter() - begun)
    if not len(must_run_alone):
        return rows
    serial_rows = rows_one_by_one(order, batch.at(must_run_alone), stop)
    stop.check()
    places = np.arange(count)
    places[must_run_alone] = count + np.arange(len(must_run_alone))
    whole = pa.Table.from_batches([rows, serial_rows]).take(pa.array(places)).combine_chunks()
    return whole.to_batches()[0]


def _bind_inputs(order: SweepJob, batch: Batch) -> dict[Slot, RowValues]:
    """Return the inputs of all samples at once; ``NotInLanes`` if they differ in shape or are
    incomplete.
    """
    columns: dict[Slot, RowValues] = {}
    for position, signature in enumerate(order.plan.model.inputs):
        slot = order.plan.main.parameters[signature.layer]
        varying = batch.varying.get(position)
        if varying is None and position in batch.fixed:
            columns[slot] = RowValues(settle(_converted(batch.fixed[position], signature)), False)
        elif isinstance(varying, np.ndarray) and signature.form == "tensor":
            columns[slot] = RowValues(_converted(varying, signature, samples=True), True)
        else:
            raise NotInLanes(signature.name)
    return columns


def _converted(values: object, signature: Signature, *, samples: bool = False) -> np.ndarray:
    """Return a value as an array. An ``InputError`` is then reported in the row of its sample."""
    array = convert_to(values, signature.element_type, DYNAMIC, f"input {signature.name!r}")
    if array.dtype == object or not signature.shape.contains(array.shape[samples:]):
        raise NotInLanes(signature.name)
    return array


def _rows(order: SweepJob, batch: Batch, lanes: Lanes, seconds: float) -> pa.RecordBatch:
    count, layout = len(batch), order.layout
    columns: list[pa.Array] = [pa.array(batch.samples)]
    columns += [
        _number_column(lanes.values[column.slot], column.kind, count) for column in layout.inputs
    ]
    for loop in layout.loops:
        columns += _loop_columns(loop, lanes)
    for branch in layout.branches:
        tally = lanes.branches[branch.table]
        columns += [pa.array(tally.then), pa.array(tally.otherwise)]
    columns += [
        _number_column(lanes.values[column.slot], column.kind, count) for column in layout.outputs
    ]
    columns.append(pa.nulls(count, "string"))
    if layout.seconds:
        columns.append(pa.array(np.full(count, seconds / count)))
    columns.append(pa.nulls(count, "string"))
    return pa.RecordBatch.from_arrays(columns, schema=order.schema)


def _loop_columns(loop: LoopColumns, lanes: Lanes) -> list[pa.Array]:
    tally = lanes.loops[loop.table]
    never = tally.executions == 0
    numbers = (tally.total, tally.minimum, tally.maximum) if loop.nested else (tally.total,)
    masks = [
        np.zeros_like(never) if loop.nested and place == 0 else never
        for place in range(len(numbers))
    ]
    names = [
        ", ".join(name for bit, name in enumerate(ENDINGS) if code >> bit & 1) or None
        for code in range(1 << len(ENDINGS))
    ]
    count_columns = [
        pa.array(values, mask=mask) for values, mask in zip(numbers, masks, strict=True)
    ]
    margins_of_loop = tally.margins if loop.nested else tally.margins[:1]
    margins = [
        pa.array(values, mask=np.isnan(values)) for values in margins_of_loop[: len(loop.margins)]
    ]
    return [*count_columns, pa.array(names, "string").take(pa.array(tally.endings)), *margins]


def _number_column(column: RowValues, kind: str, count: int) -> pa.Array:
    values = column.of(count)
    if kind == "string":
        return pa.array([number(value, "string") for value in values], "string")
    if values.size != count:
        return pa.nulls(count, kind)
    return pa.array(np.ascontiguousarray(values.reshape(count)).astype(kind), kind)
