"""Values that no kernel computes: overrides, which a user sets, and defaults of zeros.

An override applies in one iteration of each enclosing loop. A default has the inferred shape and
type, with length 0 for dynamic dimensions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from loopscope.executor.plan.body_ports import Invariant
from loopscope.executor.plan.plan import ABSENT, Plan, Program
from loopscope.executor.plan.slots import ProgramIndex, Slot, settle
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ir.shape import PartialShape
from loopscope.ops.kernel_checks import check_whole


@dataclass(frozen=True, slots=True, eq=False)
class Override:
    """Value of one slot in one row of a graph."""

    address: str
    program: Program
    slot: Slot
    loops: tuple[Program, ...]
    """Bodies of the enclosing loops, outermost first."""
    iterations: tuple[int, ...]
    """Iteration of each enclosing loop."""
    value: Any
    is_sure: bool = True
    """True if its element type was known before the run."""

    def is_within(self, iterations: tuple[int, ...]) -> bool:
        """Return True if the override lies in these iterations of the outermost loops."""
        return self.iterations[: len(iterations)] == iterations

    def put(self, values: list[Any]) -> None:
        """Set the value; ``ValueError`` if its element type differs from that of the computed
        value.
        """
        computed, replacement = (
            getattr(value, "dtype", None) for value in (values[self.slot], self.value)
        )
        if not self.is_sure and computed != replacement:
            raise ValueError(
                f"{self.address} was to be set to a value of type {replacement}, "
                f"and holds {computed or 'what is not a tensor'}"
            )
        values[self.slot] = self.value


@dataclass(frozen=True, eq=False)
class Overrides:
    """A plan with the overrides of one run."""

    plan: Plan
    items: tuple[Override, ...] = ()

    @cached_property
    def by_program(self) -> Mapping[ProgramIndex, tuple[Override, ...]]:
        """Overrides of each graph, by program number."""
        groups: defaultdict[ProgramIndex, list[Override]] = defaultdict(list)
        for override in self.items:
            groups[override.program.index].append(override)
        return {index: tuple(group) for index, group in groups.items()}

    @cached_property
    def slots(self) -> frozenset[Slot]:
        """Slots with an override. Their value is not the same in all rows, even if the model's
        value is.
        """
        return frozenset(override.slot for override in self.items)

    @cached_property
    def constants(self) -> tuple[tuple[Program, Slot], ...]:
        """Overridden slots of Consts in bodies, with their graphs."""
        bodies = (
            [program for program in self.plan.programs if program.parent is not None]
            if self.items
            else []
        )
        return tuple(
            (body, slot)
            for body in bodies
            for slot in sorted(self.slots & self.plan.constant_numbers & body.owned)
        )

    def constant_of(self, program: Program, slot: Slot) -> Any | None:
        """Return the value of a slot that equals a Const in the whole run; None for any other."""
        return constant_of(self.plan, program, slot, self.slots)

    def at(self, program: Program, iterations: tuple[int, ...], slot: Slot) -> Override | None:
        """Return the override of a slot in one row."""
        overrides = self.by_program.get(program.index, ())
        return next(
            (
                override
                for override in overrides
                if override.slot == slot and override.iterations == iterations
            ),
            None,
        )

    def next_in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> int | None:
        """Return the first iteration of the innermost of these loops, from the given one on, that
        has an override.
        """
        return min(
            (number for number in self._in(loops, iterations) if number >= iterations[-1]),
            default=None,
        )

    def last_in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> int:
        """Return the last iteration of the innermost of these loops that has an override; -1 for
        none.
        """
        return max(self._in(loops, iterations), default=-1)

    def _in(self, loops: Sequence[Program], iterations: tuple[int, ...]) -> Iterable[int]:
        depth = len(loops)
        for override in self.items:
            if override.loops[depth - 1 : depth] == (loops[-1],) and override.is_within(
                iterations[:-1]
            ):
                yield override.iterations[depth - 1]

    def inside(self, program: Program, iterations: tuple[int, ...]) -> Overrides:
        """Return the overrides in the inner graphs of a row, without its own, relative to that
        row.
        """
        depth = len(iterations)
        inner = [
            override
            for override in self.items
            if override.program is not program
            and override.is_within(iterations)
            and program in override.program.around()
        ]
        return Overrides(
            self.plan,
            tuple(
                replace(
                    override, loops=override.loops[depth:], iterations=override.iterations[depth:]
                )
                for override in inner
            ),
        )


def invariant_source(
    program: Program, slot: Slot, changed: frozenset[Slot] = frozenset()
) -> Slot | None:
    """Return the slot of the Const, model input or outermost operation that always supplies a
    slot's value.

    Return None if the value may differ from row to row, or passes through a ``changed`` slot.
    """
    while slot not in changed:
        if slot in program.producer:
            return slot if program.parent is None else None
        if program.parent is None or slot not in program.parameter_slots:
            return None if slot == ABSENT else slot
        outer = _outer(program, slot)
        if outer is None:
            return None
        program, slot = program.parent, outer
    return None


def constant_of(
    plan: Plan, program: Program, slot: Slot, changed: frozenset[Slot] = frozenset()
) -> Any | None:
    """Return the value of a slot that always equals a Const.

    Return None for any other slot, and if the value passes through a ``changed`` slot.
    """
    while (number := program.producer.get(slot)) is not None and program.instructions[
        number
    ].is_identity:
        if slot in changed:
            return None
        slot = program.instructions[number].inputs[0]
    source = invariant_source(program, slot, changed)
    return None if source is None else plan.constant.get(source)


def _outer(program: Program, parameter: Slot) -> Slot | None:
    """Return the slot of the enclosing graph that a Parameter always equals."""
    if program.branch is not None:
        return dict(program.branch.bindings).get(parameter)
    if program.loop is None or program.loop.declared:
        return None
    binding = program.loop.binding.get(parameter)
    return binding.source if isinstance(binding, Invariant) else None


@dataclass(frozen=True, eq=False)
class Defaults:
    """Default values of tensors that no operation computed, from shape inference."""

    plan: Plan

    def known_result(self, address: str, layer: LayerId) -> tuple[ElementType | None, PartialShape]:
        """Return the type and shape of a Result of the graph at a static address."""
        inferred = self.plan.propagated.output(address, layer)
        declared = self.plan.declared_results.get((address, layer))
        if declared is None:
            return inferred.element_type, inferred.shape
        if inferred.element_type is None:
            return declared.element_type, declared.shape
        return inferred.element_type, inferred.shape.intersect(declared.shape) or inferred.shape

    def is_small(self, address: str, layer: LayerId, limit: int) -> bool:
        """Return True if inference proves that an output of a node has at most ``limit``
        elements. Shapes of ONNX models do not prove it, because a file may declare wrong ones.
        """
        if self.plan.model.dialect == "onnx":
            return False
        shape = self.plan.propagated.output(address, layer).shape
        return shape.is_static and math.prod(shape.lengths) <= limit

    def parameter(self, address: str, layer: LayerId) -> Any:
        """Return the default value of a Parameter that nothing feeds."""
        return self.result(address, layer)

    def result(self, address: str, layer: LayerId) -> Any:
        """Return the default value of a Result or Parameter that was never computed."""
        element_type, shape = self.known_result(address, layer)
        lengths = shape.lengths_or_zeros()
        check_whole(int(np.prod(lengths, dtype=object)), "a value that was never computed")
        dtype = (element_type or ElementType.F32).dtype
        return settle(
            np.full(lengths, "", dtype)
            if element_type is ElementType.STRING
            else np.zeros(lengths, dtype)
        )
