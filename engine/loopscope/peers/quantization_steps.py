"""Where a number was rounded to a small integer the other way than in another runtime: one
quantum, and what follows from it alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.plan.plan import Program
from loopscope.peers.comparing import close, first_apart
from loopscope.peers.probes import Probe
from loopscope.peers.replay_with_inputs import CrossReplay, Unknown
from loopscope.peers.value_scale import magnitude

_WIDEST = 2
"""Bytes of the integers that numbers are quantized to."""
_NARROW = {"float16": "f16", "bfloat16": "bf16"}
_ROUNDED = 1.001
"""Of a step: floats that are made of integers are rounded themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class OneStep:
    """A value of which some elements differ by one step."""

    probe: Probe | None
    """None: an output of the model."""
    row: int
    here: np.ndarray
    there: np.ndarray
    element_type: str
    """Of the integer; an output may be floats that were made of it."""
    apart: np.ndarray
    """Which elements differ."""

    @property
    def place(self) -> tuple[int, ...]:
        """Index of the first such element."""
        return tuple(int(number) for number in np.argwhere(self.apart)[0])


@dataclass(slots=True, eq=False)
class Rounding:
    """Judges values that differ: whether the operation differs, or only its inputs did, by what
    rounding has made of them.
    """

    again: CrossReplay
    tolerance: float
    steps: list[OneStep] = field(default_factory=list[OneStep])
    """What was found of quanta, in the order of the run."""
    _touched: set[ProgramIndex] = field(default_factory=set[ProgramIndex])
    """The graphs in which a value differs for a quantum's sake."""

    def is_quantizing(self, probe: Probe) -> bool:
        """Whether a value is a small integer that an instruction makes of floats."""
        return (
            is_small(probe.expected)
            and probe.position >= 0
            and reads_floats(self.again, probe.program, 0, probe.position)
        )

    def explains(self, probe: Probe, row: int) -> bool:
        """Whether a value that differs is one quantum, or what the operation gives of inputs
        that differ by quanta.
        """
        program, there = (
            probe.program,
            np.asarray(self.again.theirs(probe.program, row, probe.slot)),
        )
        rounded = bool(self.steps) or self.is_quantizing(probe)
        if not (
            rounded and self._explains(probe, row, probe.expected[row], there)
        ) and not self._is_of_another_run(probe, row, there):
            return False
        self._touched.update(one.index for one in program.around())
        return True

    def _explains(self, probe: Probe, row: int, ours: np.ndarray, there: np.ndarray) -> bool:
        program = probe.program
        try:
            if probe.position < 0:
                return self.agree(
                    program, row, probe.slot, self.again.received(program, row, probe.slot), there
                )
            here = np.asarray(self.again.outputs(program, row, probe.position)[probe.output])
        except Unknown:
            return False
        same = self.agree(program, row, probe.slot, here, there)
        if self.is_quantizing(probe) and is_one_step(here, there):
            self._note(probe, row, ours if is_one_step(ours, there) else here, there)
            return True
        region = program.instructions[probe.position].region
        return same or (
            region is not None and any(inside.index in self._touched for inside in region.programs)
        )

    def _is_of_another_run(self, probe: Probe, row: int, there: np.ndarray) -> bool:
        """Whether floats that are made of rounded integers are one step from what the runtime's own
        integers give: asked for floats, it joins operations otherwise than in the run that is asked
        for the integers.
        """
        program = probe.program
        inputs = (
            program.instructions[probe.position].inputs
            if probe.position >= 0 and there.dtype.kind == "f"
            else ()
        )
        if not any(is_small(self.again.ours(program, row, one)) for one in inputs if one):
            return False
        try:
            here = np.asarray(self.again.outputs(program, row, probe.position)[probe.output])
        except Unknown:
            return False
        kind = _of_one_scale(self.again, program, row, probe.slot, here, there)
        if kind:
            self.steps.append(
                OneStep(
                    probe,
                    row,
                    here,
                    there,
                    kind,
                    ~close(here[None], there[None], self.tolerance)[0],
                )
            )
        return bool(kind)

    def turns(self, probe: Probe, row: int) -> bool:
        """Whether the operation gives here, of what the other runtime has for its inputs, what
        that has for its output.
        """
        program = probe.program
        try:
            there = self.again.theirs(program, row, probe.slot)
            if probe.position < 0:
                return self.agree(
                    program, row, probe.slot, self.again.received(program, row, probe.slot), there
                )
            return self.agree(
                program,
                row,
                probe.slot,
                self.again.outputs(program, row, probe.position)[probe.output],
                there,
            )
        except Unknown:
            return False

    def passed_over(self, probe: Probe, row: int) -> str:
        """The narrow type that a Cast to a wider one begins with, where what the other runtime has
        is no number of it: it casts to neither, as optimizers do with two casts in a row. Empty
        where that is not so.
        """
        program = probe.program
        if probe.position < 0 or program.instructions[probe.position].node.type != "Cast":
            return ""
        narrow = np.asarray(
            self.again.ours(program, row, program.instructions[probe.position].inputs[0])
        ).dtype
        there = np.asarray(self.again.theirs(program, row, probe.slot))
        if (
            there.dtype.kind != "f"
            or narrow.name not in _NARROW
            or narrow.itemsize >= there.dtype.itemsize
        ):
            return ""
        known = there[np.isfinite(there)]
        return (
            _NARROW[narrow.name]
            if np.any(known.astype(narrow).astype(there.dtype) != known)
            else ""
        )

    def _note(self, probe: Probe, row: int, here: np.ndarray, there: np.ndarray) -> None:
        if np.any(here != there):
            self.steps.append(OneStep(probe, row, here, there, str(here.dtype), here != there))

    def agree(self, program: Program, row: int, slot: Slot, here: Any, there: Any) -> bool:
        """Whether two values of one place are close to each other."""
        one, other = np.asarray(here), np.asarray(there)
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if first_apart(one[None], other[None], self.tolerance) is None:
            return True
        scale = magnitude(self.again, program, row, slot) if one.dtype.kind == "f" else 0.0
        return scale > 0 and first_apart(one[None], other[None], self.tolerance, scale) is None

    def explains_output(self, program: Program, slot: Slot, here: Any, there: Any) -> bool:
        """The same of an output of the model, which the runtime computed without being asked for
        what is inside.
        """
        try:
            expected = self.again.theirs(program, 0, slot)
        except Unknown:
            expected = here
        if self.steps and self.agree(program, 0, slot, expected, there):
            return True
        one, other = np.asarray(expected), np.asarray(there)
        if is_one_step(one, other) and is_rounded(self.again, program, 0, slot):
            kind = str(one.dtype)
        else:
            kind = _of_one_scale(self.again, program, 0, slot, one, other)
        if kind:
            self.steps.append(
                OneStep(
                    None, 0, one, other, kind, ~close(one[None], other[None], self.tolerance)[0]
                )
            )
        return bool(kind)


