"""Running a model once: for its outputs, or for a few of its tensors and only what they need."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from engine.debug.debugger import Debugger
from engine.debug.door import owned
from engine.debug.inputs import Inputs, bind
from engine.debug.result import Result
from engine.debug.session import Session, run_stopped
from engine.errors import AddressError, shorten
from engine.ir.model import Model, expect_model
from engine.ir.outermost import layer_named, tensor_named
from engine.ir.prune import pruned
from engine.ops.catalogue import CATALOGUE, Catalogue
from engine.run.machine.limits import Limits
from engine.run.machine.machine import Machine
from engine.run.record.recording import Record


class Fetched(Result):
    """A run for some tensors: ``outputs`` are those, in the order in which they were asked for, ``named`` has them by the same names."""

    def __init__(self, machine: Machine, arrays: Mapping[str, np.ndarray], order: Sequence[str]) -> None:
        super().__init__(machine)
        self._arrays = arrays
        self._order = order

    @cached_property
    def outputs(self) -> tuple[np.ndarray, ...]:
        return tuple(self._arrays[name] for name in self._order)

    @cached_property
    def named(self) -> Mapping[str, np.ndarray]:
        return self._arrays


def run(
    model: Model,
    inputs: Inputs = None,
    fetches: Sequence[str] | None = None,
    *,
    limits: Limits | None = None,
    seed: int | None = None,
    catalogue: Catalogue = CATALOGUE,
) -> Result:
    """Runs a model once, from fresh variables.

    ``inputs``: arrays by tensor name, Parameter name or position, or a sequence. ``seed`` fixes random operations whose own seeds are
    0. Raises ``InvalidModel`` (the model has errors), ``InputError``, or ``RunStopped`` (an operation failed, or a limit was reached).

    ``fetches``: the tensors that the result's ``outputs`` are, instead of the model's own; only what they need runs, and inputs that
    they do not need may be left out. Each is a tensor name, a node name (``Add_3``, ``Split:1``) or an address; inside a body an
    address with its iterations (``main/loop_7[2]/body/Add_3``; the last one where they are left out). ``AddressError`` for a fetch
    that names nothing or several tensors, ``ValueUnavailable`` for an iteration that did not run.
    """
    expect_model(model, "engine.run")
    if fetches is None:
        return Session(model, catalogue=catalogue).run(inputs, limits=limits, seed=seed)
    names = _names(fetches)
    sources = {name: source for name in names if (source := tensor_named(model.graph, name)) is not None}
    inner = {name: layer_named(model.graph, name) for name in names if name not in sources}
    part = pruned(model, list(sources.items()), set(inner.values()))
    arrays = bind(model, inputs, needed={node.id for node in part.graph.parameters})
    feeds = [arrays[node.id] for node in part.graph.parameters]
    if not inner:
        result = Session(part, catalogue=catalogue).run(feeds, limits=limits, seed=seed)
        return Fetched(result.machine, dict(zip(sources, result.outputs, strict=True)), names)
    record, entropy = Record(everything=True), secrets.randbits(62) if seed is None else seed
    debugger = Debugger(part, feeds, limits=limits, record=record, seed=entropy, catalogue=catalogue)
    debugger.run()
    if debugger.state != "finished":
        raise run_stopped(debugger.machine, debugger.failure or "", "limit" if debugger.state == "limit" else "error")
    found = dict(zip(sources, debugger.result.outputs, strict=True))
    return Fetched(debugger.machine, found | {name: owned(debugger.value(name)) for name in inner}, names)


def _names(fetches: object) -> list[str]:
    names = list[str]()
    for one in [fetches] if isinstance(fetches, str) or not isinstance(fetches, Iterable) else fetches:
        if not isinstance(one, str):
            raise AddressError(f"fetches are tensor names, node names or addresses, as text, not {shorten(repr(one), 60)}")
        names.append(one)
    return names
