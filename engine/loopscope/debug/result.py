"""Result of a run: outputs, every named tensor, the control flow, and printed lines; and its values
as numpy arrays of types that users can compute with.

The lines of Print operations are reconstructed from the recording.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from loopscope.errors import AddressError, EngineError, ValueUnavailable, listed, shorten
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.analyses import LeftOut, left_out
from loopscope.executor.plan.plan import Plan, Program
from loopscope.executor.record.recording import StopCause
from loopscope.ir.model import LayerId, Model, Signature
from loopscope.ir.shape import DYNAMIC
from loopscope.ops.casting import NF4_VALUES
from loopscope.ops.values import NO_VALUE, is_tensor
from loopscope.timeline.run_values import RunValues
from loopscope.timeline.timeline import ControlFlow, Timeline


class Result:
    """Result of one run of a model, finished or not. Access to a value that was not computed raises
    an error.
    """

    def __init__(self, machine: Machine, cause: StopCause | None = None) -> None:
        self._machine = machine
        self._cause = cause

    def __repr__(self) -> str:
        outputs = len(self.model.outputs)
        name = shorten(self.model.name)
        text = f"{outputs} output{'s' * (outputs != 1)}"
        return f"<Result of {name!r}, {self._machine.state}: {text}>"

    @property
    def model(self) -> Model:
        """The model that ran; for a run with fetches, the part that they need."""
        return self._machine.plan.model

    @property
    def machine(self) -> Machine:
        """The machine at the end of the run."""
        return self._machine

    @property
    def finished(self) -> bool:
        """True if the run reached its end, so that outputs exist."""
        return self._machine.state == "finished"

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """Names, types and shapes of the outputs."""
        return self.model.outputs

    @cached_property
    def left_out(self) -> LeftOut:
        """Report of operations that did not run, or ran only once, because the outputs are the
        same.
        """
        return left_out(self._machine.plan)

    @cached_property
    def outputs(self) -> tuple[np.ndarray, ...]:
        """Outputs in document order of the Result layers; ``ValueUnavailable`` if the run did not
        finish.
        """
        return tuple(self._value(signature) for signature in self.model.outputs)

    @cached_property
    def named(self) -> Mapping[str, np.ndarray]:
        """Values by tensor name and Result name; ``AddressError`` for a name of two different
        outputs.
        """
        return _Named(self)

    @cached_property
    def control_flow(self) -> ControlFlow:
        """Records of every Loop, TensorIterator and If that ran, in pre-order."""
        return ControlFlow(Timeline(self._machine), self._cause)

    @cached_property
    def printed(self) -> tuple[PrintedLine, ...]:
        """Printed lines of the run, in order; empty for a model without Prints."""
        if not self._machine.plan.prints:
            return ()
        timeline = Timeline(self._machine)
        return lines(timeline, RunValues(self._machine), timeline.length)

    def _value(self, signature: Signature) -> np.ndarray:
        value = self._machine.values[self.slot(signature)]
        if not self.finished or value is None:
            raise ValueUnavailable(
                f"output {signature.name!r} has no value: the run did not finish"
            )
        return copy_public(value)

    def slot(self, signature: Signature) -> int:
        """Return the machine's slot of an output."""
        return self._machine.plan.main.results[signature.layer]


