"""Explicit state of a run: its open graphs, slots, recording, limits, and applied overrides.

Each override applies only in its own row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from loopscope.executor.machine import regions
from loopscope.executor.machine.cycle_detection import CycleDetector
from loopscope.executor.machine.limits import RunControl
from loopscope.executor.machine.regions import bind_invariants
from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.plan.plan import Branch, Instruction, LoopRegion, Plan, Program
from loopscope.executor.plan.uncomputed_values import Defaults, Overrides
from loopscope.executor.record.recording import LoopEnding, Recording
from loopscope.ir.model import LayerId

Status = Literal["paused", "finished", "failed"]
NO_BOUND = 1 << 62
"""Iteration bound of a loop without a limit."""


@dataclass(eq=False, slots=True)
class Frame:
    """A graph that is being run: its position, and for a loop body the iteration and the collected
    pieces.
    """

    program: Program
    _: KW_ONLY
    position: int = 0
    """Number of the instruction that runs next; the number of instructions at the end of the
    graph.
    """
    region: LoopRegion | None = None
    """The loop whose body this graph is."""
    branch: Branch | None = None
    """The branch that this graph is."""
    iteration: int = 0
    bound: int = 0
    """Maximum iteration count; ``NO_BOUND`` for no limit."""
    bound_ending: LoopEnding = "trip_count"
    collected: tuple[list[Any], ...] = ()
    cycles: CycleDetector | None = None
    is_behind: bool = False
    """True if the last iteration is complete, but generated code did not store all of its values in
    the slots.
    """


class Failure(Exception):
    """Failure of an instruction; the run stays at that instruction."""


@dataclass(eq=False)
class RunState:
    """State of one run of a plan, shared by stepping and generated code."""

    plan: Plan
    values: list[Any]
    """Values by slot."""
    recording: Recording
    control: RunControl
    defaults: Defaults
    overrides: Overrides
    """Overrides of this run."""
    frames: list[Frame] = field(default_factory=list[Frame])
    """Open graphs, outermost first."""
    state: Status = "paused"
    failure: str = ""
    out_of_memory: bool = False
    """True if the failed operation ran out of memory."""
    last: Instruction | None = None
    """The instruction that ran last; None after the end of a body, and after generated code."""
    keeps: bool = True
    """False if values of the outermost graph, except outputs, are dropped after their last use."""
    looked_into: tuple[tuple[ProgramIndex, int], ...] = ()
    """Iterations of loops that must be stepped through: the number of the body and the
    iteration.
    """
    begun_with: Mapping[Slot, Any] = field(default_factory=dict[Slot, Any])
    """Random states and variables at the start, by slot."""

    @property
    def iterations(self) -> tuple[int, ...]:
        """Iterations of the open loops, outermost first."""
        return tuple(frame.iteration for frame in self.frames if frame.region is not None)

    def failed(self, message: str, error: BaseException) -> Failure:
        """Return the error to raise after the current instruction has failed with ``error``."""
        self.state = "failed"
        self.failure = message
        self.out_of_memory = isinstance(error, MemoryError)
        return Failure(message)

    def open_frame(
        self, program: Program, region: LoopRegion | None, branch: Branch | None
    ) -> Frame:
        """Push a frame on the stack. The caller sets its slots."""
        self.frames.append(Frame(program, region=region, branch=branch))
        return self.frames[-1]

    def unfed(self, owner: LoopRegion | Branch, layer: LayerId) -> Any:
        """Return the value of a Parameter that nothing feeds."""
        return self.defaults.parameter(owner.program.address, layer)

    def outputs_of_none(self, region: LoopRegion) -> list[Any]:
        """Return the outputs of a loop whose body never ran."""
        return regions.outputs_of_none(region, self.values, self.defaults)

    def next_override(self, iteration: int) -> int | None:
        """Return the first iteration of the top loop, from ``iteration`` on, that has an
        override.
        """
        if not self.overrides.items:
            return None
        return self.overrides.next_in(self._bodies, (*self.iterations[:-1], iteration))

    def next_stop(self, iteration: int) -> int | None:
        """Return the first iteration of the top loop, from ``iteration`` on, that must be stepped
        through.

        Such an iteration has an override or is inspected. Generated code stops before it.
        """
        program = self.frames[-1].program.index
        inspected = [
            number for index, number in self.looked_into if index == program and number >= iteration
        ]
        override = self.next_override(iteration)
        return min(inspected if override is None else [override, *inspected], default=None)

    def last_override(self) -> int:
        """Return the last iteration of the top loop that has an override; -1 for none."""
        return self.overrides.last_in(self._bodies, self.iterations) if self.overrides.items else -1

    @property
    def _bodies(self) -> list[Program]:
        return [frame.program for frame in self.frames if frame.region is not None]


def begin(
    overrides: Overrides,
    defaults: Defaults,
    program: Program,
    iterations: tuple[int, ...],
    values: list[Any],
) -> None:
    """Apply the overrides of Parameters and Consts at the beginning of a row, after undoing those
    of other rows.
    """
    slots = [
        override.slot
        for override in overrides.by_program.get(program.index, ())
        if override.slot not in program.producer
    ]
    if not slots:
        return
    plan = overrides.plan
    for slot in plan.constant_numbers.intersection(slots):
        values[slot] = plan.constant[slot]
    if program.loop is not None:
        bind_invariants(program.loop, values, defaults)
    put(overrides, program, iterations, slots, values)


def put(
    overrides: Overrides,
    program: Program,
    iterations: tuple[int, ...],
    slots: Collection[Slot],
    values: list[Any],
) -> None:
    """Apply the overrides of these slots in one row."""
    for override in overrides.by_program.get(program.index, ()):
        if override.slot in slots and override.iterations == iterations:
            override.put(values)


def undo_constants(overrides: Overrides, program: Program, values: list[Any]) -> None:
    """Restore the model's values of overridden Consts in a graph and its inner graphs."""
    for owner, slot in overrides.constants:
        if program in owner.around():
            values[slot] = overrides.plan.constant[slot]
