"""Comparison of two runs of a model: the first difference in control flow or in a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from loopscope.debug.run import Run, expect_run
from loopscope.errors import EngineError
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Program
from loopscope.ir.model import IF
from loopscope.ir.readable import readable
from loopscope.ops.values import as_array

_MAX_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class RunDifference:
    """First difference between two runs of one model."""

    kind: Literal["value", "shape", "branch", "iterations", "length"]
    step: int
    """Step number in both runs."""
    address: str
    one: str
    """Description of the first run's value or decision."""
    other: str

    @property
    def sentence(self) -> str:
        """Readable description of the difference."""
        place = readable(self.address)
        match self.kind:
            case "value" | "shape":
                return f"The runs differ first at {place}: {self.one} against {self.other}."
            case "branch":
                return (
                    f"Up to here all values that decide are equal; "
                    f"{place} takes {self.one} in one run, {self.other} in the other."
                )
            case "iterations":
                return f"{place} parts the runs: {self.one} in one, {self.other} in the other."
            case "length":
                return f"One run ends at {place}: {self.one} against {self.other}."


@dataclass(frozen=True, slots=True)
class Comparison:
    """First differences between two runs, None where they agree."""

    first_value: RunDifference | None
    first_control_flow: RunDifference | None
    compared_steps: int


def compare(left: Run, right: Run, *, tolerance: float = 0.0) -> Comparison:
    """Compare the values of two runs of one model step by step until their control flow differs.

    Values are equal if they differ by at most ``tolerance`` (absolute and relative); NaN equals
    NaN. Raise ``EngineError`` if the runs are of different models.
    """
    for run in (left, right):
        expect_run(run, "loopscope.compare")
    if left.plan.main is not right.plan.main:
        raise EngineError("the runs are of different models: loopscope.drift compares those")
    control = first_control_flow(left, right)
    end = min(left.steps, right.steps, _MAX_STEPS)
    if control is not None:
        end = min(end, control.step)
    for step in range(end):
        difference = _difference_at(left, right, step, tolerance)
        if difference is not None:
            return Comparison(difference, control, step + 1)
    return Comparison(None, control, end)


def _difference_at(left: Run, right: Run, step: int, tolerance: float) -> RunDifference | None:
    moment = left.timeline.moment(step)
    level = moment[-1]
    if level.position == len(level.program.instructions):
        return None
    instruction = level.program.instructions[level.position]
    if instruction.region is not None:
        return None
    row = right.timeline.moment(step)[-1].row
    address = f"{left.timeline.address(level.program, level.row)}/{instruction.label}"
    for output, slot in enumerate(instruction.outputs):
        if not left.has_run(level.program, level.row, slot):
            continue
        left_array = as_array(left.values.get(left.timeline, level.program, level.row, slot))
        right_array = as_array(right.values.get(right.timeline, level.program, row, slot))
        place = f"{address}:{output}" if output else address
        if left_array.shape != right_array.shape or left_array.dtype != right_array.dtype:
            return RunDifference(
                "shape",
                step,
                place,
                f"{left_array.dtype}{list(left_array.shape)}",
                f"{right_array.dtype}{list(right_array.shape)}",
            )
        if not _equal(left_array, right_array, tolerance):
            return RunDifference(
                "value", step, place, *_describe_elements(left_array, right_array, tolerance)
            )
    return None


def _equal(left: np.ndarray, right: np.ndarray, tolerance: float) -> bool:
    if left.dtype.names or left.dtype == np.dtype(object):
        return left.shape == right.shape and bool(
            left.reshape(-1).tolist() == right.reshape(-1).tolist()
        )
    if left.dtype.kind not in "fV":
        return bool(np.array_equal(left, right))
    return bool(
        np.allclose(
            left.astype(np.float64),
            right.astype(np.float64),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )
    )


def _describe_elements(left: np.ndarray, right: np.ndarray, tolerance: float) -> tuple[str, str]:
    """Describe the first differing element of both arrays."""
    if left.ndim == 0:
        return _text(left), _text(right)
    pairs = zip(left.reshape(-1), right.reshape(-1), strict=True)
    position = next(
        index
        for index, (left_element, right_element) in enumerate(pairs)
        if not _equal(np.asarray(left_element), np.asarray(right_element), tolerance)
    )
    place = [int(index) for index in np.unravel_index(position, left.shape)]
    return f"{_text(left.reshape(-1)[position])} at {place}", _text(right.reshape(-1)[position])


