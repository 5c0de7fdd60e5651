"""Running a model from its inputs to its outputs, again and again with its variables kept."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from engine.debug.door import outward
from engine.debug.inputs import Inputs, bind, fitted
from engine.debug.printed import prints
from engine.debug.result import Result, RunStopped
from engine.errors import InputError, listed, shorten
from engine.ir.element_type import ElementType
from engine.ir.model import Model, expect_model
from engine.ir.shape import DYNAMIC, PartialShape
from engine.ir.walk import nodes
from engine.ops.catalogue import CATALOGUE, Catalogue
from engine.ops.stored import packed, unpacked, write
from engine.run import drive
from engine.run.machine.limits import Limits, Paused
from engine.run.machine.machine import Failure, Machine
from engine.run.plan.numbers import Slot
from engine.run.plan.overrides import Overrides
from engine.run.plan.plan import settle
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

    @property
    def variable_names(self) -> tuple[str, ...]:
        """The ids of all variables of the model."""
        return tuple(self._plan.variables)

    def put(self, values: Mapping[str, ArrayLike]) -> None:
        """Gives variables values, by id; ``InputError`` for one that the model has not, and for another element type or shape."""
        declared = _declared(self._plan.model)
        for name, value in values.items():
            if name not in self._plan.variables:
                known = listed(list(self._plan.variables)) or "none"
                raise InputError(f"there is no variable {shorten(repr(name), 60)} in the model: there are {known}")
            self._variables[self._plan.variables[name]] = settle(fitted(value, *declared.get(name, (None, DYNAMIC)), f"variable {name!r}"))

    def save(self, path: str | Path) -> None:
        """Writes the variables that have a value to an ``.npz`` file, by id, in the form of ``engine/ops/stored.py``."""
        write(Path(path), packed(self.variables))

    def load(self, path: str | Path) -> None:
        """Takes variables from a file that ``save`` has written; those that it does not hold stay. Errors as those of ``put``."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                values = unpacked({key: stored[key] for key in stored.files})
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        except Exception:  # numpy and zipfile raise whatever a broken file makes them stumble over
            raise InputError(f"{path} is not an .npz file of plain arrays, as Session.save() writes it") from None
        self.put(values)

    def run(self, inputs: Inputs = None, *, limits: Limits | None = None, seed: int | None = None) -> Result:
        """As ``engine.run``, with this session's variables."""
        keeps = prints(self._plan)  # its lines are told from what is recorded
        record = Record() if keeps else NOTHING
        machine = start(Overrides(self._plan), inputs, limits or Limits(), record, seed, self._variables, keeps=keeps)
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


def _declared(model: Model) -> dict[str, tuple[ElementType | None, PartialShape]]:
    """What nodes of a model declare of its variables, by id."""
    found: dict[str, tuple[ElementType | None, PartialShape]] = {}
    for _, node in nodes(model):
        name, type, shape = (node.attributes.get(key) for key in ("variable_id", "variable_type", "variable_shape"))
        if isinstance(name, str) and isinstance(type, str) and isinstance(shape, str):
            found[name] = ElementType(type) if type in {one.value for one in ElementType} else None, PartialShape.parse(shape)
    return found


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
