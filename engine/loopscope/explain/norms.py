"""Norms of values over some executions of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopscope.debug.export_value import as_public
from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Program
from loopscope.ops.values import is_tensor
from loopscope.timeline.vectorised import Columns, Recorded


def norms(run: Run, program: Program, rows: Sequence[int], slot: Slot) -> list[float | None]:
    """Return the Euclidean norm of a value in each row; None if the value is unavailable."""
    return [None if array is None else norm(array) for array in values(run, program, rows, slot)]


def values(
    run: Run, program: Program, rows: Sequence[int], slot: Slot
) -> Iterator[np.ndarray | None]:
    """Yield a value in each row; None if it is unavailable."""
    if not len(rows):
        return
    column = (
        Columns(Recorded(run.timeline), program, np.asarray(rows)).column(slot)
        if program.parent is not None
        else None
    )
    if column is not None:
        yield from as_public(column.of(len(rows)))
        return
    for row in rows:
        yield value(run, program, row, slot)


def value(run: Run, program: Program, row: int, slot: Slot) -> np.ndarray | None:
    """Return a tensor in one row; None if it did not run or cannot be recomputed."""
    try:
        result = (
            run.values.get(run.timeline, program, row, slot)
            if run.has_run(program, row, slot)
            else None
        )
    except (EngineError, ValueError, TypeError):
        return None
    return as_public(result) if result is not None and is_tensor(result) else None


def norm(array: np.ndarray) -> float:
    """Return the Euclidean norm of all elements, in f64."""
    return float(np.linalg.norm(np.asarray(array).astype(np.float64).reshape(-1)))
