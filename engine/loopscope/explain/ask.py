"""Expressions over the iterations of a loop, such as ``total[i] - total[i-1]``: one result per
iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from loopscope.debug.breakpoints import ITERATION
from loopscope.debug.expression import Expression, parse
from loopscope.debug.lookup import slot_of
from loopscope.debug.run import Run
from loopscope.errors import EngineError, ExpressionError, elided, listed, shorten
from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.history import evenly
from loopscope.explain.verdict import execution
from loopscope.ir.address_search import full_address
from loopscope.ir.readable import STEP
from loopscope.ops.values import is_tensor
from loopscope.timeline.vectorised import Columns, Recorded

COUNTER = "i"
MOST_ITERATIONS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class ExpressionResult:
    """Values of an expression."""

    address: str
    """Address of the loop."""
    program: Program
    first_row: int
    total: int
    """Number of iterations that have begun."""
    iterations: tuple[int, ...]
    """Evaluated iterations, evenly chosen in long loops."""
    values: tuple[Any, ...]
    """One value per evaluated iteration.

    None if a required value does not exist, such as the value before the first iteration.
    """
    reason: str
    """Reason why the first missing value is missing; empty if no value is missing."""

    @property
    def numbers(self) -> tuple[float | None, ...]:
        """Numbers to plot: None for values that are not a single finite number."""
        return tuple(_number(value) for value in self.values)


def ask(run: Run, address: str, text: str, limit: int = MOST_ITERATIONS) -> ExpressionResult:
    """Return the value of an expression in every iteration of the loop execution at an address.

    Names are nodes of the body or of the enclosing graphs. ``name`` and ``name[i]`` are the value
    in iteration ``i`` (from 0), ``name[i-1]`` the value in the previous iteration; ``i`` is the
    iteration number. Other indices select elements: ``name[0]``, ``name[i-1][0]``. Raise
    ``ExpressionError`` if the expression is invalid, uses an unknown name, or does not have a value
    in any iteration.
    """
    expression = parse(text).over(COUNTER)
    outer, execution_row, region, instruction = execution(run, address)
    first, end = run.timeline.executions.rows_of(region, execution_row)
    chosen = evenly(end - first, limit)
    if not chosen:
        raise ExpressionError("the loop ran no iteration: a formula needs one")
    source = _Source(run, region.program, first, end)
    source.check(expression)
    values: list[Any] = []
    reasons: list[str] = []
    for iteration in chosen:
        try:
            values.append(expression.value(partial(source.value, iteration)))
        except EngineError as error:
            values.append(None)
            reasons.append(str(error))
    if len(reasons) == len(values):
        # The first and the last may lack only what the others have.
        raise ExpressionError(reasons[len(reasons) // 2])
    reason = reasons[0] if reasons else ""
    place = f"{run.timeline.address(outer, execution_row)}/{instruction.label}"
    return ExpressionResult(
        place, region.program, first, end - first, tuple(chosen), tuple(values), reason
    )


class _Source:
    """Values of names in one loop execution."""

    def __init__(self, run: Run, program: Program, first: int, end: int) -> None:
        self.run, self.program = run, program
        self.first, self.end = first, end
        self._columns = Columns(Recorded(run.timeline), program, np.arange(first, end))

    def check(self, expression: Expression) -> None:
        """Raise ``ExpressionError`` for a name that does not exist in any iteration."""
        for name in expression.names:
            bare = name.rpartition("@")[0] if _is_shifted(name) else name
            if bare in (COUNTER, ITERATION):
                continue
            if self._place(bare) is None and not _is_address(bare):
                known = listed(list(self.program.layer_of_label), 6)
                raise ExpressionError(f"there is no {elided(bare)!r} in this loop; it has {known}")

    def value(self, iteration: int, name: str) -> Any:
        bare = name
        if _is_shifted(name):
            bare, _, shift = name.rpartition("@")
            iteration += int(shift)
        if bare in (COUNTER, ITERATION):
            return np.int64(iteration)
        if not 0 <= iteration < self.end - self.first:
            raise ExpressionError(
                "there is no iteration before the first"
                if iteration < 0
                else "there is no iteration after the last"
            )
        location = self._place(bare)
        if location is None and _is_address(bare):
            return self.run.value(full_address(self.run.model, bare))
        if location is None:
            raise ExpressionError(f"there is no {shorten(bare, 60)!r} here")
        program, row, slot = location
        return (
            self._in_body(slot, iteration, bare)
            if program is self.program
            else self._outside(program, row, slot, bare)
        )

    def _place(self, name: str) -> tuple[Program, int, Slot] | None:
        """Return program, row and slot of a name, found in the body or the enclosing graphs."""
        row = self.first
        for program in self.program.around():
            slot = slot_of(program, name)
            if slot is not None:
                return program, row, slot
            if program.parent is not None:
                row, _ = self.run.timeline.executions.parent_row(program, row)
        return None

    def _in_body(self, slot: Slot, iteration: int, name: str) -> Any:
        column = (
            self._columns.column(slot)
            if self.run.has_run(self.program, self.end - 1, slot)
            else None
        )
        if column is not None:
            return column.values[iteration] if column.varies else column.values
        return self._outside(self.program, self.first + iteration, slot, name)

    def _outside(self, program: Program, row: int, slot: Slot, name: str) -> Any:
        if not self.run.has_run(program, row, slot):
            raise ExpressionError(f"{shorten(name, 60)!r} has not run yet")
        return self.run.values.get(self.run.timeline, program, row, slot)


def _is_address(name: str) -> bool:
    return "/" in name or STEP in name


def _is_shifted(name: str) -> bool:
    """Return True if a name refers to another iteration, such as ``total@-1``."""
    bare, separator, shift = name.rpartition("@")
    return bool(bare and separator) and shift[:1] in "+-" and shift[1:].isdecimal()


def _number(value: Any) -> float | None:
    array = np.asarray(value) if value is not None and is_tensor(value) else np.zeros(0)
    if array.size != 1 or array.dtype.kind not in "biufV" or array.dtype.names:
        return None
    number = float(array.reshape(-1)[0])
    return number if np.isfinite(number) else None