def _text(element: Any) -> str:
    """Return an element as text; booleans in lower case as in models."""
    return str(element).lower() if np.asarray(element).dtype == bool else str(element)


def first_control_flow(left: Run, right: Run) -> RunDifference | None:
    """Return the first loop with a different iteration count, or If with a different branch, in
    execution order.
    """
    step = _first_difference(left, right)
    if step is None:
        if left.steps == right.steps or "paused" in (left.state, right.state):
            return None
        return RunDifference(
            "length",
            min(left.steps, right.steps),
            "the end",
            f"{left.steps:,} steps",
            f"{right.steps:,} steps",
        )
    return _decision(left, right, step)


def _first_difference(left: Run, right: Run) -> int | None:
    """Return the first step at which the two runs are at different nodes, None if there is none."""
    steps = [
        _first_different_decision(left, right, program, instruction)
        for program, instruction in left.plan.regions
    ]
    return min((step for step in steps if step is not None), default=None)


def _first_different_decision(
    left: Run, right: Run, program: Program, instruction: Instruction
) -> int | None:
    """Return the step of the first run after which a loop or If was first decided differently.

    Return None if it never was.
    """
    region = instruction.region
    executions = left.timeline.executions
    if isinstance(region, LoopRegion):
        row, counts = _first_unequal(
            _iterations_begun(left, region), _iterations_begun(right, region)
        )
        if row is None or not _is_over(left if counts[0] < counts[1] else right, region, row):
            return None
        if min(counts):
            last = executions.rows_of(region, row)[0] + min(counts) - 1
            return left.timeline.step_at(region.program, last, len(region.program.instructions)) + 1
    elif isinstance(region, IfRegion):
        row, _ = _first_unequal(executions.taken(region), right.timeline.executions.taken(region))
        if row is None:
            return None
    else:
        return None
    return left.timeline.step_at(program, row, program.instructions.index(instruction)) + 1


def _iterations_begun(run: Run, region: LoopRegion) -> np.ndarray:
    """Return the number of iterations begun in each execution of a loop."""
    executions = run.timeline.executions
    begun = np.diff(executions.loop_starts(region))
    frame = executions.open.get(region.program.index)
    return begun if frame is None else np.append(begun, frame.iteration + 1)


def _is_over(run: Run, region: LoopRegion, row: int) -> bool:
    return row + 1 < len(run.timeline.executions.loop_starts(region))


def _first_unequal(left: np.ndarray, right: np.ndarray) -> tuple[int | None, tuple[int, int]]:
    """Return the first index at which two sequences differ, up to the shorter length, and both
    values there.
    """
    length = min(len(left), len(right))
    indices = np.flatnonzero(left[:length] != right[:length])
    return (
        (int(indices[0]), (int(left[indices[0]]), int(right[indices[0]])))
        if len(indices)
        else (None, (0, 0))
    )


def _decision(left: Run, right: Run, step: int) -> RunDifference:
    """Describe the decision that differed in the step before the runs diverged."""
    before = left.timeline.moment(max(step - 1, 0))
    level = before[-1]
    graph = left.timeline.address(level.program, level.row)
    if level.position < len(level.program.instructions):
        instruction = level.program.instructions[level.position]
        address = f"{graph}/{instruction.label}"
        words = [_describe_entry(run, step) for run in (left, right)]
        kind: Literal["branch", "iterations"] = (
            "branch" if instruction.node.type == IF else "iterations"
        )
        return RunDifference(kind, step - 1, address, words[0], words[1])
    ended = [_describe_iterations(run, step - 1) for run in (left, right)]
    return RunDifference("iterations", step - 1, graph.rpartition("[")[0], ended[0], ended[1])


def _describe_entry(run: Run, step: int) -> str:
    """Describe what a run entered at a node with bodies that began in the previous step."""
    inner = run.timeline.moment(step)[-1]
    if inner.program.parent is None or inner.position:
        return "no iteration"
    return "its first iteration" if inner.iteration == 0 else inner.program.branch_name


def _describe_iterations(run: Run, step: int) -> str:
    """Describe the iteration count of the loop that the run is in at a step."""
    levels = run.timeline.moment(step)
    inner, outer = levels[-1], levels[-2]
    record = run.control_flow.of(
        outer.program, outer.row, outer.program.instructions[outer.position]
    )
    count, prefix = (
        ((inner.iteration or 0) + 1, "more than ")
        if record.ended_by is None
        else (record.iterations or 0, "")
    )
    return f"{prefix}{count:,} iteration{'' if count == 1 else 's'}"
