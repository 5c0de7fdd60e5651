"""Progress of a run: its start, what has been computed, and the computation of further steps."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from loopscope.debug.position import DebuggerState
from loopscope.debug.result import Result, RunStopped
from loopscope.errors import InputError, shorten
from loopscope.executor.machine.execute import computing
from loopscope.executor.machine.limits import Endless, Limits, Paused
from loopscope.executor.machine.machine import Failure, Machine
from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.planner import plans_of
from loopscope.executor.plan.slots import Slot
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import Record, StopCause
from loopscope.ir.address import graphs
from loopscope.ir.model import Model
from loopscope.object_cache import cache_by_object
from loopscope.ops.kernel_checks import at_most
from loopscope.timeline.run_values import RunValues
from loopscope.timeline.timeline import ControlFlow, Timeline


class Progress:
    """Computed part of one run, independent of the cursor."""

    def __init__(self, machine: Machine, limits: Limits) -> None:
        self.machine = machine
        self.values = RunValues(machine)
        self.limit = ""
        """The limit that the run has reached, in words; empty if it may continue."""
        self.endless = ""
        """The proof that the innermost open loop never ends; empty if it is not proved."""
        self.last_address = ""
        """Address of the last computed operation after a single step; empty if it must be looked
        up.
        """
        self.next_address = ""
        """Address at the newest step; empty if it must be looked up."""
        self._limits = limits
        self._timeline: Timeline | None = None
        self._steps: int | None = 0

    @staticmethod
    def put_back(
        machine: Machine, limits: Limits, limit: str, endless: str, missing: frozenset[Slot]
    ) -> Progress:
        """Return the progress of a run that was computed elsewhere.

        ``missing`` are slots of the outermost graph whose values are computed when requested.
        """
        progress = Progress(machine, limits)
        progress.limit, progress.endless, progress._steps = limit, endless, None
        progress.values.missing |= missing
        progress.values.is_of_a_file = True
        return progress

    @property
    def state(self) -> DebuggerState:
        if self.machine.state != "paused":
            return self.machine.state
        return "limit" if self.limit else "paused"

    @property
    def went_on(self) -> bool:
        """True if the last computation neither failed nor reached a limit."""
        return self.machine.state != "failed" and not self.limit

    @property
    def steps(self) -> int:
        if self._steps is None:
            self._steps = self.timeline.length
        return self._steps

    @property
    def timeline(self) -> Timeline:
        if self._timeline is None:
            self._timeline = Timeline(self.machine)
        return self._timeline

    @property
    def control_flow(self) -> ControlFlow:
        cause: StopCause | None = (
            "error" if self.machine.state == "failed" else "limit" if self.limit else None
        )
        return ControlFlow(self.timeline, cause, endless=bool(self.endless))

    def has_reached(self, program: Program, row: int, position: int) -> bool:
        """Return True if the run has reached or passed a position of a row."""
        executions = self.timeline.executions
        if row < executions.rows[program.index] - 1 or program.index not in executions.open:
            return True
        return executions.open[program.index].position >= position

    def step(self) -> None:
        """Compute one step of an unfinished run."""
        steps = self._steps
        self.compute(self.machine.step)
        if self.went_on and steps is not None:
            self._steps = steps + 1

    def compute(self, action: Callable[[], None]) -> None:
        """Run an action of the machine; ``state`` shows a failure or a limit. A call after a limit
        allows the same amount again.
        """
        if self.machine.state != "paused":
            return
        self.limit = self.endless = self.last_address = self.next_address = ""
        control = self.machine.control
        control.begin()
        try:
            with computing(), at_most(control.most_elements):
                if self.values.missing:
                    self.values.complete()
                action()
        except Paused as pause:
            self.limit = pause.message if pause.cause == "limit" else ""
            self.endless = pause.why if isinstance(pause, Endless) else ""
        except Failure:
            pass  # the machine's state records the failure
        finally:
            control.end()
        if self.limit:
            control.extend(self._limits)
        self._timeline = self._steps = None


_NODE_BYTES = 2000
"""Approximate bytes of a node with its ports, edges and attributes."""


def model_bytes(model: Model) -> int:
    """Return the bytes of a model: its nodes, its weights (also mapped ones), and copies that plans
    made of them.
    """
    return _file_bytes(model) + sum(plan.made_bytes for plan in plans_of(model))


@cache_by_object
def _file_bytes(model: Model) -> int:
    """Return the bytes of a model without its plans; this part never changes."""
    nodes = [node for place in graphs(model) for node in place.graph.nodes]
    return _NODE_BYTES * len(nodes) + sum(
        len(node.constant.data) for node in nodes if node.constant is not None
    )


def held_bytes(machine: Machine, values: RunValues) -> int:
    """Return the estimated bytes of slot values, collected pieces, the recording and recomputed
    values.

    The estimate is quick, also while another thread runs the machine.
    """
    constants = machine.plan.constant_numbers
    arrays: dict[int, int] = {}
    for slot, value in enumerate(machine.values):
        if isinstance(value, np.ndarray) and slot not in constants:
            while isinstance(value.base, np.ndarray):
                value = value.base
            arrays[id(value)] = value.nbytes
    return (
        sum(arrays.values())
        + machine.collected_bytes()
        + machine.recording.bytes
        + values.cached_bytes
    )


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """Data that a run begins with, so that it can be restarted."""

    values: Mapping[Slot, Any]
    """Inputs, and given values of other tensors."""
    limits: Limits
    record: Record
    seed: int
    part: bool
    """True if only the part of the model runs that some tensors need."""


def start(
    overrides: Overrides,
    values: Mapping[Slot, Any],
    limits: Limits,
    record: Record,
    seed: int | None,
    variables: Mapping[Slot, Any] | None = None,
    *,
    keeps: bool = True,
) -> Machine:
    """Return a machine at the beginning of a run, with the values of some slots.

    A machine with ``keeps=False`` returns outputs and control flow only.
    """
    for setting, kind in ((limits, Limits), (record, Record)):
        if not isinstance(setting, kind):
            raise InputError(f"expected loopscope.{kind.__name__}, got {shorten(repr(setting))}")
    if seed is not None:
        entropy = _as_integer(seed)
    else:
        entropy = secrets.randbits(62) if overrides.plan.states else 0
    return Machine.start(
        overrides,
        values,
        limits=limits,
        record=record,
        entropy=entropy,
        variables=variables,
        keeps=keeps,
    )


def _as_integer(seed: SupportsIndex) -> int:
    """Return a seed as a Python integer, which does not overflow."""
    try:
        return operator.index(seed)
    except TypeError:
        raise InputError(
            f"the seed is {shorten(repr(seed), 60)}, expected a whole number"
        ) from None


def run_stopped(machine: Machine, message: str, cause: StopCause) -> RunStopped:
    """Return the error for a run that did not finish, with everything computed before."""
    address = place(machine)
    return RunStopped(
        f"{address}: {message}", result=Result(machine, cause), address=address, cause=cause
    )


def place(machine: Machine) -> str:
    """Return the address of the operation that the machine runs next."""
    timeline = Timeline(machine)
    frame = machine.frames[-1]
    address = timeline.address(frame.program, timeline.executions.rows[frame.program.index] - 1)
    if frame.position < len(frame.program.instructions):
        return f"{address}/{frame.program.instructions[frame.position].label}"
    return address
