"""Margins of loops: the distance between the floats whose comparison ended a loop, for one run or
many at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.executor.plan.plan import LoopRegion, Plan, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.deciding_values import Logic, logic
from loopscope.ir.element_type import REAL_FLOATS

_MAX_DEPTH = 16
Values = Callable[[Slot], np.ndarray]
"""Function from a slot to its numbers, one for each requested loop."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Structure of one boolean. A condition without parts is a comparison, or does not depend on
    floats.
    """

    slot: Slot
    kind: Literal["floats", "other"] | Logic
    parts: tuple[Condition, ...] = ()
    operands: tuple[Slot, ...] = ()
    """Operands of a comparison of floats."""

    @property
    def has_floats(self) -> bool:
        """True if a comparison of floats is part of the condition."""
        return self.kind == "floats" or any(part.has_floats for part in self.parts)


def condition_of(plan: Plan, region: LoopRegion) -> Condition | None:
    """Return the condition that a loop body computes; None unless it is a single boolean with a
    comparison of two floats.
    """
    if region.condition_result is None:
        return None
    condition = _ConditionReader(plan, region.program).condition(region.condition_result, 0)
    return condition if condition is not None and condition.has_floats else None


class _ConditionReader:
    def __init__(self, plan: Plan, program: Program) -> None:
        self.plan, self.program = plan, program
        self.places = {slot: place for place, slot in program.slots.items()}

    def condition(self, slot: Slot, depth: int) -> Condition | None:
        """Return the condition in a slot; None if it is not known to be one boolean, or nested too
        deeply.
        """
        if depth > _MAX_DEPTH or not self._is_single(slot):
            return None
        number = self.program.producer.get(slot)
        instruction = None if number is None else self.program.instructions[number]
        kind = "" if instruction is None or instruction.region is not None else logic(instruction)
        if instruction is None or not kind:
            return Condition(slot, "other")
        if kind == "comparison":
            return self._comparison(slot, instruction.inputs)
        inputs = instruction.inputs[:1] if kind in ("not", "passed") else instruction.inputs
        parts = [self.condition(operand, depth + 1) for operand in inputs]
        known = tuple(part for part in parts if part is not None)
        return Condition(slot, kind, known) if len(known) == len(parts) else None

    def _comparison(self, slot: Slot, operands: tuple[Slot, ...]) -> Condition:
        floats = all(self._is_single(operand) and self._is_float(operand) for operand in operands)
        return Condition(slot, "floats", (), operands) if floats else Condition(slot, "other")

    def _is_single(self, slot: Slot) -> bool:
        if (constant := self.plan.constant.get(slot)) is not None:
            return bool(np.size(constant) == 1)
        place = self.places.get(slot)
        if place is None:
            return False
        shape = self.plan.propagated.output(self.program.address, *place).shape
        return shape.is_static and all(length == 1 for length in shape.lengths)

    def _is_float(self, slot: Slot) -> bool:
        if (constant := self.plan.constant.get(slot)) is not None:
            return any(
                np.asarray(constant).dtype == element_type.dtype for element_type in REAL_FLOATS
            )
        place = self.places.get(slot)
        return (
            place is not None
            and self.plan.propagated.output(self.program.address, *place).element_type
            in REAL_FLOATS
        )


def distances(condition: Condition, values: Values) -> np.ndarray:
    """Return the distance of the deciding floats for each loop, the smallest if several decided;
    NaN if none are finite.
    """
    match condition.kind:
        case "floats":
            left, right = (values(slot).astype(np.float64) for slot in condition.operands)
            with np.errstate(invalid="ignore"):
                distance = np.abs(left - right)
            return np.where(np.isfinite(distance), distance, np.nan)
        case "passed" | "not":
            return distances(condition.parts[0], values)
        case "and" | "or":
            result = values(condition.slot).astype(bool)
            # The value that one part alone gives to the whole condition.
            decisive = condition.kind == "or"
            parts = [
                np.where(
                    (result != decisive) | (values(part.slot).astype(bool) == decisive),
                    distances(part, values),
                    np.nan,
                )
                for part in condition.parts
            ]
            return _minimum(parts)
        case "xor":
            return _minimum([distances(part, values) for part in condition.parts])
        case _:
            return np.full(len(values(condition.slot)), np.nan)


def _minimum(parts: list[np.ndarray]) -> np.ndarray:
    minimum = parts[0]
    for part in parts[1:]:
        minimum = np.fmin(minimum, part)
    return minimum
