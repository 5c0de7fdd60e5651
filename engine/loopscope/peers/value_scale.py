"""What the results of an operation are measured against where they are all small: a sigmoid's
near 0 are the rest of a sum near 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Program
from loopscope.peers.replay_with_inputs import CrossReplay, Unknown

_LARGE, _LARGER = 1e3, 2e4
"""Inputs at which a bounded operation is at its bounds; 16 bits hold them."""
_LONGEST_WAY = 16
"""Operations that hand a value on."""


def magnitude(again: CrossReplay, program: Program, row: int, slot: Slot) -> float:
    """The largest result of the operation that computed a value, whatever its inputs; 0 where that
    has no bound.

    A value that an operation only hands on, such as Reshape and Concat, is measured as the
    operation's before it.
    """
    waiting = [slot]
    for _ in range(_LONGEST_WAY):
        number = program.producer.get(waiting[-1])
        if number is None or program.instructions[number].region is not None:
            return 0.0
        instruction = program.instructions[number]
        inputs = [again.ours(program, row, one) if one else None for one in instruction.inputs]
        output = instruction.outputs.index(waiting[-1])
        bound = _bound(again, program, number, inputs, output)
        if bound > 0:
            return bound
        value = np.asarray(again.ours(program, row, waiting[-1]))
        moved = [
            one
            for one, given in zip(instruction.inputs, inputs, strict=True)
            if _holds(given, value)
        ]
        if not moved:
            return 0.0
        waiting.append(moved[0])
    return 0.0


def _bound(
    again: CrossReplay, program: Program, number: int, inputs: list[Any], output: int
) -> float:
    """What an operation reaches for large inputs of both signs, where larger ones change
    nothing.
    """
    constants = again.run.plan.constant_numbers
    slots = program.instructions[number].inputs
    given = [
        slot not in constants and np.asarray(value).dtype.kind == "f"
        for slot, value in zip(slots, inputs, strict=True)
    ]
    if not any(given):
        return 0.0
    reached = []
    for size in (_LARGE, _LARGER):
        try:
            large = [
                _stretched(value, size) if free else value
                for value, free in zip(inputs, given, strict=True)
            ]
            made = np.abs(
                np.asarray(again.computed(program, number, large)[output], dtype=np.float64)
            )
        except (Unknown, ValueError, TypeError):
            return 0.0
        reached.append(float(made.max(initial=0)))
    return reached[1] if np.isfinite(reached).all() and reached[1] <= reached[0] * 1.001 else 0.0


def _stretched(value: Any, size: float) -> Any:
    """Numbers of both signs, as many as there are."""
    array = np.asarray(value)
    signs = np.where(np.arange(array.size) % 2, -size, size).astype(array.dtype)
    return signs.reshape(array.shape) if array.ndim else array.dtype.type(size)


def _holds(given: Any, value: np.ndarray) -> bool:
    """Whether every element of a value is one of another's."""
    return (
        isinstance(given, (np.ndarray, np.generic))
        and given.dtype == value.dtype
        and bool(np.isin(value, given).all())
    )
