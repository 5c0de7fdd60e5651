"""Running a model from its inputs to its outputs, again and again with its variables kept."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np

from engine.debug.door import outward
from engine.debug.inputs import Inputs, bind
from engine.debug.result import Result, RunStopped
from engine.errors import InputError, listed, shorten
from engine.ir.model import Model, expect_model
from engine.ops.catalogue import CATALOGUE, Catalogue
from engine.run import drive
from engine.run.machine.limits import Limits, Paused
from engine.run.machine.machine import Failure, Machine
from engine.run.plan.numbers import Slot
from engine.run.plan.overrides import Overrides
from engine.run.plan.planner import plan_of
from engine.run.record.endings import StopCause
from engine.run.record.recording import NOTHING, Record
from engine.trace.timeline import Timeline


class Session:
    """Keeps the variables of ReadValue and Assign from one run to the next, until it is reset."""

    def __init__(self, model: Model, *, catalogue: Catalogue = CATALOGUE) -> None:
        expect_model(model, "engine.Session")
        self._plan = plan_of(model, catalogue)
        self._variables: dict[Slot, Any] = {}
        self._machine: Machine | None = None

    def __repr__(self) -> str:
        return f"<Session of {shorten(self._plan.model.name)!r}, variables that have a value: {listed(list(self.variables)) or 'none'}>"

    def reset(self) -> None:
        """Forgets all variables: the next run reads their initial values."""
        self._variables.clear()

    @property
    def variables(self) -> dict[str, np.ndarray]:
        """The variables that have a value, by id; read-only."""
        return {name: outward(self._variables[slot]) for name, slot in self._plan.variables.items() if slot in self._variables}

    def run(self, inputs: Inputs = None, *, limits: Limits | None = None, seed: int | None = None) -> Result:
        """As ``engine.run``, with this session's variables."""
        machine = start(Overrides(self._plan), inputs, limits or Limits(), NOTHING, seed, self._variables, keeps=False)
        self._machine = machine
        try:
            drive.run(machine)
        except Paused as pause:
            raise run_stopped(machine, pause.message, pause.cause) from None
        except Failure as failure:
            raise run_stopped(machine, str(failure), "error") from failure.__cause__
        finally:
            self._machine = None
        for slot in self._plan.variables.values():
            if machine.values[slot] is not None:
                self._variables[slot] = machine.values[slot]
        return Result(machine)

    def stop(self) -> None:
        """Stops the run that is under way in another thread, or that a signal has interrupted: it raises ``RunStopped`` at once."""
        if self._machine is not None:
            self._machine.control.stop.set()


def start(
    overrides: Overrides,
    inputs: Inputs,
    limits: Limits,
    record: Record,
    seed: int | None,
    variables: Mapping[Slot, Any] | None = None,
    *,
    keeps: bool = True,
) -> Machine:
    """A machine at the beginning of a run; one that does not keep values gives outputs and control flow, and nothing else."""
    for given, kind in ((limits, Limits), (record, Record)):
        if not isinstance(given, kind):
            raise InputError(f"{shorten(repr(given))} is given where an engine.{kind.__name__} is expected")
    plan = overrides.plan
    arrays = bind(plan.model, inputs)
    slots = {plan.main.parameters[layer]: array for layer, array in arrays.items()}
    entropy = secrets.randbits(62) if seed is None else _whole(seed)
    return Machine.start(overrides, slots, limits=limits, record=record, entropy=entropy, variables=variables, keeps=keeps)


def _whole(seed: SupportsIndex) -> int:
    """A seed as Python's own number, which no arithmetic overflows."""
    try:
        return operator.index(seed)
    except TypeError:
        raise InputError(f"the seed is {shorten(repr(seed), 60)}, expected a whole number") from None


def run_stopped(machine: Machine, message: str, cause: StopCause) -> RunStopped:
    """The error for a run that did not finish, with everything up to there."""
    address = place(machine)
    return RunStopped(f"{address}: {message}", result=Result(machine, cause), address=address, cause=cause)


def place(machine: Machine) -> str:
    """The address of what the machine runs next."""
    timeline = Timeline(machine)
    frame = machine.frames[-1]
    address = timeline.address(frame.program, timeline.executions.rows[frame.program.index] - 1)
    if frame.position < len(frame.program.instructions):
        return f"{address}/{frame.program.instructions[frame.position].label}"
    return address
