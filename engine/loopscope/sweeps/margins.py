"""How narrowly loops ended: the distance of the floats whose comparison turned a loop's
condition, for one run or many at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import LoopRegion, Plan, Program
from loopscope.explain.deciding_values import Logic, logic
from loopscope.ir.element_type import REAL_FLOATS

_DEEPEST = 16
Values = Callable[[Slot], np.ndarray]
"""The numbers of a slot, one for each loop that is asked about."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What one boolean is made of; what has no parts was compared, or is of no floats."""

    slot: Slot
    kind: Literal["floats", "other"] | Logic
    parts: tuple[Condition, ...] = ()
    operands: tuple[Slot, ...] = ()
    """Of a comparison of floats."""

    @property
    def has_floats(self) -> bool:
        """Whether a comparison of floats is part of it."""
        return self.kind == "floats" or any(part.has_floats for part in self.parts)


def condition_of(plan: Plan, region: LoopRegion) -> Condition | None:
    """The condition that a loop's body computes; None where no comparison of two floats is part
    of it, or it is no single boolean.
    """
    if region.condition_result is None:
        return None
    found = _Reading(plan, region.program).condition(region.condition_result, 0)
    return found if found is not None and found.has_floats else None


class _Reading:
    def __init__(self, plan: Plan, program: Program) -> None:
        self.plan, self.program = plan, program
        self.places = {slot: place for place, slot in program.slots.items()}

    def condition(self, slot: Slot, depth: int) -> Condition | None:
        """None where it is not known to be one boolean, or nested too deeply."""
        if depth > _DEEPEST or not self._is_single(slot):
            return None
        number = self.program.producer.get(slot)
        instruction = None if number is None else self.program.instructions[number]
        kind = "" if instruction is None or instruction.region is not None else logic(instruction)
        if instruction is None or not kind:
            return Condition(slot, "other")
        if kind == "comparison":
            return self._comparison(slot, instruction.inputs)
        inputs = instruction.inputs[:1] if kind in ("not", "passed") else instruction.inputs
        parts = [self.condition(one, depth + 1) for one in inputs]
        known = tuple(part for part in parts if part is not None)
        return Condition(slot, kind, known) if len(known) == len(parts) else None

    def _comparison(self, slot: Slot, operands: tuple[Slot, ...]) -> Condition:
        floats = all(self._is_single(one) and self._is_float(one) for one in operands)
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
            return any(np.asarray(constant).dtype == one.dtype for one in REAL_FLOATS)
        place = self.places.get(slot)
        return (
            place is not None
            and self.plan.propagated.output(self.program.address, *place).element_type
            in REAL_FLOATS
        )


def distances(condition: Condition, values: Values) -> np.ndarray:
    """For each loop the distance of the floats that decided; of several that did, the least. NaN
    where none are finite floats.
    """
    match condition.kind:
        case "floats":
            one, other = (values(slot).astype(np.float64) for slot in condition.operands)
            with np.errstate(invalid="ignore"):
                distance = np.abs(one - other)
            return np.where(np.isfinite(distance), distance, np.nan)
        case "passed" | "not":
            return distances(condition.parts[0], values)
        case "and" | "or":
            made = values(condition.slot).astype(bool)
            decisive = condition.kind == "or"  # the value that one part alone gives to the whole
            parts = [
                np.where(
                    (made != decisive) | (values(part.slot).astype(bool) == decisive),
                    distances(part, values),
                    np.nan,
                )
                for part in condition.parts
            ]
            return _least(parts)
        case "xor":
            return _least([distances(part, values) for part in condition.parts])
        case _:
            return np.full(len(values(condition.slot)), np.nan)


def _least(parts: list[np.ndarray]) -> np.ndarray:
    least = parts[0]
    for part in parts[1:]:
        least = np.fmin(least, part)
    return least
