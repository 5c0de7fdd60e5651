"""The rows of samples that run side by side where that gives the same, and one by one where it
does not.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from loopscope.debug.inputs import convert_to
from loopscope.errors import EngineError
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import settle
from loopscope.executor.record.endings import ENDINGS
from loopscope.ir.model import Signature
from loopscope.ir.shape import DYNAMIC
from loopscope.sweeps.batch import Batch
from loopscope.sweeps.job import SweepJob
from loopscope.sweeps.lane_machine import Lanes
from loopscope.sweeps.lane_values import NotInLanes, may_run_in_lanes
from loopscope.sweeps.row_layout import LoopColumns
from loopscope.sweeps.serial import number, rows_one_by_one
from loopscope.sweeps.stopping import Stop, SweepStopped
from loopscope.timeline.vectorised import RowValues

_FEWEST = 32
"""Samples for which lanes are worth while."""
_MOST_LANES, _MOST_VALUES = 1 << 15, 1 << 23
_NO_LIMIT = 1 << 62


def lanes_of(order: SweepJob) -> int:
    """How many samples run side by side; 0 where the model cannot."""
    if not order.lanes or order.columns or not may_run_in_lanes(order.plan):
        return 0
    return max(_FEWEST, min(_MOST_LANES, _MOST_VALUES // order.plan.slot_count))


def rows_of(order: SweepJob, batch: Batch, stop: Stop) -> pa.RecordBatch:
    """A row for each sample, in order; the same whatever way they ran. After a ``stop``, the
    first of them.
    """
    parts: list[pa.RecordBatch] = []
    with contextlib.suppress(SweepStopped):
        parts += _parts(order, batch, stop)
    joined = pa.Table.from_batches(parts, order.schema).combine_chunks()
    found = joined.to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], order.schema)


def _parts(order: SweepJob, batch: Batch, stop: Stop) -> Iterator[pa.RecordBatch]:
    """Where lanes fail, halves are tried, so that one sample whose run fails does not slow all
    the others.
    """
    if len(batch) < _FEWEST or not lanes_of(order):
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
        _bound(order, batch),
        count,
        most_iterations=_NO_LIMIT if limit is None else int(limit),
        finds_nan=order.layout.finds_nan,
        stop=stop,
        conditions={
            loop.table: loop.condition for loop in order.layout.loops if loop.condition is not None
        },
    )
    lanes.run(count)
    left = np.flatnonzero(lanes.left)
    if len(left) == count:
        raise NotInLanes("no lane is left")
    rows = _rows(order, batch, lanes, time.perf_counter() - begun)
    if not len(left):
        return rows
    alone = rows_one_by_one(order, batch.at(left), stop)
    stop.check()
    places = np.arange(count)
    places[left] = count + np.arange(len(left))
    whole = pa.Table.from_batches([rows, alone]).take(pa.array(places)).combine_chunks()
    return whole.to_batches()[0]


def _bound(order: SweepJob, batch: Batch) -> dict[Slot, RowValues]:
    """The inputs of all samples at once; ``NotInLanes`` where they differ in shape or are not
    all there.
    """
    found: dict[Slot, RowValues] = {}
    for position, signature in enumerate(order.plan.model.inputs):
        slot = order.plan.main.parameters[signature.layer]
        varying = batch.varying.get(position)
        if varying is None and position in batch.fixed:
            found[slot] = RowValues(settle(_fits(batch.fixed[position], signature)), False)
        elif isinstance(varying, np.ndarray) and signature.form == "tensor":
            found[slot] = RowValues(_fits(varying, signature, samples=True), True)
        else:
            raise NotInLanes(signature.name)
    return found


def _fits(values: object, signature: Signature, *, samples: bool = False) -> np.ndarray:
    """``InputError`` when a value does not fit, which its sample's own row then says."""
    array = convert_to(values, signature.element_type, DYNAMIC, f"input {signature.name!r}")
    if array.dtype == object or not signature.shape.contains(array.shape[samples:]):
        raise NotInLanes(signature.name)
    return array


def _rows(order: SweepJob, batch: Batch, lanes: Lanes, seconds: float) -> pa.RecordBatch:
    count, layout = len(batch), order.layout
    found: list[pa.Array] = [pa.array(batch.samples)]
    found += [_numbers(lanes.values[one.slot], one.kind, count) for one in layout.inputs]
    for loop in layout.loops:
        found += _of_loop(loop, lanes)
    for branch in layout.branches:
        tally = lanes.branches[branch.table]
        found += [pa.array(tally.then), pa.array(tally.otherwise)]
    found += [_numbers(lanes.values[one.slot], one.kind, count) for one in layout.outputs]
    found.append(pa.nulls(count, "string"))
    if layout.seconds:
        found.append(pa.array(np.full(count, seconds / count)))
    found.append(pa.nulls(count, "string"))
    return pa.RecordBatch.from_arrays(found, schema=order.schema)


def _of_loop(loop: LoopColumns, lanes: Lanes) -> list[pa.Array]:
    tally = lanes.loops[loop.table]
    never = tally.executions == 0
    numbers = (tally.total, tally.least, tally.most) if loop.nested else (tally.total,)
    masks = [
        np.zeros_like(never) if loop.nested and place == 0 else never
        for place in range(len(numbers))
    ]
    names = [
        ", ".join(name for bit, name in enumerate(ENDINGS) if code >> bit & 1) or None
        for code in range(1 << len(ENDINGS))
    ]
    made = [pa.array(one, mask=mask) for one, mask in zip(numbers, masks, strict=True)]
    told = tally.margins if loop.nested else tally.margins[:1]
    margins = [pa.array(one, mask=np.isnan(one)) for one in told[: len(loop.margins)]]
    return [*made, pa.array(names, "string").take(pa.array(tally.endings)), *margins]


def _numbers(column: RowValues, kind: str, count: int) -> pa.Array:
    values = column.of(count)
    if kind == "string":
        return pa.array([number(one, "string") for one in values], "string")
    if values.size != count:
        return pa.nulls(count, kind)
    return pa.array(np.ascontiguousarray(values.reshape(count)).astype(kind), kind)