def is_small(value: Any) -> bool:
    """Whether it is an integer tensor of at most 16 bits."""
    return (
        isinstance(value, (np.ndarray, np.generic))
        and value.dtype.kind in "iu"
        and value.dtype.itemsize <= _WIDEST
    )


def is_one_step(here: Any, there: Any) -> bool:
    """Whether small integers differ by at most one."""
    if (
        not (is_small(here) and is_small(there))
        or here.dtype != there.dtype
        or here.shape != there.shape
    ):
        return False
    return bool(np.all(np.abs(np.asarray(here, np.int64) - np.asarray(there, np.int64)) <= 1))


def reads_floats(again: CrossReplay, program: Program, row: int, number: int) -> bool:
    """Whether an instruction computes, and has floats among its inputs: numbers to quantize, or
    their scales.
    """
    instruction = program.instructions[number]
    inputs = (again.ours(program, row, one) for one in instruction.inputs if one)
    return instruction.region is None and any(
        isinstance(one, (np.ndarray, np.generic)) and one.dtype.kind == "f" for one in inputs
    )


def is_rounded(again: CrossReplay, program: Program, row: int, slot: Slot) -> bool:
    """Whether a small integer was computed from floats, or moved, chosen and joined from those
    that were.
    """
    waiting, seen = [slot], set[Slot]()
    while waiting:
        number = program.producer.get(waiting.pop())
        if number is None or program.instructions[number].region is not None:
            continue
        if reads_floats(again, program, row, number):
            return True
        inputs = (one for one in program.instructions[number].inputs if one)
        wanted = [
            one for one in inputs if one not in seen and is_small(again.ours(program, row, one))
        ]
        seen.update(wanted)
        waiting += wanted
    return False


def _of_one_scale(
    again: CrossReplay, program: Program, row: int, slot: Slot, here: np.ndarray, there: np.ndarray
) -> str:
    """The type of the rounded integers that floats are made of, one each, where they differ by
    at most what one step makes; else empty.
    """
    number = program.producer.get(slot)
    if (
        number is None
        or program.instructions[number].region is not None
        or here.dtype.kind != "f"
        or here.shape != there.shape
    ):
        return ""
    inputs = program.instructions[number].inputs
    sources = {place: again.ours(program, row, one) for place, one in enumerate(inputs) if one}
    rounded = [
        place
        for place, one in sources.items()
        if is_small(one) and is_rounded(again, program, row, inputs[place])
    ]
    if len(rounded) != 1:
        return ""
    try:
        step = _step(
            again,
            program,
            row,
            number,
            rounded[0],
            program.instructions[number].outputs.index(slot),
        )
    except Unknown:
        return ""
    distance = np.abs(here.astype(np.float64) - there.astype(np.float64))
    return (
        str(sources[rounded[0]].dtype)
        if step is not None and np.all(distance <= step * _ROUNDED)
        else ""
    )


def _step(
    again: CrossReplay, program: Program, row: int, number: int, place: int, output: int
) -> np.ndarray | None:
    """What one step of each element of an input makes of the same element of the output; None
    where others change as well.
    """
    inputs = again.inputs(program, row, number)
    before = np.asarray(again.computed(program, number, inputs)[output], np.float64)
    integers = np.asarray(inputs[place])
    if integers.shape != before.shape:
        return None
    odd = (np.indices(integers.shape).sum(axis=0) % 2).astype(bool)
    step = np.zeros_like(before)
    for chosen in (odd, ~odd):
        moved = np.where(
            chosen,
            np.where(integers < np.iinfo(integers.dtype).max, integers + 1, integers - 1),
            integers,
        )
        inputs[place] = moved.astype(integers.dtype)
        after = np.abs(
            np.asarray(again.computed(program, number, inputs)[output], np.float64) - before
        )
        if np.any(after[~chosen]):
            return None
        step[chosen] = after[chosen]
    return step
