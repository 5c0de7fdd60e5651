"""Values of a trace for a comparison: whole columns, and samples that represent large tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.slots import Slot
from loopscope.ir.recorded_rows import RECORDED, VALUES, ValuesByRow, sample_indices

_MAX_COLUMN_BYTES = 1 << 28


def recorded_column(program: Program, slot: Slot, rows: np.ndarray) -> np.ndarray | None:
    """Return the recorded values of a slot in some rows, along the first axis.

    Return None if the slot is not from a trace, or if its values differ in shape or type.
    """
    recorded = _recorded_rows(program, slot)
    if recorded is None:
        return None
    if isinstance(recorded.values, np.ndarray):
        return np.asarray(recorded.values[rows])
    values = [recorded.values[row] for row in rows.tolist()]
    arrays = [np.asarray(value) for value in values if value is not None]
    if (
        not arrays
        or len(arrays) < len(values)
        or len({(array.dtype, array.shape) for array in arrays}) > 1
        or arrays[0].nbytes * len(arrays) > _MAX_COLUMN_BYTES
    ):
        return None
    return np.stack(arrays)


def alike_samples(
    programs: tuple[Program, Program],
    rows: tuple[int, int],
    slots: tuple[Slot, Slot],
    values: Sequence[object],
) -> Sequence[object]:
    """Return the two values, or the samples of both if the trace stored only samples of one."""
    shapes = [
        _whole_shape(program, slot, row)
        for program, slot, row in zip(programs, slots, rows, strict=True)
    ]
    if (shapes[0] is None) == (shapes[1] is None):
        return values
    whole = 0 if shapes[0] is None else 1
    array = values[whole]
    if not isinstance(array, np.ndarray) or array.shape != shapes[1 - whole]:
        return values
    samples = array.reshape(-1)[sample_indices(array.size)]
    return (samples, values[1]) if whole == 0 else (values[0], samples)


def _recorded_rows(program: Program, slot: Slot) -> ValuesByRow | None:
    number = program.producer.get(slot)
    if number is None or program.instructions[number].node.type != RECORDED:
        return None
    rows = program.instructions[number].node.attributes.get(VALUES)
    return rows if isinstance(rows, ValuesByRow) else None


def _whole_shape(program: Program, slot: Slot, row: int) -> tuple[int, ...] | None:
    """Return the shape of the tensor whose samples a trace stored in a row; None if it is whole."""
    recorded = _recorded_rows(program, slot)
    facts = recorded.fingerprints.get(row) if recorded is not None else None
    return None if facts is None else tuple(facts["shape"])
