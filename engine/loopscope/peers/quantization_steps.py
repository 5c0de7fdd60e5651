"""Quantisation steps: numbers that another runtime rounded to the adjacent small integer, and the
differences that follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.slots import ProgramIndex, Slot
from loopscope.peers.comparing import close, first_apart
from loopscope.peers.probes import Probe
from loopscope.peers.replay_with_inputs import CrossReplay, UnknownValue, magnitude

_MAX_INTEGER_BYTES = 2
"""Maximum bytes of the integers that numbers are quantised to."""
_NARROW_FLOATS = {"float16": "f16", "bfloat16": "bf16"}
_STEP_TOLERANCE = 1.001
"""Factor allowed on a step, because floats made of integers are rounded themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantizationStep:
    """A value with elements that differ by one quantisation step."""

    probe: Probe | None
    """Probe of the value; None for an output of the model."""
    row: int
    own: np.ndarray
    peer: np.ndarray
    element_type: str
    """Type of the integer; an output may consist of floats made of it."""
    apart: np.ndarray
    """True for the elements that differ."""

    @property
    def place(self) -> tuple[int, ...]:
        """Index of the first differing element."""
        return tuple(int(number) for number in np.argwhere(self.apart)[0])


@dataclass(slots=True, eq=False)
class RoundingAnalysis:
    """Analysis of differing values: whether the operation differs, or only its inputs through
    rounding.
    """

    replay: CrossReplay
    tolerance: float
    steps: list[QuantizationStep] = field(default_factory=list[QuantizationStep])
    """Quantisation steps found, in the order of the run."""
    _touched: set[ProgramIndex] = field(default_factory=set[ProgramIndex])
    """Graphs with a value that differs because of a quantisation step."""

    def is_quantizing(self, probe: Probe) -> bool:
        """Return True if a value is a small integer that an instruction computes from floats."""
        return (
            is_small(probe.expected)
            and probe.position >= 0
            and reads_floats(self.replay, probe.program, 0, probe.position)
        )

    def explain_difference(self, probe: Probe, row: int) -> bool:
        """Return True if a difference is one quantisation step, or follows from inputs with such
        steps.
        """
        program = probe.program
        peer = np.asarray(self.replay.peer_value(probe.program, row, probe.slot))
        may_follow = bool(self.steps) or self.is_quantizing(probe)
        if not (
            may_follow and self._explains(probe, row, probe.expected[row], peer)
        ) and not self._follows_from_peer_integers(probe, row, peer):
            return False
        self._touched.update(graph.index for graph in program.around())
        return True

    def _explains(self, probe: Probe, row: int, own: np.ndarray, peer: np.ndarray) -> bool:
        program = probe.program
        try:
            if probe.position < 0:
                return self.agree(
                    program, row, probe.slot, self.replay.received(program, row, probe.slot), peer
                )
            replayed = np.asarray(self.replay.outputs(program, row, probe.position)[probe.output])
        except UnknownValue:
            return False
        agrees = self.agree(program, row, probe.slot, replayed, peer)
        if self.is_quantizing(probe) and is_one_step(replayed, peer):
            self._note(probe, row, own if is_one_step(own, peer) else replayed, peer)
            return True
        region = program.instructions[probe.position].region
        return agrees or (
            region is not None and any(inside.index in self._touched for inside in region.programs)
        )

    def _follows_from_peer_integers(self, probe: Probe, row: int, peer: np.ndarray) -> bool:
        """Return True if floats made of rounded integers are one step from the result for the
        runtime's integers.

        The runtime fuses operations differently when floats are requested than when integers are
        requested.
        """
        program = probe.program
        inputs = (
            program.instructions[probe.position].inputs
            if probe.position >= 0 and peer.dtype.kind == "f"
            else ()
        )
        if not any(is_small(self.replay.own_value(program, row, slot)) for slot in inputs if slot):
            return False
        try:
            replayed = np.asarray(self.replay.outputs(program, row, probe.position)[probe.output])
        except UnknownValue:
            return False
        kind = _scaled_integer_type(self.replay, program, row, probe.slot, replayed, peer)
        if kind:
            self.steps.append(
                QuantizationStep(
                    probe,
                    row,
                    replayed,
                    peer,
                    kind,
                    ~close(replayed[None], peer[None], self.tolerance)[0],
                )
            )
        return bool(kind)

    def reproduces(self, probe: Probe, row: int) -> bool:
        """Return True if recomputing the operation from the other runtime's inputs gives the other
        runtime's output.
        """
        program = probe.program
        try:
            peer = self.replay.peer_value(program, row, probe.slot)
            if probe.position < 0:
                return self.agree(
                    program, row, probe.slot, self.replay.received(program, row, probe.slot), peer
                )
            return self.agree(
                program,
                row,
                probe.slot,
                self.replay.outputs(program, row, probe.position)[probe.output],
                peer,
            )
        except UnknownValue:
            return False

    def removed_narrowing(self, probe: Probe, row: int) -> str:
        """Return the narrow type of a Cast from it to a wider type that the other runtime removed.

        Optimisers remove pairs of Casts. It is detected by values that the narrow type cannot
        represent. Return an empty text otherwise.
        """
        program = probe.program
        if probe.position < 0 or program.instructions[probe.position].node.type != "Cast":
            return ""
        narrow = np.asarray(
            self.replay.own_value(program, row, program.instructions[probe.position].inputs[0])
        ).dtype
        peer = np.asarray(self.replay.peer_value(program, row, probe.slot))
        if (
            peer.dtype.kind != "f"
            or narrow.name not in _NARROW_FLOATS
            or narrow.itemsize >= peer.dtype.itemsize
        ):
            return ""
        finite = peer[np.isfinite(peer)]
        return (
            _NARROW_FLOATS[narrow.name]
            if np.any(finite.astype(narrow).astype(peer.dtype) != finite)
            else ""
        )

    def _note(self, probe: Probe, row: int, own: np.ndarray, peer: np.ndarray) -> None:
        if np.any(own != peer):
            self.steps.append(QuantizationStep(probe, row, own, peer, str(own.dtype), own != peer))

    def agree(self, program: Program, row: int, slot: Slot, own: Any, peer: Any) -> bool:
        """Return True if two values of one slot are close."""
        own_array, peer_array = np.asarray(own), np.asarray(peer)
        if own_array.shape != peer_array.shape or own_array.dtype != peer_array.dtype:
            return False
        if first_apart(own_array[None], peer_array[None], self.tolerance) is None:
            return True
        scale = magnitude(self.replay, program, row, slot) if own_array.dtype.kind == "f" else 0.0
        return (
            scale > 0
            and first_apart(own_array[None], peer_array[None], self.tolerance, scale) is None
        )

    def explain_output(self, program: Program, slot: Slot, own: Any, peer: Any) -> bool:
        """Return True if a difference of a model output follows from quantisation steps.

        The runtime computed the output in a run without requested inner values.
        """
        try:
            expected = self.replay.peer_value(program, 0, slot)
        except UnknownValue:
            expected = own
        if self.steps and self.agree(program, 0, slot, expected, peer):
            return True
        expected_array, peer_array = np.asarray(expected), np.asarray(peer)
        if is_one_step(expected_array, peer_array) and is_rounded(self.replay, program, 0, slot):
            kind = str(expected_array.dtype)
        else:
            kind = _scaled_integer_type(self.replay, program, 0, slot, expected_array, peer_array)
        if kind:
            self.steps.append(
                QuantizationStep(
                    None,
                    0,
                    expected_array,
                    peer_array,
                    kind,
                    ~close(expected_array[None], peer_array[None], self.tolerance)[0],
                )
            )
        return bool(kind)


