"""Debugger: moves freely through the steps of one run, and computes only steps that were not
computed yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from loopscope.debug import overrides_by_address as changing
from loopscope.debug.breakpoints import Breakpoint, Breakpoints, Watches, goal
from loopscope.debug.inputs import Inputs
from loopscope.debug.position import Cursor, frontier, next_of
from loopscope.debug.prepare import Fetch, prepare
from loopscope.debug.progress import Beginning, start
from loopscope.debug.run import Run
from loopscope.debug.seek import next_stop, reason
from loopscope.debug.stop_conditions import check_limits, matches, may_run_unwatched, stops
from loopscope.errors import AddressError, shorten
from loopscope.executor import drive
from loopscope.executor.machine.limits import Limits
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.optimisation_flags import EVERYTHING, Optimise
from loopscope.executor.plan.plan import LoopRegion, Program
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import Record
from loopscope.ir.model import Model, expect_model
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.plugins import mime_bundle


class Debugger(Run):
    """One run of one model that can be stepped, run, rewound and inspected.

    Consts and Parameters are not steps: their values exist when their graph begins. ``record``
    limits what is stored. Values that are not stored are recomputed exactly when requested.

    ``changes`` are what-if values by address, each in one iteration of every enclosing loop
    (``main/while_3[2]/body/keep``). They replace the value of an operation, of a Parameter of a
    body, or of a Const; everything that follows uses the new value. Raises ``AddressError`` for an
    address that does not name one value, and ``InputError`` for a value of another element type or
    an impossible shape. The attribute ``changes`` reports which of them the run has reached.

    ``rounding`` rounds values to a narrower type (bf16, f16, f8e4m3, f8e5m2, int8 per row, int4 per
    group) by patterns of addresses (``main/*/state``), in all iterations, as in
    ``loopscope.transform.rounding.round_model``. ``model`` is then the model with the rounding in
    it, and ``unrounded`` lists what stays unchanged. ``loopscope.drift`` compares such a run with
    the run without rounding.

    ``fetches`` has the meaning it has in ``loopscope.run``: only what the fetches need runs.
    Without fetches everything runs, so that all values can be inspected. ``whole=False`` skips
    operations that no output needs, as ``loopscope.run`` does.
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs = None,
        *,
        limits: Limits | None = None,
        record: Record | None = None,
        seed: int | None = None,
        changes: Mapping[str, Any] | None = None,
        rounding: Mapping[str, str] | None = None,
        fetches: Fetch | Sequence[Fetch] | None = None,
        whole: bool = True,
        optimise: Optimise = EVERYTHING,
        catalogue: Catalogue = CATALOGUE,
    ) -> None:
        expect_model(model, "loopscope.Debugger")
        prepared = prepare(
            model,
            inputs,
            limits=limits,
            record=record,
            seed=seed,
            changes=changes,
            rounding=rounding,
            fetches=fetches,
            whole=whole,
            optimise=optimise,
            catalogue=catalogue,
        )
        self.beginning = prepared.beginning
        machine = _start_machine(prepared.overrides, self.beginning)
        super().__init__(prepared.model, prepared.overrides, machine, self.beginning.limits)
        self.unrounded = prepared.unrounded
        self.breakpoints = Breakpoints(self.plan)
        self.watches = Watches(self)
        self.listeners = Listeners(self)

    def __repr__(self) -> str:
        cursor = self.cursor
        place = f"before {cursor.address}" if cursor.address else "at the end"
        name = shorten(self.model.name)
        return f"<Debugger of {name!r}, {self.state}: step {cursor.step:,}, {place}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, Any]:
        """Return the rich display of a notebook, by MIME type."""
        return mime_bundle(self)

    def restart(self) -> Cursor:
        """Return to the beginning and forget everything computed.

        Without weights only the cursor returns, because computing again would require them.
        """
        if self.plan.lacks_weights:
            return self._go(0)
        self._begin(_start_machine(self.overrides, self.beginning))
        return self._arrived()

    @property
    def notice(self) -> str | None:
        """The breakpoint that stops a run at the cursor, and the reason; None if none does."""
        return reason(self, self.breakpoints)

    @property
    def changes(self) -> tuple[changing.Changed, ...]:
        """The overridden values, and whether the run has reached them."""
        return changing.list_changes(self)

    # -- moving

    def step(self) -> Cursor:
        """Run one operation, begin one node with bodies, or end one body execution."""
        if self._past is not None:
            return self._go(self._past + 1)
        if self.machine.state == "paused":
            address = self._progress.next_address or next_of(frontier(self.machine))[0]
            self._progress.step()
            self._progress.last_address = address if self._progress.went_on else ""
        return self._arrived()

    step_into = step
    """Alias of ``step``, which enters bodies."""

    def step_back(self) -> Cursor:
        """Go back one step."""
        return self._go(max(0, self.cursor.step - 1))

    def step_over(self) -> Cursor:
        """Step, and run a node with bodies as a whole."""
        levels = self.moment
        level = levels[-1]
        instructions = level.program.instructions
        if level.position == len(instructions) or instructions[level.position].region is None:
            return self.step()
        return self._leave(level.program, level.row, level.position + 1)

    def step_out(self) -> Cursor:
        """Run until the node whose body is open is done; in the outermost graph, to the end of the
        run.
        """
        level = self.moment[-1]
        if level.program.parent is None:
            return self.run()
        row, _ = self.timeline.executions.parent_row(level.program, level.row)
        return self._leave(level.program.parent, row, level.program.owner + 1)

    def _leave(self, program: Program, row: int, position: int) -> Cursor:
        """Move to the moment at which a row reaches a position, at full speed unless breakpoints
        may stop the run.
        """

        def has_left() -> bool:
            frame = self.machine.frames[-1]
            return frame.program is program and frame.position >= position

        if self._progress.has_reached(program, row, position):
            return self._go(self.timeline.step_at(program, row, position))
        floor = next(
            depth for depth, frame in enumerate(self.machine.frames, 1) if frame.program is program
        )
        return self._forward(has_left, floor)

    def next_iteration(self) -> Cursor:
        """Move to the beginning of the next iteration of the innermost loop, or past the loop after
        its last iteration. Outside of loops, step over an operation or into a loop.
        """
        levels = self.moment
        inner = next((level for level in reversed(levels) if level.iteration is not None), None)
        if inner is None:
            return self.step_into() if self._is_before_a_loop() else self.step_over()
        program, row, iteration = inner.program, inner.row, inner.iteration
        assert program.parent is not None
        assert iteration is not None
        owner_row, _ = self.timeline.executions.parent_row(program, row)
        if self.timeline.executions.rows[program.index] > row + 1:
            _, next_iteration = self.timeline.executions.parent_row(program, row + 1)
            if next_iteration:
                return self._go(self.timeline.step_at(program, row + 1, 0))
        if self._progress.has_reached(program.parent, owner_row, program.owner + 1):
            return self._go(self.timeline.step_at(program.parent, owner_row, program.owner + 1))
        depth = next(number for number, level in enumerate(levels) if level is inner) + 1

        def has_advanced() -> bool:
            frames = self.machine.frames
            return len(frames) < depth or (
                frames[depth - 1].iteration > iteration and frames[depth - 1].program is program
            )

        return self._forward(has_advanced, depth)

    def _is_before_a_loop(self) -> bool:
        level = self.moment[-1]
        following = level.program.instructions[level.position : level.position + 1]
        return any(isinstance(instruction.region, LoopRegion) for instruction in following)

    def previous_iteration(self) -> Cursor:
        """Move to the beginning of the previous iteration; from the first iteration, to the loop
        itself. Outside of loops, go back one step.
        """
        inner = next(
            (level for level in reversed(self.moment) if level.iteration is not None), None
        )
        if inner is None:
            return self.step_back()
        if inner.iteration:
            return self._go(self.timeline.step_at(inner.program, inner.row - 1, 0))
        return self._go(self.timeline.step_at(inner.program, inner.row, 0) - 1)

    def run(self) -> Cursor:
        """Run to the next breakpoint, the end, a failure or a limit. Each call after a limit allows
        the same amount again.
        """
        if self._past is not None:
            step = self._next_recorded(self.breakpoints.on, self._past)
            if step is not None:
                return self._go(step)
            self._past = None
        if self.breakpoints.on:
            return self._forward(lambda: False)
        self._progress.compute(lambda: drive.run(self.machine))
        return self._arrived()

    def run_to(self, pattern: str) -> Cursor:
        """Run to the next moment before an address runs. Omitted iterations match all."""
        target = goal(self.plan, pattern)
        if (
            self._past is not None
            and (step := self._next_recorded([target], self._past)) is not None
        ):
            return self._go(step)
        return self._forward(lambda: self._is_at(target), target=target)

    def seek(self, place: str | int) -> Cursor:
        """Move to a step number, or to the moment before an address runs; compute missing steps.

        A breakpoint, a limit or a stop request may pause the run earlier. Raises ``AddressError``
        if the run ends without reaching the address.
        """
        if isinstance(place, (int, np.integer)):
            place = int(place)
            if place < 0:
                raise AddressError(f"step {place} lies before the beginning")
            while self.steps < place and self.state == "paused":
                self._past = None
                self._progress.step()
            return self._go(min(place, self.steps))
        target = goal(self.plan, place)
        if (step := self._next_recorded([target], -1)) is not None:
            return self._go(step)
        self._forward(lambda: self._is_at(target), target=target)
        if self.state in ("finished", "failed") and not self._is_at(target):
            raise AddressError(
                f"the run never reaches {place}: it {self.state} after {self.steps:,} steps"
            )
        return self.cursor

    go = seek
    """Short alias of ``seek`` for the command prompt."""

    def stop(self) -> None:
        """Stop a computation in another thread. Computed values are not lost."""
        self.machine.control.stop.set()

    def _is_at(self, target: Breakpoint) -> bool:
        return self.machine.state != "finished" and matches(frontier(self.machine), target)

    def _go(self, step: int) -> Cursor:
        self._past = None if step >= self.steps else step
        return self._arrived()

    def _arrived(self) -> Cursor:
        self.listeners.notify(self)
        return self.cursor

    # -- computing

    def _forward(
        self, reached: Callable[[], bool], floor: int = 0, target: Breakpoint | None = None
    ) -> Cursor:
        """Compute until the condition ``reached`` on the frontier holds or a breakpoint stops the
        run.
        """
        self._past = None
        self._progress.compute(lambda: self._run_until(reached, floor, [target] if target else []))
        return self._arrived()

    def _run_until(
        self, reached: Callable[[], bool], floor: int, targets: list[Breakpoint]
    ) -> None:
        """Run until the condition ``reached`` holds. Loops deeper than ``floor`` without a
        breakpoint run in generated code.
        """
        machine = self.machine
        watched = [*self.breakpoints.on, *targets]
        done = 0
        while machine.state == "paused":
            if done and (reached() or stops(self, self.breakpoints.on)):
                return
            done += 1
            check_limits(machine, done)
            drive.advance(machine, generated=may_run_unwatched(machine, watched, floor))

    def _next_recorded(self, breakpoints: Sequence[Breakpoint], step: int) -> int | None:
        """Return the next recorded step after ``step`` at which a breakpoint holds, or at which the
        search was paused.
        """
        next_step, limit = next_stop(self, breakpoints, step)
        self._progress.limit = limit or (
            self._progress.limit if self.machine.state == "paused" else ""
        )
        return next_step


def _start_machine(overrides: Overrides, beginning: Beginning) -> Machine:
    """Return a machine at the first step, with a copy of the inputs."""
    machine = start(overrides, beginning.values, beginning.limits, beginning.record, beginning.seed)
    # Copy the inputs, because the caller may write to them later. Constants are read-only views of
    # a file.
    machine.values = [
        np.array(value) if isinstance(value, np.ndarray) and value.base is None else value
        for value in machine.values
    ]
    return machine


class Listeners:
    """Listeners of one debugger. Copies of the debugger share this object, but their moves are not
    reported.
    """

    def __init__(self, owner: object) -> None:
        self._owner = ref(owner)
        self._calls: list[Callable[[], object]] = []

    def add(self, call: Callable[[], object]) -> None:
        """Call ``call`` after every move from now on."""
        self._calls.append(call)

    def notify(self, mover: object) -> None:
        """Report a move of ``mover`` to the listeners."""
        if self._owner() is mover:
            for call in self._calls:
                call()
