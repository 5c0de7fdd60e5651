"""Machine at the beginning of a run, and the error for a run that did not finish."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

from loopscope.debug.result import Result, RunStopped
from loopscope.errors import InputError, shorten
from loopscope.executor.machine.limits import Limits
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import Record, StopCause
from loopscope.timeline.timeline import Timeline


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
