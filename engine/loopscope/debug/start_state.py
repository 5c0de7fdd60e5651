"""A machine at the beginning of a run, and the error for a run that did not come to its end."""

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
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.record.endings import StopCause
from loopscope.executor.record.recording import Record
from loopscope.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """What a run begins with, so that it can begin again."""

    values: Mapping[Slot, Any]
    """Inputs, and other tensors that are given instead of computed."""
    limits: Limits
    record: Record
    seed: int
    part: bool
    """Whether only what some tensors need runs."""


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
    """A machine at the beginning of a run, with the values of some slots.

    One that does not keep values gives outputs and control flow, and nothing else.
    """
    for given, kind in ((limits, Limits), (record, Record)):
        if not isinstance(given, kind):
            raise InputError(
                f"{shorten(repr(given))} is given where an loopscope.{kind.__name__} is expected"
            )
    entropy = secrets.randbits(62) if seed is None else _whole(seed)
    return Machine.start(
        overrides,
        values,
        limits=limits,
        record=record,
        entropy=entropy,
        variables=variables,
        keeps=keeps,
    )


def _whole(seed: SupportsIndex) -> int:
    """A seed as Python's own number, which no arithmetic overflows."""
    try:
        return operator.index(seed)
    except TypeError:
        raise InputError(
            f"the seed is {shorten(repr(seed), 60)}, expected a whole number"
        ) from None


def run_stopped(machine: Machine, message: str, cause: StopCause) -> RunStopped:
    """The error for a run that did not finish, with everything up to there."""
    address = place(machine)
    return RunStopped(
        f"{address}: {message}", result=Result(machine, cause), address=address, cause=cause
    )


def place(machine: Machine) -> str:
    """The address of what the machine runs next."""
    timeline = Timeline(machine)
    frame = machine.frames[-1]
    address = timeline.address(frame.program, timeline.executions.rows[frame.program.index] - 1)
    if frame.position < len(frame.program.instructions):
        return f"{address}/{frame.program.instructions[frame.position].label}"
    return address
