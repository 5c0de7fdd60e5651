"""Runs of a model for its outputs or some of its tensors.

A run is a single one, or one of a session with persistent variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from loopscope.checks.diagnostic import InvalidModel
from loopscope.debug.breakpoints import Breakpoint
from loopscope.debug.inputs import Inputs, bind, convert_to
from loopscope.debug.position import frontier
from loopscope.debug.prepare import Fetch, FetchedTensor, TensorLike, each_fetch, resolve_fetches
from loopscope.debug.progress import run_stopped, start
from loopscope.debug.result import Fetched, Result, as_public, copy_public
from loopscope.debug.run import Run
from loopscope.debug.stop_conditions import matches
from loopscope.errors import InputError, listed, shorten
from loopscope.executor import drive
from loopscope.executor.machine.limits import Limits, Paused
from loopscope.executor.machine.machine import Failure, Machine
from loopscope.executor.plan.optimisation_flags import EVERYTHING, Optimise
from loopscope.executor.plan.planner import plan_of
from loopscope.executor.plan.slots import ProgramIndex, Slot, settle
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import NOTHING, Record
from loopscope.ir.address import nodes
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Model, expect_model
from loopscope.ir.named_tensors import layer_named, pruned, tensor_named
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.stored import packed, stored_arrays, unpacked, write
from loopscope.replaced_file import replaced_file


class Session:
    """Runs of one model that preserve the variables of ReadValue and Assign until a reset."""

    def __init__(
        self, model: Model, *, optimise: Optimise = EVERYTHING, catalogue: Catalogue = CATALOGUE
    ) -> None:
        expect_model(model, "loopscope.Session")
        self._plan = plan_of(model, catalogue, optimise)
        self._variables: dict[Slot, Any] = {}
        self._machine: Machine | None = None

    def __repr__(self) -> str:
        names = listed(list(self.variables)) or "none"
        name = shorten(self._plan.model.name)
        return f"<Session of {name!r}, variables that have a value: {names}>"

    def reset(self) -> None:
        """Forget all variables, so that the next run reads their initial values."""
        self._variables.clear()

    @property
    def variables(self) -> dict[str, np.ndarray]:
        """Variables that have a value, by id; read-only."""
        return {
            name: as_public(self._variables[slot])
            for name, slot in self._plan.variables.items()
            if slot in self._variables
        }

    @property
    def variable_names(self) -> tuple[str, ...]:
        """Ids of all variables of the model."""
        return tuple(self._plan.variables)

    def put(self, values: Mapping[str, ArrayLike]) -> None:
        """Set variables by id; ``InputError`` for an unknown variable, or for another element type
        or shape.
        """
        declared = _declared_variables(self._plan.model)
        for name, value in values.items():
            if name not in self._plan.variables:
                known_names = listed(list(self._plan.variables)) or "none"
                raise InputError(
                    f"there is no variable {shorten(repr(name), 60)} in the model: "
                    f"there are {known_names}"
                )
            self._variables[self._plan.variables[name]] = settle(
                convert_to(value, *declared.get(name, (None, DYNAMIC)), f"variable {name!r}")
            )

    def save(self, path: str | Path) -> None:
        """Write the variables that have a value to an ``.npz`` file, by id, in the format of
        ``engine/loopscope/ops/stored.py``.
        """
        with replaced_file(path) as file:
            write(file, packed(self.variables))

    def load(self, path: str | Path) -> None:
        """Read variables from a file that ``save`` has written. Other variables are unchanged.
        Raises the errors of ``put``.
        """
        try:
            values = unpacked(stored_arrays(path))
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None
        self.put(values)

    def run(
        self,
        inputs: Inputs = None,
        fetches: Fetch | Sequence[Fetch] | None = None,
        *,
        limits: Limits | None = None,
        seed: int | None = None,
    ) -> Result:
        """Run the model as ``loopscope.run`` does, with this session's variables.

        With ``fetches`` a variable is assigned only if a fetch needs it.
        """
        request = resolve_fetches(self._plan, inputs, fetches)
        # Printed lines are reconstructed from the recording.
        keeps = request.ends_early or request.plan.prints
        record = Record() if keeps else NOTHING
        machine = start(
            Overrides(request.plan),
            request.values,
            limits or Limits(),
            record,
            seed,
            self._variables,
            keeps=keeps,
        )
        self._machine = machine
        try:
            drive.run(
                machine, _completion_test(machine, request.places) if request.ends_early else None
            )
        except Paused as pause:
            raise run_stopped(machine, pause.message, pause.cause) from None
        except Failure as failure:
            raise run_stopped(machine, str(failure), "error") from failure.__cause__
        finally:
            self._machine = None
        for slot in self._plan.variables.values():
            if machine.values[slot] is not None:
                self._variables[slot] = machine.values[slot]
        return (
            Result(machine)
            if request.places is None
            else _fetched(machine, request.places, limits or Limits())
        )

    def stop(self) -> None:
        """Stop the run in another thread, or one that a signal has interrupted; it raises
        ``RunStopped`` at once.
        """
        if self._machine is not None:
            self._machine.control.stop.set()


def _declared_variables(model: Model) -> dict[str, tuple[ElementType | None, PartialShape]]:
    """Return the declared type and shape of each variable of a model, by id."""
    types: dict[str, tuple[ElementType | None, PartialShape]] = {}
    for _, node in nodes(model):
        name, type, shape = (
            node.attributes.get(key) for key in ("variable_id", "variable_type", "variable_shape")
        )
        if isinstance(name, str) and isinstance(type, str) and isinstance(shape, str):
            types[name] = (
                ElementType(type)
                if type in {element_type.value for element_type in ElementType}
                else None,
                PartialShape.parse(shape),
            )
    return types


def _completion_test(
    machine: Machine, places: Sequence[FetchedTensor] | None
) -> Callable[[], bool] | None:
    """Return a test that all fetched tensors have been computed; None if the run may not end
    early.
    """
    moments = [place.after(machine.plan) for place in places or ()]
    remaining = [moment for moment in moments if moment is not None]
    if len(remaining) < len(moments):
        return None
    machine.looked_into = tuple(pair for moment in remaining for pair in _iterations(moment))

    def is_complete() -> bool:
        levels = frontier(machine)
        remaining[:] = [moment for moment in remaining if not matches(levels, moment)]
        return not remaining

    return is_complete


def _iterations(moment: Breakpoint) -> Iterator[tuple[ProgramIndex, int]]:
    """Yield the iteration of each loop around a moment, outermost first."""
    assert moment.program is not None
    bodies = [program for program in moment.program.around() if program.loop is not None]
    for program, iteration in zip(reversed(bodies), moment.iterations, strict=True):
        assert iteration is not None
        yield program.index, iteration


def _fetched(machine: Machine, places: Sequence[FetchedTensor], limits: Limits) -> Fetched:
    run = Run(machine.plan.model, machine.overrides, machine, limits)
    arrays = {
        place.name: copy_public(
            machine.values[place.slot] if place.address is None else run.value(place.name)
        )
        for place in places
    }
    return Fetched(machine, arrays, [place.name for place in places])


def run(
    model: Model,
    inputs: Inputs = None,
    fetches: Fetch | Sequence[Fetch] | None = None,
    *,
    limits: Limits | None = None,
    seed: int | None = None,
    optimise: Optimise = EVERYTHING,
    catalogue: Catalogue = CATALOGUE,
) -> Result:
    """Run a model once, from fresh variables. Operations that no output needs do not run, except
    Assigns.

    ``inputs`` are arrays by tensor name, Parameter name or position, or a sequence. A tensor of the
    outermost graph may also be given, by name, address or as a tensor of ``loopscope.builder``; the
    operations that compute it do not run. ``seed`` fixes random operations whose own seeds are 0.
    Raises ``InvalidModel`` (the model has errors), ``InputError``, or ``RunStopped`` (an operation
    failed, or a limit was reached).

    ``fetches`` are the tensors to return as the result's ``outputs``, instead of the model's own.
    Only what they need runs, in bodies too, and the run ends when they are computed. Inputs that
    they do not need may be left out. Each fetch is a tensor name, a node name (``Add_3``,
    ``Split:1``), an address, or a tensor of ``loopscope.builder``. A fetch inside a body is an
    address with its iterations (``main/loop_7[2]/body/Add_3``); an omitted iteration means the last
    one. Raises ``AddressError`` for a fetch that does not name exactly one tensor, and
    ``ValueUnavailable`` for an iteration that did not run.

    ``optimise`` selects the optimisations, which do not change the results.
    """
    expect_model(model, "loopscope.run")
    try:
        session = Session(model, optimise=optimise, catalogue=catalogue)
    except InvalidModel:
        if fetches is None:
            raise
        requested = list(each_fetch(fetches))
        if any(isinstance(fetch, TensorLike) for fetch in requested):
            raise
        return _run_part(
            model,
            inputs,
            [fetch for fetch in requested if isinstance(fetch, str)],
            limits,
            seed,
            optimise,
            catalogue,
        )
    return session.run(inputs, fetches, limits=limits, seed=seed)


def _run_part(
    model: Model,
    inputs: Inputs,
    names: Sequence[str],
    limits: Limits | None,
    seed: int | None,
    optimise: Optimise,
    catalogue: Catalogue,
) -> Result:
    """Run a model that has errors, which may all lie in parts that the fetches do not need."""
    graph = model.graph
    sources = {name: source for name in names if (source := tensor_named(graph, name)) is not None}
    part = pruned(
        model,
        list(sources.items()),
        {layer_named(graph, name) for name in names if name not in sources},
    )
    arrays = bind(model, inputs, needed={node.id for node in part.graph.parameters})
    feeds = [arrays[node.id] for node in part.graph.parameters]
    return Session(part, optimise=optimise, catalogue=catalogue).run(
        feeds, names, limits=limits, seed=seed
    )