def is_small(value: Any) -> bool:
    """Return True for an integer tensor of at most 16 bits."""
    return (
        isinstance(value, (np.ndarray, np.generic))
        and value.dtype.kind in "iu"
        and value.dtype.itemsize <= _MAX_INTEGER_BYTES
    )


def is_one_step(own: Any, peer: Any) -> bool:
    """Return True if small integers differ by at most one."""
    if not (is_small(own) and is_small(peer)) or own.dtype != peer.dtype or own.shape != peer.shape:
        return False
    return bool(np.all(np.abs(np.asarray(own, np.int64) - np.asarray(peer, np.int64)) <= 1))


def reads_floats(replay: CrossReplay, program: Program, row: int, number: int) -> bool:
    """Return True if an instruction computes from floats: numbers to quantise, or their scales."""
    instruction = program.instructions[number]
    inputs = (replay.own_value(program, row, slot) for slot in instruction.inputs if slot)
    return instruction.region is None and any(
        isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f" for value in inputs
    )


def is_rounded(replay: CrossReplay, program: Program, row: int, slot: Slot) -> bool:
    """Return True if a small integer was computed from floats, or moved or chosen from such
    integers.
    """
    waiting, seen = [slot], set[Slot]()
    while waiting:
        number = program.producer.get(waiting.pop())
        if number is None or program.instructions[number].region is not None:
            continue
        if reads_floats(replay, program, row, number):
            return True
        inputs = (source for source in program.instructions[number].inputs if source)
        small = [
            source
            for source in inputs
            if source not in seen and is_small(replay.own_value(program, row, source))
        ]
        seen.update(small)
        waiting += small
    return False


