"""The explicit state of a run: its open graphs, its slots, what it has written down, and how far
it may go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from loopscope.executor.machine import regions
from loopscope.executor.machine.cycle_detection import CycleDetector
from loopscope.executor.machine.limits import RunControl
from loopscope.executor.plan.defaults import Defaults
from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.plan.plan import Branch, Instruction, LoopRegion, Plan, Program
from loopscope.executor.record.endings import LoopEnding
from loopscope.executor.record.recording import Recording
from loopscope.ir.model import LayerId

Status = Literal["paused", "finished", "failed"]
NO_BOUND = 1 << 62
"""Iterations that a loop without a limit may have."""


@dataclass(eq=False, slots=True)
class Frame:
    """One graph that is being run: its position, and for a loop's body its iteration and what it
    has collected.
    """

    program: Program
    _: KW_ONLY
    position: int = 0
    """Number of the instruction that runs next; the number of instructions when the graph is
    done.
    """
    region: LoopRegion | None = None
    """Set when this is the body of a loop."""
    branch: Branch | None = None
    """Set when this is a branch."""
    iteration: int = 0
    bound: int = 0
    """Iterations at most; ``NO_BOUND`` for no limit."""
    bound_ending: LoopEnding = "trip_count"
    collected: tuple[list[Any], ...] = ()
    cycles: CycleDetector | None = None
    is_behind: bool = False
    """Its last iteration is complete, and what generated code computed in it did not all come
    into the slots.
    """


class Failure(Exception):
    """An instruction failed; the run stays at it."""


@dataclass(eq=False)
class RunState:
    """One run of a plan, as stepping and generated code leave it."""

    plan: Plan
    values: list[Any]
    """By slot."""
    recording: Recording
    control: RunControl
    defaults: Defaults
    overrides: Overrides
    """What a person sets in this run."""
    frames: list[Frame] = field(default_factory=list[Frame])
    """Open graphs, outermost first."""
    state: Status = "paused"
    failure: str = ""
    out_of_memory: bool = False
    """It was memory that the failed operation lacked."""
    last: Instruction | None = None
    """What ran last; None after the end of a body, and after generated code."""
    keeps: bool = True
    """False: values of the outermost graph go as soon as nothing in it needs them any more,
    outputs apart.
    """
    looked_into: tuple[tuple[ProgramIndex, int], ...] = ()
    """Iterations of loops that are to be stepped through: the body's number and the iteration."""
    begun_with: Mapping[Slot, Any] = field(default_factory=dict[Slot, Any])
    """Random states and variables at the start, by slot."""

    @property
    def iterations(self) -> tuple[int, ...]:
        """Those of the open loops, outermost first."""
        return tuple(frame.iteration for frame in self.frames if frame.region is not None)

    def failed(self, message: str, error: BaseException) -> Failure:
        """The error to raise when the current instruction has failed with ``error``."""
        self.state = "failed"
        self.failure = message
        self.out_of_memory = isinstance(error, MemoryError)
        return Failure(message)

    def open_frame(
        self, program: Program, region: LoopRegion | None, branch: Branch | None
    ) -> Frame:
        """A frame on top of the others; what is in its slots is up to the caller."""
        self.frames.append(Frame(program, region=region, branch=branch))
        return self.frames[-1]

    def unfed(self, owner: LoopRegion | Branch, layer: LayerId) -> Any:
        """The value of a Parameter that nothing feeds."""
        return self.defaults.parameter(owner.program.address, layer)

    def outputs_of_none(self, region: LoopRegion) -> list[Any]:
        """The outputs of a loop whose body never ran."""
        return regions.outputs_of_none(region, self.values, self.defaults)

    def next_override(self, iteration: int) -> int | None:
        """The first iteration of the loop on top, not before the given one, in which a person
        sets anything.
        """
        if not self.overrides.items:
            return None
        return self.overrides.next_in(self._bodies, (*self.iterations[:-1], iteration))

    def next_stop(self, iteration: int) -> int | None:
        """The same, or where somebody wants to look into an iteration: generated code does not
        go beyond it.
        """
        program = self.frames[-1].program.index
        wanted = (one for place, one in self.looked_into if place == program and one >= iteration)
        return min(
            (one for one in (self.next_override(iteration), *wanted) if one is not None),
            default=None,
        )

    def last_override(self) -> int:
        """The last such iteration of the loop on top; -1 for none."""
        return self.overrides.last_in(self._bodies, self.iterations) if self.overrides.items else -1

    @property
    def _bodies(self) -> list[Program]:
        return [frame.program for frame in self.frames if frame.region is not None]
