"""Values and counters of many samples side by side.

A value is one per lane along the first axis, or one that all lanes share. Executions, iterations
and endings of loops and branches are counted in each lane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.executor.plan.body_ports import LastValue
from loopscope.executor.plan.plan import Instruction, LoopRegion, Plan, Region
from loopscope.executor.plan.slots import settle
from loopscope.timeline.vectorised import RowValues, is_of_each_element, lifted

MOST_ELEMENTS = 1 << 24
"""Maximum number of elements of one value over all lanes."""


class NotInLanes(Exception):
    """Signal that these samples cannot run side by side."""


def may_run_in_lanes(plan: Plan) -> bool:
    """Return True if everything that may vary is elementwise, as far as the plan shows.

    Operations on constants do not vary.
    """
    return all(
        _may_be_a_region_of_lanes(instruction.region)
        if instruction.region is not None
        else not instruction.inputs or _may_be_elementwise(instruction)
        for program in plan.programs
        for instruction in program.instructions
    )


def _may_be_a_region_of_lanes(region: Region) -> bool:
    """Return False for a loop that joins the values of its iterations, because lanes would have
    different lengths.
    """
    return not isinstance(region, LoopRegion) or all(
        isinstance(output, LastValue) for output in region.outputs
    )


def _may_be_elementwise(instruction: Instruction) -> bool:
    """Return True if the operation is elementwise for some types. Floats stand for all types,
    because inputs are not known.
    """
    return bool(instruction.float_symbol) or is_of_each_element(instruction, [np.float64(0)])


def computed(instruction: Instruction, operands: list[RowValues], lanes: int) -> RowValues:
    """Return the result of an operation in each lane; ``NotInLanes`` if it is not elementwise."""
    if not any(operand.varies for operand in operands):
        return _shared(instruction, operands)
    is_plain = not (
        instruction.several or instruction.state is not None or instruction.variable is not None
    )
    elementwise = instruction.float_symbol or is_of_each_element(
        instruction, [operand.values for operand in operands]
    )
    if (
        not is_plain
        or not elementwise
        or instruction.kernel is None
        or len(instruction.outputs) != 1
    ):
        raise NotInLanes(instruction.title)
    shapes = {np.shape(operand.values)[operand.varies :] for operand in operands}
    shape = np.broadcast_shapes(*shapes) if len(shapes) > 1 else shapes.pop()
    if math.prod(shape) * lanes > MOST_ELEMENTS:
        raise NotInLanes(f"{instruction.title} is too large")
    result = instruction.kernel(*[lifted(operand, len(shape)) for operand in operands])
    if np.shape(result) != (lanes, *shape):
        raise NotInLanes(instruction.title)
    return RowValues(result, True)


def _shared(instruction: Instruction, operands: list[RowValues]) -> RowValues:
    if (
        instruction.several
        or instruction.state is not None
        or instruction.variable is not None
        or instruction.kernel is None
    ):
        raise NotInLanes(instruction.title)
    return RowValues(settle(instruction.kernel(*(operand.values for operand in operands))), False)


def condition_in_lanes(column: RowValues, lanes: int, *, first_decides: bool = False) -> np.ndarray:
    """Return the value of a condition in each lane."""
    values = np.asarray(column.of(lanes))
    if first_decides and values.ndim == 2 and values.shape[1] > 1:
        values = values[:, 0]
    if values.size != lanes:
        raise NotInLanes("a condition of several elements")
    return values.reshape(lanes).astype(bool)


def are_finite(values: Any) -> np.ndarray | bool:
    """Return True if an array has no NaN and no infinity, or an array of this; integers are always
    finite.
    """
    array = np.asarray(values)
    if array.dtype.kind in "biu" or array.dtype.names or array.dtype == object:
        return True
    finite: np.ndarray = np.isfinite(array if array.dtype.kind == "f" else array.astype(np.float32))
    return finite


_MAX_COUNT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class LoopTally:
    """Counters of one loop, by lane."""

    executions: np.ndarray
    total: np.ndarray
    """Number of iterations of all executions."""
    minimum: np.ndarray
    maximum: np.ndarray
    endings: np.ndarray
    """A bit for each ending that occurred, by its number in ``ENDINGS``."""
    margins: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Sum, minimum and maximum of the margins of executions that a condition ended; NaN without
    one.
    """

    @staticmethod
    def of(lanes: int) -> LoopTally:
        """Return the counters before anything has run."""
        executions, total, maximum, endings = (np.zeros(lanes, np.int64) for _ in range(4))
        return LoopTally(
            executions,
            total,
            np.full(lanes, _MAX_COUNT),
            maximum,
            endings,
            (np.full(lanes, np.nan), np.full(lanes, np.nan), np.full(lanes, np.nan)),
        )

    def add(self, lanes: np.ndarray, counts: np.ndarray, endings: np.ndarray) -> None:
        """Count an execution in each of some lanes."""
        self.executions[lanes] += 1
        self.total[lanes] += counts
        self.minimum[lanes] = np.minimum(self.minimum[lanes], counts)
        self.maximum[lanes] = np.maximum(self.maximum[lanes], counts)
        self.endings[lanes] |= 1 << endings

    def narrow(self, lanes: np.ndarray, distances: np.ndarray) -> None:
        """Record the margin by which a condition ended an execution in each of some lanes; NaN if
        none did.
        """
        total, minimum, maximum = self.margins
        total[lanes] = np.where(
            np.isnan(distances), total[lanes], np.nan_to_num(total[lanes]) + distances
        )
        minimum[lanes] = np.fmin(minimum[lanes], distances)
        maximum[lanes] = np.fmax(maximum[lanes], distances)


@dataclass(frozen=True, slots=True, eq=False)
class BranchTally:
    """Counters of one If, by lane: executions of each branch."""

    then: np.ndarray
    otherwise: np.ndarray

    @staticmethod
    def of(lanes: int) -> BranchTally:
        """Return the counters before anything has run."""
        return BranchTally(np.zeros(lanes, np.int64), np.zeros(lanes, np.int64))
