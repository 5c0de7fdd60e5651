"""Run for inspection: its plan, its computed part, and the moment at the cursor. This module does
not move the cursor.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopscope.debug import lookup
from loopscope.debug.position import (
    Cursor,
    DebuggerState,
    OpenGraph,
    Position,
    Scene,
    Status,
    frontier,
    levels_of,
    next_of,
)
from loopscope.debug.progress import Progress, held_bytes, place
from loopscope.debug.result import PrintedLine, Result, as_public, lines
from loopscope.errors import AddressError, ValueUnavailable
from loopscope.executor.machine.limits import Limits
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.plan import Plan, Program
from loopscope.executor.plan.slots import Slot
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.ir.address import Address
from loopscope.ir.model import Model
from loopscope.timeline.run_values import RunValues
from loopscope.timeline.timeline import ControlFlow, ControlFlowRecord, Moment, Timeline


def expect_run(value: object, taker: str) -> None:
    """Raise ``TypeError`` if ``taker`` gets a value other than a Run, such as a Result."""
    if not isinstance(value, Run):
        raise TypeError(
            f"{taker} takes a Debugger, not {type(value).__name__}: "
            "loopscope.Debugger(model, inputs) makes one, its run() runs it"
        )


class Run:
    """One run of one model, as far as it has been computed, and the moment at the cursor."""

    def __init__(
        self, model: Model, overrides: Overrides, machine: Machine, limits: Limits
    ) -> None:
        self.model = model
        self.overrides = overrides
        """The plan, with the user's overrides."""
        self.unrounded: tuple[str, ...] = ()
        """Addresses that the rounding names but leaves unchanged, because only shapes, indices and
        trip counts follow.
        """
        self.limits = limits
        self.shapes: dict[int, tuple[int, ...]] = {}
        """Shape of each value, by slot, when a breakpoint last checked it."""
        self._begin(machine)

    def _begin(self, machine: Machine) -> None:
        self._progress = Progress(machine, self.limits)
        self._past: int | None = None
        """Step at the cursor; None for the newest one."""

    def put_back(
        self, machine: Machine, *, limit: str, endless: str, missing: frozenset[Slot]
    ) -> None:
        """Replace the computed part by that of a machine that ran elsewhere; the cursor moves to
        its newest step.

        ``limit`` and ``endless`` are the reason why it may not continue and the proof that it never
        ends. ``missing`` are slots of the outermost graph without a value, which are computed when
        requested.
        """
        self._progress = Progress.put_back(machine, self.limits, limit, endless, missing)
        self._past = None

    @property
    def plan(self) -> Plan:
        return self.overrides.plan

    # -- progress of the computation

    @property
    def machine(self) -> Machine:
        """Machine of the run, at the first step that is not computed yet."""
        return self._progress.machine

    @property
    def state(self) -> DebuggerState:
        """State of the run as a whole, independent of the cursor."""
        return self._progress.state

    @property
    def failure(self) -> str | None:
        """The reason why the run failed, or the limit that it reached; None otherwise."""
        return self.machine.failure or self._progress.limit or None

    @property
    def out_of_memory(self) -> bool:
        """True if the failed operation ran out of memory."""
        return self.machine.out_of_memory

    @property
    def endless(self) -> str | None:
        """The proof that the innermost loop open at the newest step never ends; None if it is not
        proved.
        """
        return self._progress.endless or None

    @property
    def failed_address(self) -> str | None:
        """Address of the operation that failed."""
        return place(self.machine) if self.machine.state == "failed" else None

    @property
    def steps(self) -> int:
        """Number of steps that have run so far."""
        return self._progress.steps

    @property
    def timeline(self) -> Timeline:
        """The order of everything that has run."""
        return self._progress.timeline

    @property
    def values(self) -> RunValues:
        """Values of the run, by graph, row and slot."""
        return self._progress.values

    @property
    def held_bytes(self) -> int:
        """Approximate bytes that the run holds, without constants, which belong to the model."""
        return held_bytes(self.machine, self.values)

    @property
    def control_flow(self) -> ControlFlow:
        """Records of everything that has run so far."""
        return self._progress.control_flow

    @property
    def result(self) -> Result:
        """Outputs and control flow of the run."""
        self.values.complete(self.plan.main.results.values())
        return Result(self.machine)

    # -- cursor

    @property
    def position(self) -> Position:
        """The moment at the cursor."""
        return Position(self.timeline, self._past)

    @property
    def moment(self) -> Moment:
        """Open graphs at the cursor, outermost first."""
        return self.position.moment

    @property
    def cursor(self) -> Cursor:
        """The moment at the cursor: what runs next, and what ran last."""
        step = self.steps if self._past is None else self._past
        if self._past is None and self.machine.state == "finished":
            return Cursor(
                step=step, address="", kind="finished", previous=self._address_before(step)
            )
        if self._past is None:
            address, kind = next_of(frontier(self.machine))
            self._progress.next_address = address
        else:
            address, kind = next_of(levels_of(self.moment))
        return Cursor(step=step, address=address, kind=kind, previous=self._address_before(step))

    def _address_before(self, step: int) -> str:
        if step == 0:
            return ""
        if self._past is None:
            return self._progress.last_address or self.timeline.latest
        return next_of(levels_of(self.timeline.moment(step - 1)))[0]

    def frames(self) -> tuple[OpenGraph, ...]:
        """Return the open graphs at the cursor, outermost first."""
        return lookup.open_graphs(self.position)

    def statuses(self) -> dict[str, Status]:
        """Return the status of every node at the cursor, by static address."""
        return self.scene().statuses(self.machine.state == "failed" and self._past is None)

    def scene(self) -> Scene:
        """Return the visible execution of each graph at the cursor."""
        return self.position.scene

    @property
    def prints(self) -> bool:
        """True if the model has a Print."""
        return self.plan.prints

    def printed(self, limit: int) -> tuple[PrintedLine, ...]:
        """Return the last ``limit`` lines that the run printed before the cursor."""
        return lines(self.timeline, self.values, self.cursor.step, limit)

    # -- values and records

    def value(self, address: str) -> np.ndarray:
        """Return the value at an address, read-only.

        Raises ``ValueUnavailable`` with the reason if the value does not exist, and
        ``AddressError`` for an unknown address. Omitted iterations are those at the cursor.
        """
        program, row, slot = lookup.locate(self.position, Address.parse(address))
        return as_public(self.values.get(self.timeline, program, row, slot))

    def record(self, address: str) -> ControlFlowRecord | None:
        """Return the record of one execution of a Loop, TensorIterator or If by its address; None
        before it begins.
        """
        try:
            return self.control_flow.of(*lookup.region_at(self.position, Address.parse(address)))
        except ValueUnavailable:
            return None

    def rows_of(self, address: Address) -> tuple[Program, int]:
        """Return the graph that contains the node of an address, and the row that the address
        names.
        """
        return lookup.graph_row(self.position, address)

    def iteration_rows(self, address: Address) -> tuple[Program, Slot, int, int]:
        """Return the program, the slot, the first row and the end row of a place over all
        iterations of the innermost loop.
        """
        return lookup.iteration_rows(self.position, address)

    def has_run(self, program: Program, row: int, slot: Slot) -> bool:
        """Return True if the instruction that fills a slot has run in a row that has begun."""
        return lookup.has_run(self.timeline, program, row, slot)

    def resolve(self, place: str) -> str | None:
        """Return the address at the cursor of a place with omitted iterations; None before it
        runs.
        """
        return self.resolver()(place)

    def resolver(self) -> Callable[[str], str | None]:
        """Return ``resolve`` for many places at the current cursor, which computes the scene only
        once.
        """
        position = self.position

        def resolve(place: str) -> str | None:
            try:
                return lookup.resolve(position, place)
            except (ValueUnavailable, AddressError):
                return None

        return resolve
