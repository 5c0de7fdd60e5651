"""A run to look into: its plan, what has been computed of it, and the moment that is looked at.
Nothing here moves it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopscope.debug import lookup
from loopscope.debug.cursor import Cursor, DebuggerState, OpenGraph, frontier, levels_of, next_of
from loopscope.debug.export_value import as_public
from loopscope.debug.memory_use import held_bytes
from loopscope.debug.position import Position
from loopscope.debug.printed import PrintedLine, lines
from loopscope.debug.progress import Progress
from loopscope.debug.result import Result
from loopscope.debug.start_state import place
from loopscope.debug.visible_rows import Scene, Status
from loopscope.errors import AddressError, ValueUnavailable
from loopscope.executor.machine.limits import Limits
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.plan.plan import Plan, Program
from loopscope.ir.address import Address
from loopscope.ir.model import Model
from loopscope.timeline.control_flow import ControlFlow, ControlFlowRecord
from loopscope.timeline.run_values import RunValues
from loopscope.timeline.timeline import Moment, Timeline


def expect_run(given: object, taker: str) -> None:
    """``TypeError`` when ``taker`` is given something other than a Run, such as a Result."""
    if not isinstance(given, Run):
        raise TypeError(
            f"{taker} takes a Debugger, not {type(given).__name__}: loopscope.Debugger(model, inputs) makes one, its run() runs it"
        )


class Run:
    """One run of one model, as far as it has been computed, and the moment of it that is looked
    at.
    """

    def __init__(
        self, model: Model, overrides: Overrides, machine: Machine, limits: Limits
    ) -> None:
        self.model = model
        self.overrides = overrides
        """The plan, and what a person sets in this run."""
        self.unrounded: tuple[str, ...] = ()
        """Addresses of what a rounding of this run names and leaves as it is, because only
        shapes, indices and trip counts follow.
        """
        self.limits = limits
        self.shapes: dict[int, tuple[int, ...]] = {}
        """By slot, the shape that a value had when a breakpoint last looked at it."""
        self._begin(machine)

    def _begin(self, machine: Machine) -> None:
        self._progress = Progress(machine, self.limits)
        self._past: int | None = None
        """The step that is looked at; None for the newest one."""

    def put_back(
        self, machine: Machine, *, limit: str, endless: str, missing: frozenset[Slot]
    ) -> None:
        """What was computed elsewhere, in place of what has been computed here; the cursor is at
        its newest step.

        ``limit`` and ``endless``: why it may not go on, and why it never ends, in words.
        ``missing``: values of the outermost graph that ``machine`` lacks, and that are computed
        when somebody asks for them.
        """
        self._progress = Progress.put_back(machine, self.limits, limit, endless, missing)
        self._past = None

    @property
    def plan(self) -> Plan:
        return self.overrides.plan

    # -- how far it has come
    # --------------------------------------------------------------------------------------

    @property
    def machine(self) -> Machine:
        """Computes the run; it is at the first step that has not been computed."""
        return self._progress.machine

    @property
    def state(self) -> DebuggerState:
        """Of the run as a whole, wherever the cursor is."""
        return self._progress.state

    @property
    def failure(self) -> str | None:
        """Why the run failed, or the limit that it reached; None otherwise."""
        return self.machine.failure or self._progress.limit or None

    @property
    def out_of_memory(self) -> bool:
        """Whether it failed because there was no memory for an operation."""
        return self.machine.out_of_memory

    @property
    def endless(self) -> str | None:
        """Why the innermost loop that is open at the newest step can never end, if that is
        proved; None otherwise.
        """
        return self._progress.endless or None

    @property
    def failed_address(self) -> str | None:
        """Address of the operation that failed."""
        return place(self.machine) if self.machine.state == "failed" else None

    @property
    def steps(self) -> int:
        """Steps that have run so far."""
        return self._progress.steps

    @property
    def timeline(self) -> Timeline:
        """The order of everything that has run."""
        return self._progress.timeline

    @property
    def values(self) -> RunValues:
        """The values of the run, by graph, row and slot."""
        return self._progress.values

    @property
    def held_bytes(self) -> int:
        """Bytes that the run takes with what it holds, about; constants apart, which belong to
        the model.
        """
        return held_bytes(self.machine, self.values)

    @property
    def control_flow(self) -> ControlFlow:
        """Records of everything that has run so far."""
        return self._progress.control_flow

    @property
    def result(self) -> Result:
        """The outputs and control flow of the run."""
        self.values.complete(self.plan.main.results.values())
        return Result(self.machine)

    # -- where the cursor is
    # --------------------------------------------------------------------------------------

    @property
    def position(self) -> Position:
        """The moment that is looked at."""
        return Position(self.timeline, self._past)

    @property
    def moment(self) -> Moment:
        """The open graphs at the cursor, outermost first."""
        return self.position.moment

    @property
    def cursor(self) -> Cursor:
        """The moment that is looked at: what runs next, and what ran last."""
        step = self.steps if self._past is None else self._past
        if self._past is None and self.machine.state == "finished":
            return Cursor(
                step=step, address="", kind="finished", previous=self._address_before(step)
            )
        address, kind = next_of(
            frontier(self.machine) if self._past is None else levels_of(self.moment)
        )
        return Cursor(step=step, address=address, kind=kind, previous=self._address_before(step))

    def _address_before(self, step: int) -> str:
        if step == 0:
            return ""
        if self._past is None:
            return self._progress.last_address or self.timeline.latest
        return next_of(levels_of(self.timeline.moment(step - 1)))[0]

    def frames(self) -> tuple[OpenGraph, ...]:
        """The open graphs at the cursor, outermost first."""
        return lookup.open_graphs(self.position)

    def statuses(self) -> dict[str, Status]:
        """Status of every node at the cursor, by static address."""
        return self.scene().statuses(self.machine.state == "failed" and self._past is None)

    def scene(self) -> Scene:
        """Which execution of each graph is to be shown at the cursor."""
        return self.position.scene

    @property
    def prints(self) -> bool:
        """Whether the model has a Print."""
        return self.plan.prints

    def printed(self, most: int) -> tuple[PrintedLine, ...]:
        """What the run's Prints have shown up to the moment that is looked at, the last lines."""
        return lines(self.timeline, self.values, self.cursor.step, most)

    # -- what there is
    # --------------------------------------------------------------------------------------------

    def value(self, address: str) -> np.ndarray:
        """The value at an address, read-only; ``ValueUnavailable`` says why there is none,
        ``AddressError`` that there is no such place.

        Iterations that are left out are those shown at the cursor.
        """
        program, row, slot = lookup.locate(self.position, Address.parse(address))
        return as_public(self.values.get(self.timeline, program, row, slot))

    def record(self, address: str) -> ControlFlowRecord | None:
        """What one execution of a Loop, TensorIterator or If did so far, by its address; None
        when it has not begun.
        """
        try:
            return self.control_flow.of(*lookup.region_at(self.position, Address.parse(address)))
        except ValueUnavailable:
            return None

    def rows_of(self, address: Address) -> tuple[Program, int]:
        """The graph that holds the node of an address, and the row of it that is meant."""
        return lookup.graph_row(self.position, address)

    def iteration_rows(self, address: Address) -> tuple[Program, Slot, int, int]:
        """Program, slot, first row and the row after the last of a place over all iterations of
        the innermost loop around it.
        """
        return lookup.iteration_rows(self.position, address)

    def has_run(self, program: Program, row: int, slot: Slot) -> bool:
        """Whether what fills a slot has run in a row that has begun."""
        return lookup.has_run(self.timeline, program, row, slot)

    def resolve(self, place: str) -> str | None:
        """The concrete address at the cursor of a place that may leave out iterations; None when
        it has not run yet.
        """
        return self.resolver()(place)

    def resolver(self) -> Callable[[str], str | None]:
        """``resolve`` for many places: all of them at the moment at which this is called, whose
        scene is made once.
        """
        position = self.position

        def resolve(place: str) -> str | None:
            try:
                return lookup.resolve(position, place)
            except (ValueUnavailable, AddressError):
                return None

        return resolve
