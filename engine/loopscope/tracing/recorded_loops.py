"""The content of a trace: loops with their executions, values and decisions by row.

A row is one iteration of a loop, numbered over the whole trace. The outermost place has one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.recorded_rows import RecordedEnding
from loopscope.ir.shape import DYNAMIC, PartialShape

_PLAIN_DTYPES: dict[type, np.dtype] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
}


class LazyTensor(NamedTuple):
    """A tensor in a trace file."""

    element_type: ElementType
    shape: tuple[int, ...]
    data: memoryview | bytes

    def array(self) -> np.ndarray:
        array = np.frombuffer(self.data, self.element_type.dtype)
        if self.element_type is ElementType.BOOLEAN:
            array = np.frombuffer(self.data, np.uint8) != 0
        return array.reshape(self.shape)


@dataclass(slots=True, eq=False)
class RecordedColumn:
    """The values of one name in one place; a decision is a column of booleans."""

    label: str
    is_branch: bool = False
    rows: list[int] = field(default_factory=list[int])
    """Rows with a value, in ascending order."""
    values: list[Any] = field(default_factory=list[Any])
    """A ``bool``, ``int``, ``float`` or ``LazyTensor`` for each of ``rows``."""
    fingerprints: dict[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    """Facts about the values beyond the budget, by row."""

    @property
    def last_row(self) -> int:
        return self.rows[-1] if self.rows else -1

    def by_row(self, count: int) -> np.ndarray | list[np.ndarray | np.generic | None]:
        """Return a value for each of ``count`` rows: an array if all are scalars of one type."""
        kinds = {*map(type, self.values)}
        if kinds == {int, float}:
            kinds = {float}
        plain = _PLAIN_DTYPES.get(next(iter(kinds))) if len(kinds) == 1 else None
        if plain is not None:
            if plain.kind == "i" and not _fits_i64(self.values):
                plain = np.dtype(np.float64)
            array = np.array(self.values, plain)
            if len(array) == count:
                return array
            scalars: list[np.ndarray | np.generic | None] = [None] * count
            for row, scalar in zip(self.rows, array, strict=True):
                scalars[row] = scalar
            return scalars
        by_row: list[np.ndarray | np.generic | None] = [None] * count
        for row, value in zip(self.rows, self.values, strict=True):
            by_row[row] = value.array() if isinstance(value, LazyTensor) else _scalar(value)
        return by_row

    def type_and_shape(self) -> tuple[ElementType | None, PartialShape]:
        """Return the element type and shape that all values share, as far as they do."""
        types = {
            value.element_type if isinstance(value, LazyTensor) else type(value)
            for value in self.values
        }
        shapes = {value.shape if isinstance(value, LazyTensor) else () for value in self.values}
        if types == {int, float}:
            types = {float}
        element_type = next(iter(types)) if len(types) == 1 else None
        if isinstance(element_type, type):
            element_type = ElementType.of_dtype(_PLAIN_DTYPES[element_type])
        return element_type, PartialShape.of(next(iter(shapes))) if len(shapes) == 1 else DYNAMIC


@dataclass(slots=True, eq=False)
class Execution:
    """One execution of a loop."""

    outer_row: int
    first_row: int
    count: int = 0
    total: int | None = None
    exhausted: bool = False
    reason: str = ""
    complete: bool = False


@dataclass(slots=True, eq=False)
class RecordedLoop:
    """A loop of a trace, or the outermost place, which has no ``outer`` and one row."""

    label: str
    outer: RecordedLoop | None = None
    rows: int = 0
    """Number of iterations of all executions."""
    columns: dict[str, RecordedColumn] = field(default_factory=dict[str, RecordedColumn])
    loops: dict[str, RecordedLoop] = field(default_factory=dict[str, "RecordedLoop"])
    order: list[RecordedColumn | RecordedLoop] = field(
        default_factory=list["RecordedColumn | RecordedLoop"]
    )
    """Values, decisions and loops in the order in which they were first recorded."""
    executions: list[Execution] = field(default_factory=list[Execution])
    carried: dict[str, None] = field(default_factory=dict[str, None])
    """Names of the values that are carried to the next iteration."""

    @property
    def depth(self) -> int:
        """Number of loops around this place, including itself."""
        return 0 if self.outer is None else self.outer.depth + 1

    @property
    def last_outer_row(self) -> int:
        return self.executions[-1].outer_row if self.executions else -1

    def by_outer_row(self) -> list[Execution]:
        """Return an execution for each row of the place around it."""
        assert self.outer is not None
        executions = [Execution(row, 0) for row in range(self.outer.rows)]
        for execution in self.executions:
            executions[execution.outer_row] = execution
        return executions

    def endings(self) -> tuple[RecordedEnding, ...]:
        """Return the end of the execution in each row of the place around it."""
        executed = {execution.outer_row for execution in self.executions}
        return tuple(
            RecordedEnding(
                execution.total,
                execution.reason,
                execution.complete or execution.outer_row not in executed,
                execution.outer_row in executed,
            )
            for execution in self.by_outer_row()
        )

    def starts(self) -> tuple[np.ndarray, ...]:
        """Return ``ValuesByRow.starts`` of the values in this loop."""
        if self.outer is None or self.outer.outer is None:
            return ()
        first_rows = np.array([execution.first_row for execution in self.by_outer_row()], np.int64)
        return (*self.outer.starts(), first_rows)


def _fits_i64(values: list[int]) -> bool:
    return min(values, default=0) >= -(2**63) and max(values, default=0) < 2**63


def _scalar(value: Any) -> np.generic:
    scalar: np.generic = _PLAIN_DTYPES[type(value)].type(value)
    return scalar
