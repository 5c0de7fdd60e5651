"""Scale against which small results of an operation are compared.

A sigmoid near 0 has the rounding errors of a sum near 1, so its differences are relative to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Program
from loopscope.peers.replay_with_inputs import CrossReplay, UnknownValue

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
