"""Values of many samples side by side: a value for each lane along the first axis, or one that
all lanes share.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loopscope.executor.plan.body_ports import LastValue
from loopscope.executor.plan.plan import Instruction, LoopRegion, Plan, Region, settle
from loopscope.timeline.vectorised import RowValues, is_of_each_element, lifted

MOST_ELEMENTS = 1 << 24
"""Of one value in all lanes."""


class NotInLanes(Exception):
    """These samples cannot run side by side."""


def may_run_in_lanes(plan: Plan) -> bool:
    """Whether all that may vary is elementwise, as far as the plan tells: what depends on
    constants alone does not vary.
    """
    return all(
        _may_be_a_region_of_lanes(instruction.region)
        if instruction.region is not None
        else not instruction.inputs or _may_be_elementwise(instruction)
        for program in plan.programs
        for instruction in program.instructions
    )


def _may_be_a_region_of_lanes(region: Region) -> bool:
    """Not a loop that joins the values of its iterations: lanes that run differently often would
    give different lengths.
    """
    return not isinstance(region, LoopRegion) or all(
        isinstance(output, LastValue) for output in region.outputs
    )


def _may_be_elementwise(instruction: Instruction) -> bool:
    """Whether it is for some types; without inputs at hand, floats stand for all."""
    return bool(instruction.float_symbol) or is_of_each_element(instruction, [np.float64(0)])


def computed(instruction: Instruction, operands: list[RowValues], lanes: int) -> RowValues:
    """What an operation gives in each lane; ``NotInLanes`` where it is not elementwise."""
    if not any(one.varies for one in operands):
        return _shared(instruction, operands)
    plain = not (
        instruction.several or instruction.state is not None or instruction.variable is not None
    )
    elementwise = instruction.float_symbol or is_of_each_element(
        instruction, [one.values for one in operands]
    )
    if not plain or not elementwise or instruction.kernel is None or len(instruction.outputs) != 1:
        raise NotInLanes(instruction.title)
    shapes = {np.shape(one.values)[one.varies :] for one in operands}
    shape = np.broadcast_shapes(*shapes) if len(shapes) > 1 else shapes.pop()
    if math.prod(shape) * lanes > MOST_ELEMENTS:
        raise NotInLanes(f"{instruction.title} is too large")
    made = instruction.kernel(*[lifted(one, len(shape)) for one in operands])
    if np.shape(made) != (lanes, *shape):
        raise NotInLanes(instruction.title)
    return RowValues(made, True)


def _shared(instruction: Instruction, operands: list[RowValues]) -> RowValues:
    if (
        instruction.several
        or instruction.state is not None
        or instruction.variable is not None
        or instruction.kernel is None
    ):
        raise NotInLanes(instruction.title)
    return RowValues(settle(instruction.kernel(*(one.values for one in operands))), False)


def condition_in_lanes(column: RowValues, lanes: int, *, first_decides: bool = False) -> np.ndarray:
    """A condition in each lane."""
    values = np.asarray(column.of(lanes))
    if first_decides and values.ndim == 2 and values.shape[1] > 1:
        values = values[:, 0]
    if values.size != lanes:
        raise NotInLanes("a condition of several elements")
    return values.reshape(lanes).astype(bool)


def are_finite(values: Any) -> np.ndarray | bool:
    """Whether an array holds no NaN and no infinity; whole numbers never do."""
    array = np.asarray(values)
    if array.dtype.kind in "biu" or array.dtype.names or array.dtype == object:
        return True
    finite: np.ndarray = np.isfinite(array if array.dtype.kind == "f" else array.astype(np.float32))
    return finite
