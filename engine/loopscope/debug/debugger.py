"""The debugger: moves freely through the steps of one run, and computes only steps that have not
been computed yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.debug import overrides_by_address as changing
from loopscope.debug.breakpoints import Breakpoint, Breakpoints, goal
from loopscope.debug.cursor import Cursor, frontier, next_of
from loopscope.debug.fetch_plan import Fetch
from loopscope.debug.inputs import Inputs
from loopscope.debug.listeners import Listeners
from loopscope.debug.pause_reason import reason
from loopscope.debug.prepare import prepare
from loopscope.debug.run import Run
from loopscope.debug.seek import next_stop
from loopscope.debug.start_state import Beginning, start
from loopscope.debug.stop_conditions import check_limits, matches, may_run_unwatched, stops
from loopscope.debug.watches import Watches
from loopscope.errors import AddressError, shorten
from loopscope.executor import drive
from loopscope.executor.machine.limits import Limits
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.optimisation_flags import EVERYTHING, Optimise
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.plan.plan import Program
from loopscope.executor.record.recording import Record
from loopscope.ir.model import Model, expect_model
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.plugins import mime_bundle


class Debugger(Run):
    """One run of one model that can be stepped, run, rewound and looked into.

    Consts and Parameters are not steps: their values exist when their graph begins. ``record``
    bounds what is remembered; what is not remembered is computed again, exactly, when asked for.

    ``changes``: what if? Values by address, each in one iteration of every loop around it
    (``main/while_3[2]/body/keep``); of an operation, a Parameter of a body, or a Const. The run is
    the same, but where such a value is there, it is replaced by the given one, and everything that
    follows uses that. ``AddressError`` for an address that does not name one value, ``InputError``
    for a value of another element type or of a shape that cannot be there; afterwards ``changes``
    tells which of them the run has reached.

    ``rounding``: what if values were kept in a narrower type? Types (bf16, f16, f8e4m3, f8e5m2,
    int8 per row, int4 per group) by patterns of addresses (``main/*/state``), in all iterations, as
    ``loopscope.transform.rounding.round_model`` takes them; ``model`` is then the model with the
    rounding in it, and ``unrounded`` lists what stays as it is. ``loopscope.drift`` compares such a
    run with the one without.

    ``fetches``: as of ``loopscope.run``; only what they need runs, all else is skipped. Without
    them everything runs, so that it can be seen; with ``whole=False`` not what no output needs, as
    in ``loopscope.run``.
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
        machine = _begun(prepared.overrides, self.beginning)
        super().__init__(prepared.model, prepared.overrides, machine, self.beginning.limits)
        self.unrounded = prepared.unrounded
        self.breakpoints = Breakpoints(self.plan)
        self.watches = Watches(self)
        self.listeners = Listeners(self)

    def __repr__(self) -> str:
        cursor = self.cursor
        place = f"before {cursor.address}" if cursor.address else "at the end"
        return f"<Debugger of {shorten(self.model.name)!r}, {self.state}: step {cursor.step:,}, {place}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, Any]:
        """Return the rich display of a notebook, by MIME type."""
        return mime_bundle(self)

    def restart(self) -> Cursor:
        """Back to the beginning, everything computed forgotten; without weights, which it would
        take again, only the cursor goes back.
        """
        if self.plan.lacks_weights:
            return self._go(0)
        self._begin(_begun(self.overrides, self.beginning))
        return self._arrived()

    @property
    def notice(self) -> str | None:
        """Which breakpoint stops a run at the cursor, and why; None when none does."""
        return reason(self, self.breakpoints)

    @property
    def changes(self) -> tuple[changing.Changed, ...]:
        """The values that were set by hand, and whether the run has come there."""
        return changing.told(self)

    # -- moving
    # ---------------------------------------------------------------------------------------------------

    def step(self) -> Cursor:
        """One operation, the beginning of one node with bodies, or the end of one body
        execution.
        """
        if self._past is not None:
            return self._go(self._past + 1)
        if self.machine.state == "paused":
            address = next_of(frontier(self.machine))[0]
            self._progress.step()
            self._progress.last_address = address if self._progress.went_on else ""
        return self._arrived()

    step_into = step
    """Stepping enters bodies anyway."""

    def step_back(self) -> Cursor:
        """One step back in time."""
        return self._go(max(0, self.cursor.step - 1))

    def step_over(self) -> Cursor:
        """As ``step``, but a node with bodies runs as a whole."""
        levels = self.moment
        level = levels[-1]
        instructions = level.program.instructions
        if level.position == len(instructions) or instructions[level.position].region is None:
            return self.step()
        return self._leave(level.program, level.row, level.position + 1)

    def step_out(self) -> Cursor:
        """Until the node whose body is open is done; to the end of the run in the outermost
        graph.
        """
        level = self.moment[-1]
        if level.program.parent is None:
            return self.run()
        row, _ = self.timeline.executions.parent_row(level.program, level.row)
        return self._leave(level.program.parent, row, level.program.owner + 1)

    def _leave(self, program: Program, row: int, position: int) -> Cursor:
        """Moves to the moment at which a row reaches a position; runs at full speed unless there
        are breakpoints on the way.
        """

        def there() -> bool:
            frame = self.machine.frames[-1]
            return frame.program is program and frame.position >= position

        if self._progress.has_reached(program, row, position):
            return self._go(self.timeline.step_at(program, row, position))
        floor = next(
            depth for depth, frame in enumerate(self.machine.frames, 1) if frame.program is program
        )
        return self._forward(there, floor)

    def next_iteration(self) -> Cursor:
        """To the beginning of the next iteration of the innermost loop; past the loop when there
        is none.
        """
        levels = self.moment
        inner = next((level for level in reversed(levels) if level.iteration is not None), None)
        if inner is None:
            return self.step_over()
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

        def there() -> bool:
            frames = self.machine.frames
            return len(frames) < depth or (
                frames[depth - 1].iteration > iteration and frames[depth - 1].program is program
            )

        return self._forward(there, depth)

    def previous_iteration(self) -> Cursor:
        """To the beginning of the iteration before; to the loop itself from its first."""
        inner = next(
            (level for level in reversed(self.moment) if level.iteration is not None), None
        )
        if inner is None:
            return self.step_back()
        if inner.iteration:
            return self._go(self.timeline.step_at(inner.program, inner.row - 1, 0))
        return self._go(self.timeline.step_at(inner.program, inner.row, 0) - 1)

    def run(self) -> Cursor:
        """Runs to the next breakpoint, the end, a failure or a limit. Called again after a
        limit, it runs for as much again.
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
        """To the next moment before a place runs; iterations that are left out match all."""
        target = goal(self.plan, pattern)
        if (
            self._past is not None
            and (step := self._next_recorded([target], self._past)) is not None
        ):
            return self._go(step)
        return self._forward(lambda: self._is_at(target), target=target)

    def seek(self, place: str | int) -> Cursor:
        """Moves to a step number, or to the moment before an address runs; computes steps that have
        not been computed yet.

        A breakpoint, a limit or a stop on the way pauses before it is there. ``AddressError`` when
        the run ends without coming there.
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
                f"the run never comes to {place}: it {self.state} after {self.steps:,} steps"
            )
        return self.cursor

    go = seek
    """What a person says at a prompt."""

    def stop(self) -> None:
        """Stops a computation that another thread has under way; what it has computed is kept."""
        self.machine.control.stop.set()

    def _is_at(self, target: Breakpoint) -> bool:
        return self.machine.state != "finished" and matches(frontier(self.machine), target)

    def _go(self, step: int) -> Cursor:
        self._past = None if step >= self.steps else step
        return self._arrived()

    def _arrived(self) -> Cursor:
        self.listeners.tell(self)
        return self.cursor

    # -- computing
    # ------------------------------------------------------------------------------------------------

    def _forward(
        self, there: Callable[[], bool], floor: int = 0, target: Breakpoint | None = None
    ) -> Cursor:
        """Computes on until a condition on the frontier holds or a breakpoint stops it."""
        self._past = None
        self._progress.compute(lambda: self._run_until(there, floor, [target] if target else []))
        return self._arrived()

    def _run_until(self, there: Callable[[], bool], floor: int, targets: list[Breakpoint]) -> None:
        """Runs until a condition on the frontier holds; loops deeper than ``floor`` that hold no
        breakpoint run through generated code.
        """
        machine = self.machine
        watched = [*self.breakpoints.on, *targets]
        done = 0
        while machine.state == "paused":
            if done and (there() or stops(self, self.breakpoints.on)):
                return
            done += 1
            check_limits(machine, done)
            drive.advance(machine, generated=may_run_unwatched(machine, watched, floor))

    def _next_recorded(self, breakpoints: Sequence[Breakpoint], step: int) -> int | None:
        """The next step after this one, in what has run already, at which one holds, or to which
        the search came before it was paused.
        """
        found, limit = next_stop(self, breakpoints, step)
        self._progress.limit = limit or (
            self._progress.limit if self.machine.state == "paused" else ""
        )
        return found


def _begun(overrides: Overrides, beginning: Beginning) -> Machine:
    """A machine at the first step, with a copy of the inputs."""
    machine = start(overrides, beginning.values, beginning.limits, beginning.record, beginning.seed)
    # What was given may be written to while the run is looked at; constants, which are views of
    # their file, are not.
    machine.values = [
        np.array(value) if isinstance(value, np.ndarray) and value.base is None else value
        for value in machine.values
    ]
    return machine
