"""Choice between stepping and generated code, loop by loop, while a run executes."""

from __future__ import annotations

from collections.abc import Callable

from loopscope.executor.codegen import tiering, whole_graph
from loopscope.executor.machine.execute import computing
from loopscope.executor.machine.machine import Machine
from loopscope.ops.kernel_checks import at_most, at_once


def run(machine: Machine, reached: Callable[[], bool] | None = None) -> None:
    """Run the machine to the end, or until ``reached`` returns True.

    ``reached`` is called between steps. A loop that runs in generated code counts as one step; it
    ends before an iteration that the run must stop at. ``Paused`` and ``Failure`` leave the machine
    at the instruction where they occur, and the run can be continued after a pause.
    """
    machine.control.begin()
    try:
        with (
            computing(),
            at_most(machine.control.most_elements),
            at_once(machine.control.elements_at_once),
        ):
            if reached is None:
                whole_graph.run(machine, _run_inside)
            while machine.state == "paused" and not (reached is not None and reached()):
                if reached is None and _can_run_straight(machine) and machine.run_straight():
                    continue
                machine.control.check(machine.recording.bytes)
                advance(machine, generated=True)
    finally:
        machine.control.end()


def _run_inside(machine: Machine) -> None:
    """Run the next region of the outermost graph to its end, within the limits of the run."""
    outermost = machine.frames[0]
    target = outermost.position + 1
    while outermost.position < target:
        is_inside = len(machine.frames) > 1
        if is_inside and _can_run_straight(machine) and machine.run_straight(outside=1):
            continue
        machine.control.check(machine.recording.bytes)
        advance(machine, generated=True)


def _can_run_straight(machine: Machine) -> bool:
    """Return False at the beginning of an iteration, where generated code may take over."""
    frame = machine.frames[-1]
    return frame.region is None or frame.position > 0


def run_region(machine: Machine) -> None:
    """Run the next region of the outermost frame to its end. The frame may belong to any graph."""
    outermost = machine.frames[0]
    target = outermost.position + 1
    machine.step()
    while len(machine.frames) > 1 or outermost.position < target:
        advance(machine, generated=True)


def advance(machine: Machine, *, generated: bool) -> None:
    """Run one step or, with ``generated``, the rest of the top loop in generated code if that is
    worthwhile.
    """
    frame = machine.frames[-1]
    if (
        generated
        and frame.region is not None
        and not machine.plan.lacks_weights  # an operation without its weights reports that itself
        and tiering.is_worth_generating(machine, frame)
        and machine.next_stop(frame.iteration) != frame.iteration
    ):
        with at_once(None):
            tiering.run(machine, frame, frame.region)
    else:
        machine.step()
