"""Proves which slots of a nest of loops hold numpy numbers of one type in every row, so that
columns of them need no second look.

Every slot first gets the type that follows if carried values keep the type that they enter with;
what contradicts that, and all that depends on it, is taken back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from loopscope.executor.machine.execute import computing
from loopscope.executor.plan.body_ports import LastValue
from loopscope.executor.plan.expressions import expression
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Plan, Program
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Known


def scalar_types(plan: Plan, region: LoopRegion, values: list[Any]) -> dict[Slot, np.dtype]:
    """The types of the slots that hold numbers whatever the run; ``values`` are those that enter
    the body now.
    """
    proof = _Proof(plan, values)
    given = [one.parameter for one in region.invariants]
    given += [carried.parameter for carried in region.carried]
    given += [counter.parameter for counter in region.counters]
    for slot in given:
        if isinstance(values[slot], np.generic):
            proof.types[slot] = values[slot].dtype
    proof.body(region)
    return proof.certain()


class _Proof:
    def __init__(self, plan: Plan, values: list[Any]) -> None:
        self.values = values
        self.types: dict[Slot, np.dtype] = {
            slot: value.dtype for slot, value in plan.constants if isinstance(value, np.generic)
        }
        self.used: defaultdict[Slot, list[Slot]] = defaultdict(list)
        """For each slot, those whose type was concluded from its."""
        self.wrong: list[Slot] = []

    def certain(self) -> dict[Slot, np.dtype]:
        """The types that nothing contradicts."""
        while self.wrong:
            slot = self.wrong.pop()
            if self.types.pop(slot, None) is not None:
                self.wrong += self.used[slot]
        return self.types

    def body(self, region: LoopRegion) -> None:
        self._program(region.program)
        for one in region.carried:
            self._same(one.parameter, one.result)

    def _program(self, program: Program) -> None:
        for instruction in program.instructions:
            match instruction.region:
                case None:
                    self._compute(instruction)
                case LoopRegion() as region:
                    self._loop(region)
                case IfRegion() as region:
                    for branch in (region.then, region.otherwise):
                        for parameter, source in branch.bindings:
                            self._follow(parameter, source)
                        self._program(branch.program)
                    for slot, one, other in zip(
                        region.outputs, region.then.results, region.otherwise.results, strict=False
                    ):
                        self._follow(slot, one)
                        self._same(slot, other)
                case _:
                    pass

    def _loop(self, region: LoopRegion) -> None:
        if region.declared:
            return
        for invariant in region.invariants:
            self._follow(invariant.parameter, invariant.source)
        for one in region.carried:
            if one.initial is not None:
                self._follow(one.parameter, one.initial)
        for counter in region.counters:
            if not counter.shape:
                self.types[counter.parameter] = counter.element_type.dtype
        self.body(region)
        for output in region.outputs:
            # Without an iteration it is the initial value.
            if isinstance(output, LastValue) and output.initial is not None:
                self._follow(output.slot, output.result)
                self._same(output.slot, output.initial)

    def _compute(self, instruction: Instruction) -> None:
        types = [self.types.get(slot) for slot in instruction.inputs]
        if (
            instruction.kernel is None
            or None in types
            or not (expression(instruction, self.values) or _gives_a_number(instruction, types))
        ):
            return
        try:
            with computing():
                made = np.asarray(
                    instruction.kernel(*[dtype.type(1) for dtype in types if dtype is not None])
                )
        except (TypeError, ValueError, IndexError):
            return
        if made.ndim == 0:
            self.types[instruction.outputs[0]] = made.dtype
            for slot in instruction.inputs:
                self.used[slot].append(instruction.outputs[0])

    def _follow(self, slot: Slot, source: Slot) -> None:
        """The slot has the type of the other."""
        if source in self.types:
            self.types[slot] = self.types[source]
            self.used[source].append(slot)

    def _same(self, slot: Slot, source: Slot) -> None:
        """The slot sometimes is the other: the types must be equal."""
        self.used[source].append(slot)
        if self.types.get(slot) != self.types.get(source):
            self.wrong.append(slot)


def _gives_a_number(instruction: Instruction, types: Sequence[np.dtype | None]) -> bool:
    """Whether the shape function gives rank 0 for numbers of these types, and the kernel what it
    gives and nothing else.
    """
    if (
        instruction.infer is None
        or instruction.checked
        or instruction.several
        or instruction.state is not None
    ):
        return False
    try:
        (made,) = instruction.infer(
            [
                Known(ElementType.of_dtype(dtype), PartialShape.of(()))
                for dtype in types
                if dtype is not None
            ]
        )
    except (ValueError, KeyError):
        return False
    return made.shape.is_static and not made.shape.lengths
