"""Drives a run: decides, loop by loop, between stepping and generated code."""

from __future__ import annotations

from collections.abc import Callable

from loopscope.executor.codegen import tiering
from loopscope.executor.machine.execute import computing
from loopscope.executor.machine.machine import Machine
from loopscope.ops.bounds import at_most, at_once


def run(machine: Machine, there: Callable[[], bool] | None = None) -> None:
    """Runs to the end, or until ``there``. ``Paused`` and ``Failure`` leave the machine at the
    place, and it can go on after a pause.

    ``there`` is asked between steps; what generated code runs is one, which ends where an iteration
    is to be looked into.
    """
    machine.control.begin()
    try:
        with (
            computing(),
            at_most(machine.control.most_elements),
            at_once(machine.control.elements_at_once),
        ):
            while machine.state == "paused" and not (there is not None and there()):
                if there is None and _goes_straight(machine) and machine.run_straight():
                    continue
                machine.control.check(machine.recording.bytes)
                advance(machine, generated=True)
    finally:
        machine.control.end()


def _goes_straight(machine: Machine) -> bool:
    """Not at the beginning of an iteration, from where generated code may go on."""
    frame = machine.frames[-1]
    return frame.region is None or frame.position > 0


def run_region(machine: Machine) -> None:
    """Runs the one region that is next in the outermost frame, which may be any graph's, and
    stops after it.
    """
    outermost = machine.frames[0]
    target = outermost.position + 1
    machine.step()
    while len(machine.frames) > 1 or outermost.position < target:
        advance(machine, generated=True)


def advance(machine: Machine, *, generated: bool) -> None:
    """One step, or (``generated``) the rest of the loop on top through generated code where that
    is worth while.
    """
    frame = machine.frames[-1]
    if (
        generated
        and frame.region is not None
        and not machine.plan.lacks_weights  # each operation says so where it meets one
        and tiering.is_worth_generating(machine, frame)
        and machine.next_stop(frame.iteration) != frame.iteration
    ):
        with at_once(None):
            tiering.run(machine, frame, frame.region)
    else:
        machine.step()
