"""Replay of a run's operations from another runtime's inputs, and the scale of small results.

The replay finds where the operation itself differs. A sigmoid near 0 has the rounding errors of a
sum near 1, so its differences are relative to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.machine import regions
from loopscope.executor.machine.execute import computing
from loopscope.executor.plan.body_ports import CarriedValue, Invariant, Sliced
from loopscope.executor.plan.plan import ABSENT, LoopRegion, Program
from loopscope.executor.plan.slots import ProgramIndex, Slot, settle
from loopscope.peers.probes import Probe

_MAX_DEPTH = 200
"""Maximum number of operations between two requested values."""


class UnknownValue(Exception):
    """The other runtime's value is unknown, and cannot be computed from known values."""


class CrossReplay:
    """Values of another runtime, and the values that follow from them by our kernels."""

    def __init__(self, run: Run, peer_rows: Mapping[Probe, np.ndarray]) -> None:
        self.run = run
        self._peer_rows = {
            (probe.program.index, probe.slot): rows for probe, rows in peer_rows.items()
        }
        self._computed: dict[tuple[ProgramIndex, int, Slot], Any] = {}

    def own_value(self, program: Program, row: int, slot: Slot) -> Any:
        """Return the value in our run."""
        return self.run.values.get(self.run.timeline, program, row, slot)

    def peer_value(self, program: Program, row: int, slot: Slot, depth: int = 0) -> Any:
        """Return the other runtime's value, computed from its other values if it was not requested.

        Raise ``UnknownValue`` if it cannot be determined.
        """
        rows = self._peer_rows.get((program.index, slot))
        if rows is not None:
            if row >= len(rows):
                raise UnknownValue
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
        """Return the outputs of an instruction, computed here from the other runtime's inputs."""
        if depth > _MAX_DEPTH:
            raise UnknownValue
        return self.computed(program, number, self.inputs(program, row, number, depth))

    def inputs(self, program: Program, row: int, number: int, depth: int = 0) -> list[Any]:
        """Return the other runtime's inputs of an instruction."""
        return [
            None if slot == ABSENT else self.peer_value(program, row, slot, depth)
            for slot in program.instructions[number].inputs
        ]

    def computed(self, program: Program, number: int, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs of an instruction for the given inputs.

        Raise ``UnknownValue`` if randomness or a variable is involved, or if the kernel fails.
        """
        instruction = program.instructions[number]
        inside = instruction.region.programs if instruction.region else ()
        if (
            instruction.state is not None
            or instruction.variable is not None
            or any(body.hidden for body in inside)
        ):
            raise UnknownValue
        values = list(self.run.machine.values)
        for slot, value in zip(instruction.inputs, inputs, strict=True):
            values[slot] = value
        try:
            with computing():
                self.run.values.run_one(program, number, values)
        except Exception as error:
            # The kernel may be a user's and raise anything; the value is unknown then.
            raise UnknownValue from error
        return tuple(values[slot] for slot in instruction.outputs)

    def received(self, program: Program, row: int, parameter: Slot) -> Any:
        """Return the value that a Parameter of a body receives from the other runtime's values."""
        return self._received(program, row, parameter, 0)

    def _received(self, program: Program, row: int, slot: Slot, depth: int) -> Any:
        if program.parent is None or slot not in program.parameter_slots:
            return self.own_value(program, row, slot)  # inputs of the model, and constants
        if depth > _MAX_DEPTH:
            raise UnknownValue
        outer, iteration = self.run.timeline.executions.parent_row(program, row)
        if program.branch is not None:
            source = dict(program.branch.bindings).get(slot)
            return (
                self.own_value(program, row, slot)
                if source is None
                else self.peer_value(program.parent, outer, source, depth + 1)
            )
        assert isinstance(program.loop, LoopRegion)
        match program.loop.binding[slot]:
            case CarriedValue(result=result) if iteration:
                return self.peer_value(program, row - 1, result, depth + 1)
            case CarriedValue(initial=source) if source is not None:
                value = self.peer_value(program.parent, outer, source, depth + 1)
            case Invariant(source=source):
                value = self.peer_value(program.parent, outer, source, depth + 1)
            case Sliced() as sliced:
                whole = self.peer_value(program.parent, outer, sliced.source, depth + 1)
                return regions.part(program.loop, sliced, whole, iteration or 0)
            case _:
                return self.own_value(program, row, slot)
        return regions.entering(program.loop, slot, value)


_SATURATING, _FULLY_SATURATING = 1e3, 2e4
"""Inputs at which a bounded operation has reached its bounds; 16-bit floats can represent them."""
_MAX_PASSING_OPERATIONS = 16
"""Maximum number of operations that only pass the value on."""


def magnitude(replay: CrossReplay, program: Program, row: int, slot: Slot) -> float:
    """Return the largest possible result of the operation that computed a value; 0 if it is
    unbounded.

    For an operation that only moves elements, such as Reshape and Concat, the operation before it
    counts.
    """
    waiting = [slot]
    for _ in range(_MAX_PASSING_OPERATIONS):
        number = program.producer.get(waiting[-1])
        if number is None or program.instructions[number].region is not None:
            return 0.0
        instruction = program.instructions[number]
        inputs = [
            replay.own_value(program, row, source) if source else None
            for source in instruction.inputs
        ]
        output = instruction.outputs.index(waiting[-1])
        bound = _saturation_bound(replay, program, number, inputs, output)
        if bound > 0:
            return bound
        value = np.asarray(replay.own_value(program, row, waiting[-1]))
        sources = [
            source
            for source, input_value in zip(instruction.inputs, inputs, strict=True)
            if _contains_all(input_value, value)
        ]
        if not sources:
            return 0.0
        waiting.append(sources[0])
    return 0.0


def _saturation_bound(
    replay: CrossReplay, program: Program, number: int, inputs: list[Any], output: int
) -> float:
    """Return the magnitude of an operation's results for large inputs of both signs.

    Return 0 if still larger inputs increase it.
    """
    constants = replay.run.plan.constant_numbers
    slots = program.instructions[number].inputs
    is_free = [
        slot not in constants and np.asarray(value).dtype.kind == "f"
        for slot, value in zip(slots, inputs, strict=True)
    ]
    if not any(is_free):
        return 0.0
    reached = []
    for size in (_SATURATING, _FULLY_SATURATING):
        try:
            large = [
                _large_inputs(value, size) if stretch else value
                for value, stretch in zip(inputs, is_free, strict=True)
            ]
            results = np.abs(
                np.asarray(replay.computed(program, number, large)[output], dtype=np.float64)
            )
        except (UnknownValue, ValueError, TypeError):
            return 0.0
        reached.append(float(results.max(initial=0)))
    return reached[1] if np.isfinite(reached).all() and reached[1] <= reached[0] * 1.001 else 0.0


def _large_inputs(value: Any, size: float) -> Any:
    """Return an array of the same shape with alternating large positive and negative numbers."""
    array = np.asarray(value)
    signs = np.where(np.arange(array.size) % 2, -size, size).astype(array.dtype)
    return signs.reshape(array.shape) if array.ndim else array.dtype.type(size)


def _contains_all(container: Any, value: np.ndarray) -> bool:
    """Return True if every element of ``value`` occurs in ``container``."""
    return (
        isinstance(container, (np.ndarray, np.generic))
        and container.dtype == value.dtype
        and bool(np.isin(value, container).all())
    )