def _scaled_integer_type(
    replay: CrossReplay, program: Program, row: int, slot: Slot, own: np.ndarray, peer: np.ndarray
) -> str:
    """Return the type of the rounded integers that floats are made of, one integer per float.

    Return an empty text unless the floats differ by at most one integer step.
    """
    number = program.producer.get(slot)
    if (
        number is None
        or program.instructions[number].region is not None
        or own.dtype.kind != "f"
        or own.shape != peer.shape
    ):
        return ""
    inputs = program.instructions[number].inputs
    sources = {
        index: replay.own_value(program, row, source)
        for index, source in enumerate(inputs)
        if source
    }
    rounded = [
        index
        for index, value in sources.items()
        if is_small(value) and is_rounded(replay, program, row, inputs[index])
    ]
    if len(rounded) != 1:
        return ""
    try:
        step = _output_steps(
            replay,
            program,
            row,
            number,
            rounded[0],
            program.instructions[number].outputs.index(slot),
        )
    except UnknownValue:
        return ""
    distance = np.abs(own.astype(np.float64) - peer.astype(np.float64))
    return (
        str(sources[rounded[0]].dtype)
        if step is not None and np.all(distance <= step * _STEP_TOLERANCE)
        else ""
    )


def _output_steps(
    replay: CrossReplay, program: Program, row: int, number: int, index: int, output: int
) -> np.ndarray | None:
    """Return the change of each output element for one step of the same element of an input.

    Return None if other elements change as well.
    """
    inputs = replay.inputs(program, row, number)
    before = np.asarray(replay.computed(program, number, inputs)[output], np.float64)
    integers = np.asarray(inputs[index])
    if integers.shape != before.shape:
        return None
    is_odd = (np.indices(integers.shape).sum(axis=0) % 2).astype(bool)
    step = np.zeros_like(before)
    for chosen in (is_odd, ~is_odd):
        stepped = np.where(
            chosen,
            np.where(integers < np.iinfo(integers.dtype).max, integers + 1, integers - 1),
            integers,
        )
        inputs[index] = stepped.astype(integers.dtype)
        after = np.abs(
            np.asarray(replay.computed(program, number, inputs)[output], np.float64) - before
        )
        if np.any(after[~chosen]):
            return None
        step[chosen] = after[chosen]
    return step
