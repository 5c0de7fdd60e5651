"""Proves which slots of a loop's body hold arrays of one element type and one shape in every iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.run.execute import computing
from engine.run.fixed import expression
from engine.run.plan import Instruction, LoopRegion, Plan

_MOST_INSTRUCTIONS = 2000
_MOST_PASSES = 4
"""Bodies in which more carried values than that change one after the other are not worth more looking."""


@dataclass(frozen=True, slots=True)
class Kind:
    """An element type and a shape."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def zeros(self) -> np.ndarray:
        return np.zeros(self.shape, self.dtype)


@dataclass(frozen=True, eq=False)
class Kinds:
    """Looks at a body without regions, variables and sequences, at the beginning of an iteration: ``values`` are those that enter it,
    and what the iterations before have computed."""

    plan: Plan
    region: LoopRegion
    values: list[Any]

    def proved(self) -> Mapping[int, Kind]:
        """The kinds of the slots that keep theirs, by induction: if what is carried enters an iteration so, it leaves it so. Empty for
        a body of another form."""
        program = self.region.program
        if len(program.instructions) > _MOST_INSTRUCTIONS or not all(map(self._is_plain, program.instructions)):
            return {}
        changing: set[int] = set()
        for _ in range(_MOST_PASSES):
            found = self._one_pass(changing)
            wrong = {one.parameter for one in self.region.carried if found.get(one.parameter) != found.get(one.result)} - changing
            if not wrong:
                return found
            changing |= wrong
        return {}

    def _is_plain(self, instruction: Instruction) -> bool:
        return (
            instruction.kernel is not None
            and len(instruction.outputs) > 0
            and instruction.state is None
            and instruction.variable is None
            and all(_is_numeric(self.values[slot]) for slot in instruction.outputs)
        )

    def _one_pass(self, changing: set[int]) -> dict[int, Kind]:
        """Kinds if those of the carried values that are not ``changing`` stay."""
        program = self.region.program
        found: dict[int, Kind] = {}
        for slot in program.parameters.values():
            if slot not in changing and _is_numeric(self.values[slot]):
                found[slot] = _kind(self.values[slot])
        for number in self.plan.constant_numbers - self.plan.changed:
            if _is_numeric(self.values[number]):
                found[number] = _kind(self.values[number])
        for instruction in program.instructions:
            kinds = zip(instruction.outputs, self._kinds(instruction, found), strict=False)
            # A second look at what was computed: a proof that differs from it is none.
            found.update((slot, kind) for slot, kind in kinds if kind == _kind(self.values[slot]))
        return found

    def _kinds(self, instruction: Instruction, found: Mapping[int, Kind]) -> Iterator[Kind]:
        inputs = [found.get(slot) for slot in instruction.inputs]
        known = [kind for kind in inputs if kind is not None]
        if len(known) == len(inputs) and expression(instruction, self.values):
            yield self._of_expression(instruction, known)
        elif len(known) == len(inputs) and instruction.moves and self.plan.constant_numbers.issuperset(instruction.inputs[1:]):
            yield from map(_kind, moved(instruction, known[0].zeros, self.values))
        elif len(known) == len(inputs) and into(instruction, known) is not None:
            assert instruction.kernel is not None
            yield _kind(instruction.kernel(*[kind.zeros for kind in known]))
        else:
            address, layer = self.region.program.address, instruction.node.id
            for output in range(len(instruction.outputs)):
                inferred = self.plan.propagated.output(address, layer, output)
                if inferred.element_type is None or not inferred.shape.is_static:
                    return
                yield Kind(inferred.element_type.dtype, inferred.shape.lengths)

    def _of_expression(self, instruction: Instruction, inputs: list[Kind]) -> Kind:
        assert instruction.kernel is not None
        with computing():
            number = np.asarray(instruction.kernel(*[kind.dtype.type(1) for kind in inputs]))
        return Kind(number.dtype, np.broadcast_shapes(*[kind.shape for kind in inputs]))


def into(instruction: Instruction, inputs: list[Kind]) -> Callable[..., Any] | None:
    """What writes the result of an operation on floats into an array; None where nothing does."""
    floats = {kind.dtype.char for kind in inputs} in ({"f"}, {"d"})
    return instruction.into(*[kind.shape for kind in inputs]) if floats and instruction.into is not None else None


def moved(instruction: Instruction, first: np.ndarray, values: list[Any]) -> tuple[np.ndarray, ...]:
    """What an operation that moves elements makes of an array."""
    assert instruction.kernel is not None
    made = instruction.kernel(first, *[values[slot] for slot in instruction.inputs[1:]])
    return tuple(np.asarray(one) for one in (made if instruction.several else (made,)))


def _kind(value: Any) -> Kind:
    return Kind(value.dtype, value.shape)


def _is_numeric(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.names is None and not value.dtype.hasobject