class Fetched(Result):
    """Result of a run with fetches: ``outputs`` are the fetched values in the requested order,
    ``named`` has them by name.
    """

    def __init__(
        self, machine: Machine, arrays: Mapping[str, np.ndarray], order: Sequence[str]
    ) -> None:
        super().__init__(machine)
        self._arrays = arrays
        self._order = order

    @property
    def finished(self) -> bool:
        """Always True: a run with fetches ends when they are computed."""
        return True

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The requested names."""
        return tuple(Signature(name, (), None, DYNAMIC, LayerId(-1)) for name in self._order)

    @cached_property
    def outputs(self) -> tuple[np.ndarray, ...]:
        return tuple(self._arrays[name] for name in self._order)

    @cached_property
    def named(self) -> Mapping[str, np.ndarray]:
        return self._arrays


class _Named(Mapping[str, np.ndarray]):
    def __init__(self, result: Result) -> None:
        self._result = result
        self._found: dict[str, list[int]] = {}
        for number, signature in enumerate(result.model.outputs):
            for name in dict.fromkeys((signature.name, *signature.names)):
                self._found.setdefault(name, []).append(number)

    def __getitem__(self, name: str) -> np.ndarray:
        numbers = self._found.get(name)
        if numbers is None:
            known_names = listed(list(self._found))
            raise KeyError(
                f"there is no output {shorten(repr(name))}: there are {known_names}; "
                "loopscope.run(..., fetches=[...]) gives other tensors"
            )
        slots = {self._result.slot(self._result.model.outputs[number]) for number in numbers}
        if len(slots) > 1:
            outputs = listed([self._result.model.outputs[number].name for number in numbers])
            raise AddressError(
                f"the name {shorten(name)!r} means {len(slots)} different outputs: {outputs}; "
                "take them by position"
            )
        return self._result.outputs[numbers[0]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<values by name: {listed(list(self._found)) or 'none'}>"


class RunStopped(EngineError):
    """Error for a run that did not finish: an operation failed, a limit was reached, or the run was
    stopped.

    ``result`` has everything computed before that, ``address`` names the operation, and ``cause``
    is one of ``"error"``, ``"limit"``, ``"stopped"``.
    """

    def __init__(self, message: str, *, result: Result, address: str, cause: StopCause) -> None:
        self.result = result
        self.address = address
        self.cause = cause
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """One line, and the execution that printed it."""

    step: int
    address: str
    text: str


def lines(
    timeline: Timeline, values: RunValues, before: int, limit: int | None = None
) -> tuple[PrintedLine, ...]:
    """Return the lines before a step, in the order in which they were printed; at most the last
    ``limit``.
    """
    executions: list[tuple[int, Program, int, int]] = []
    for program, number in _print_instructions(timeline.machine.plan):
        count = _executions(timeline, program, number, before)
        max_shown = program.instructions[number].shows_first
        count = count if max_shown < 0 else min(count, max_shown)
        first = 0 if limit is None else max(0, count - limit)
        executions += [
            (timeline.step_at(program, row, number), program, number, row)
            for row in range(first, count)
        ]
    if limit is not None:
        executions = heapq.nlargest(limit, executions, key=_step)
    return tuple(_line(timeline, values, *execution) for execution in sorted(executions, key=_step))


def _step(execution: tuple[int, Program, int, int]) -> int:
    return execution[0]


def _print_instructions(plan: Plan) -> Iterator[tuple[Program, int]]:
    for program in plan.programs:
        for number, instruction in enumerate(program.instructions):
            if instruction.shows is not None:
                yield program, number


def _executions(timeline: Timeline, program: Program, number: int, before: int) -> int:
    """Return the number of executions of an instruction before a step, by bisection over rows."""
    low, high = 0, timeline.executions.rows[program.index]
    while low < high:
        middle = (low + high) // 2
        if timeline.step_at(program, middle, number) < before:
            low = middle + 1
        else:
            high = middle
    return low


def _line(
    timeline: Timeline, values: RunValues, step: int, program: Program, number: int, row: int
) -> PrintedLine:
    instruction = program.instructions[number]
    assert instruction.shows is not None
    text = instruction.shows(
        *(values.get(timeline, program, row, slot) for slot in instruction.inputs)
    )
    return PrintedLine(step, f"{timeline.address(program, row)}/{instruction.label}", text)


def as_public(value: Any) -> np.ndarray:
    """Return a value of the machine as a read-only array; u1, u3 and u6 as uint8 codes, nf4 as
    float32.

    Despite the declared type, an ONNX sequence is a tuple of such arrays, an optional without a
    value is None, and a map is itself.
    """
    if not is_tensor(value):
        return cast(
            np.ndarray,
            tuple(as_public(item) for item in value)
            if isinstance(value, tuple)
            else None
            if value is NO_VALUE
            else value,
        )
    array = np.asarray(value)
    if array.dtype.names:
        name = array.dtype.names[0]
        codes = array[name]
        array = np.asarray(NF4_VALUES[codes & 15]) if name == "nf4" else codes
    view = array.view()
    view.flags.writeable = False
    return view


def copy_public(value: Any) -> np.ndarray:
    """Return a writeable copy, for results that outlive the run."""
    if not is_tensor(value):
        return (
            cast(np.ndarray, tuple(copy_public(item) for item in value))
            if isinstance(value, tuple)
            else as_public(value)
        )
    return np.array(as_public(value))
