"""Explicit state of a run, and the proof that a loop whose state repeats never ends.

The state consists of open graphs, slots, recording, limits, and applied overrides. Each override
applies only in its own row. A loop never ends if its whole carried state repeats exactly and
nothing else feeds the next iteration.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import numpy as np

from loopscope.executor.machine import regions
from loopscope.executor.machine.limits import RunControl
from loopscope.executor.machine.regions import bind_invariants
from loopscope.executor.plan.plan import Branch, Instruction, LoopRegion, Plan, Program
from loopscope.executor.plan.slots import ProgramIndex, Slot
from loopscope.executor.plan.uncomputed_values import Defaults, Overrides
from loopscope.executor.record.buffers import RecordedRows
from loopscope.executor.record.recording import LoopEnding, Recording
from loopscope.ir.model import LayerId
from loopscope.ops.values import is_tensor

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


@dataclass(eq=False)
class CycleDetector:
    """Brent's cycle detection over one execution of one loop: states are compared with a marked
    state, whose distance doubles.
    """

    marked_row: int = -1
    marked: tuple[bytes, ...] = ()
    next_mark: int = 1
    seen: int = 0

    def look(self, rows: RecordedRows, first: int = 0) -> tuple[int, int] | None:
        """Examine the newest packed chunk. Return two iterations with equal state, or None.

        ``first`` is the iteration at which watching began.
        """
        chunks = [column.chunks[-1] for column in rows.columns.values() if column.chunks]
        if len(chunks) < len(rows.columns) or not chunks:
            return None
        length = len(chunks[0])
        begin = 0
        while begin < length:
            row = self.seen + begin
            if row >= self.next_mark:
                self.marked_row, self.marked = row, tuple(_bits(chunk[begin]) for chunk in chunks)
                self.next_mark = 2 * row + 1
                begin += 1
                continue
            end = min(length, self.next_mark - self.seen)
            if self.marked_row >= 0:
                match = self._first_equal(chunks, begin, end)
                if match is not None:
                    return first + self.marked_row, first + self.seen + match
            begin = end
        self.seen += length
        return None

    def _first_equal(self, chunks: list[Any], begin: int, end: int) -> int | None:
        candidates: Any = range(begin, end)
        for chunk, bits in zip(chunks, self.marked, strict=True):
            if (
                isinstance(chunk, np.ndarray)
                and chunk.ndim == 1
                and chunk.dtype.names is None
                and chunk.itemsize in (1, 2, 4, 8)
            ):
                codes = chunk[begin:end].view(f"u{chunk.itemsize}")
                equal = np.flatnonzero(codes == np.frombuffer(bits, codes.dtype)[0]) + begin
                candidates = (
                    [index for index in candidates if index in set(equal.tolist())]
                    if len(equal)
                    else ()
                )
            else:
                candidates = [index for index in candidates if _bits(chunk[index]) == bits]
            if not len(candidates):
                return None
        return int(candidates[0])


def first_return(
    rows: RecordedRows, begin: int, lower: int, earlier: int, later: int
) -> tuple[int, int]:
    """Return the first two iterations, from ``lower`` on, that repeat with the known period ``later
    - earlier``.

    Requires all rows. ``begin`` is the row of iteration 0. A state that repeats once repeats for
    ever, so bisection finds the start.
    """

    def comes_back(iteration: int) -> bool:
        return all(
            _bits(column[begin + iteration]) == _bits(column[begin + iteration + later - earlier])
            for column in rows.columns.values()
        )

    start = lower + bisect_left(range(lower, earlier), True, key=comes_back)
    return start, start + later - earlier


def _bits(value: Any) -> bytes:
    if not is_tensor(value):
        return b"".join(map(_bits, value)) if isinstance(value, tuple) else repr(value).encode()
    array = np.asarray(value)
    if array.dtype == object:
        return repr((array.shape, array.reshape(-1).tolist())).encode()
    return (
        repr((array.shape, array.dtype.str)).encode() + array.tobytes()
        if array.ndim
        else array.tobytes()
    )
