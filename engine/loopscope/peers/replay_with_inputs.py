"""Computes values of a run again from what another runtime gave: what the two would differ in if
their inputs were the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.machine import regions
from loopscope.executor.machine.execute import computing
from loopscope.executor.plan.body_ports import CarriedValue, Invariant, Sliced
from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.plan.plan import ABSENT, LoopRegion, Program, settle
from loopscope.peers.probes import Probe

_DEEPEST = 200
"""Operations on a way between two values that were asked for."""


class Unknown(Exception):
    """What the other runtime has for a value is not known, and cannot be computed from what is."""


class CrossReplay:
    """The values that another runtime gave, and those that follow from them by our kernels."""

    def __init__(self, run: Run, theirs: Mapping[Probe, np.ndarray]) -> None:
        self.run = run
        self._theirs = {(probe.program.index, probe.slot): rows for probe, rows in theirs.items()}
        self._computed: dict[tuple[ProgramIndex, int, Slot], Any] = {}

    def ours(self, program: Program, row: int, slot: Slot) -> Any:
        """What the run has."""
        return self.run.values.get(self.run.timeline, program, row, slot)

    def theirs(self, program: Program, row: int, slot: Slot, depth: int = 0) -> Any:
        """What the other runtime has, or would have where it was not asked. ``Unknown`` where
        that cannot be said.
        """
        rows = self._theirs.get((program.index, slot))
        if rows is not None:
            if row >= len(rows):
                raise Unknown
            return settle(rows[row])
        number = program.producer.get(slot)
        if number is None:
            return self._received(program, row, slot, depth)
        key = (program.index, row, slot)
        if key not in self._computed:
            for filled, value in zip(
                program.instructions[number].outputs,
                self.outputs(program, row, number, depth + 1),
                strict=True,
            ):
                self._computed[program.index, row, filled] = value
        return self._computed[key]

    def outputs(self, program: Program, row: int, number: int, depth: int = 0) -> tuple[Any, ...]:
        """What one instruction makes here of what the other runtime has for its inputs."""
        if depth > _DEEPEST:
            raise Unknown
        return self.computed(program, number, self.inputs(program, row, number, depth))

    def inputs(self, program: Program, row: int, number: int, depth: int = 0) -> list[Any]:
        """What the other runtime has for the inputs of an instruction."""
        return [
            None if slot == ABSENT else self.theirs(program, row, slot, depth)
            for slot in program.instructions[number].inputs
        ]

    def computed(self, program: Program, number: int, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """What one instruction makes of inputs. ``Unknown`` where chance or a variable decides
        as well, or it refuses them.
        """
        instruction = program.instructions[number]
        inside = instruction.region.programs if instruction.region else ()
        if (
            instruction.state is not None
            or instruction.variable is not None
            or any(one.hidden for one in inside)
        ):
            raise Unknown
        values = list(self.run.machine.values)
        for slot, value in zip(instruction.inputs, inputs, strict=True):
            values[slot] = value
        try:
            with computing():
                self.run.values.run_one(program, number, values)
        except (
            Exception
        ) as error:  # a kernel may be a user's; whatever it raises, nothing is known of the value
            raise Unknown from error
        return tuple(values[slot] for slot in instruction.outputs)

    def received(self, program: Program, row: int, parameter: Slot) -> Any:
        """What a Parameter of a body receives from what the other runtime has."""
        return self._received(program, row, parameter, 0)

    def _received(self, program: Program, row: int, slot: Slot, depth: int) -> Any:
        if program.parent is None or slot not in program.parameter_slots:
            return self.ours(program, row, slot)  # inputs of the model, and constants
        if depth > _DEEPEST:
            raise Unknown
        outer, iteration = self.run.timeline.executions.parent_row(program, row)
        if program.branch is not None:
            source = dict(program.branch.bindings).get(slot)
            return (
                self.ours(program, row, slot)
                if source is None
                else self.theirs(program.parent, outer, source, depth + 1)
            )
        assert isinstance(program.loop, LoopRegion)
        match program.loop.binding[slot]:
            case CarriedValue(result=result) if iteration:
                return self.theirs(program, row - 1, result, depth + 1)
            case CarriedValue(initial=source) if source is not None:
                value = self.theirs(program.parent, outer, source, depth + 1)
            case Invariant(source=source):
                value = self.theirs(program.parent, outer, source, depth + 1)
            case Sliced() as sliced:
                whole = self.theirs(program.parent, outer, sliced.source, depth + 1)
                return regions.part(program.loop, sliced, whole, iteration or 0)
            case _:
                return self.ours(program, row, slot)
        return regions.entering(program.loop, slot, value)
