"""Two runs side by side: the first place where their control flow or a value differs."""

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

_MOST_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class RunDifference:
    """One place where two runs of one model differ."""

    kind: Literal["value", "shape", "branch", "iterations", "length"]
    step: int
    """Step number of both runs."""
    address: str
    one: str
    """What the first run has there, in words."""
    other: str

    @property
    def sentence(self) -> str:
        """One readable line."""
        place = readable(self.address)
        match self.kind:
            case "value" | "shape":
                return f"The runs differ first at {place}: {self.one} against {self.other}."
            case "branch":
                return f"Up to here all values that decide are equal; {place} takes {self.one} in one run, {self.other} in the other."
            case "iterations":
                return f"{place} parts the runs: {self.one} in one, {self.other} in the other."
            case "length":
                return f"One run ends at {place}: {self.one} against {self.other}."


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs have in common and where they part; None where they do not differ."""

    first_value: RunDifference | None
    first_control_flow: RunDifference | None
    compared_steps: int


def compare(one: Run, other: Run, *, tolerance: float = 0.0) -> Comparison:
    """Compares what two runs of the same model have computed, step by step, until their control
    flow parts.

    Values are equal when they differ by at most ``tolerance`` (absolute and relative); NaN equals
    NaN. ``EngineError`` when the runs are of different models.
    """
    for run in (one, other):
        expect_run(run, "loopscope.compare")
    if one.plan.main is not other.plan.main:
        raise EngineError("the runs are of different models: loopscope.drift compares those")
    control = first_control_flow(one, other)
    end = min(one.steps, other.steps, _MOST_STEPS)
    if control is not None:
        end = min(end, control.step)
    for step in range(end):
        difference = _at(one, other, step, tolerance)
        if difference is not None:
            return Comparison(difference, control, step + 1)
    return Comparison(None, control, end)


def _at(one: Run, other: Run, step: int, tolerance: float) -> RunDifference | None:
    moment = one.timeline.moment(step)
    level = moment[-1]
    if level.position == len(level.program.instructions):
        return None
    instruction = level.program.instructions[level.position]
    if instruction.region is not None:
        return None
    row = other.timeline.moment(step)[-1].row
    address = f"{one.timeline.address(level.program, level.row)}/{instruction.label}"
    for output, slot in enumerate(instruction.outputs):
        if not one.has_run(level.program, level.row, slot):
            continue
        mine = as_array(one.values.get(one.timeline, level.program, level.row, slot))
        theirs = as_array(other.values.get(other.timeline, level.program, row, slot))
        place = f"{address}:{output}" if output else address
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return RunDifference(
                "shape",
                step,
                place,
                f"{mine.dtype}{list(mine.shape)}",
                f"{theirs.dtype}{list(theirs.shape)}",
            )
        if not _equal(mine, theirs, tolerance):
            return RunDifference("value", step, place, *_shown(mine, theirs, tolerance))
    return None


def _equal(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    if one.dtype.names or one.dtype == np.dtype(object):
        return one.shape == other.shape and bool(
            one.reshape(-1).tolist() == other.reshape(-1).tolist()
        )
    if one.dtype.kind not in "fV":
        return bool(np.array_equal(one, other))
    return bool(
        np.allclose(
            one.astype(np.float64),
            other.astype(np.float64),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )
    )


def _shown(one: np.ndarray, other: np.ndarray, tolerance: float) -> tuple[str, str]:
    """The first differing element of each."""
    if one.ndim == 0:
        return _text(one), _text(other)
    pairs = zip(one.reshape(-1), other.reshape(-1), strict=True)
    at = next(
        index
        for index, (mine, theirs) in enumerate(pairs)
        if not _equal(np.asarray(mine), np.asarray(theirs), tolerance)
    )
    place = [int(index) for index in np.unravel_index(at, one.shape)]
    return f"{_text(one.reshape(-1)[at])} at {place}", _text(other.reshape(-1)[at])


def _text(element: Any) -> str:
    """As models spell it: ``true``, not ``True``."""
    return str(element).lower() if np.asarray(element).dtype == bool else str(element)


def first_control_flow(one: Run, other: Run) -> RunDifference | None:
    """The first loop that ends after different counts, or If that takes different branches, in
    the order in which they are decided.
    """
    step = _first_difference(one, other)
    if step is None:
        if one.steps == other.steps or "paused" in (one.state, other.state):
            return None
        return RunDifference(
            "length",
            min(one.steps, other.steps),
            "the end",
            f"{one.steps:,} steps",
            f"{other.steps:,} steps",
        )
    return _decision(one, other, step)


def _first_difference(one: Run, other: Run) -> int | None:
    """The first step at which the two runs are at different places; up to the first different
    decision they are at the same.
    """
    parted = [
        _parted(one, other, program, instruction) for program, instruction in one.plan.regions
    ]
    return min((step for step in parted if step is not None), default=None)


def _parted(one: Run, other: Run, program: Program, instruction: Instruction) -> int | None:
    """The step, of the first run, after which a loop or If was first decided differently; None
    where it never was.
    """
    region = instruction.region
    executions = one.timeline.executions
    if isinstance(region, LoopRegion):
        row, counts = _first_other(_begun(one, region), _begun(other, region))
        if row is None or not _is_over(one if counts[0] < counts[1] else other, region, row):
            return None
        if min(counts):
            last = executions.rows_of(region, row)[0] + min(counts) - 1
            return one.timeline.step_at(region.program, last, len(region.program.instructions)) + 1
    elif isinstance(region, IfRegion):
        row, _ = _first_other(executions.taken(region), other.timeline.executions.taken(region))
        if row is None:
            return None
    else:
        return None
    return one.timeline.step_at(program, row, program.instructions.index(instruction)) + 1


def _begun(run: Run, region: LoopRegion) -> np.ndarray:
    """How many iterations began in each execution of a loop."""
    executions = run.timeline.executions
    begun = np.diff(executions.loop_starts(region))
    frame = executions.open.get(region.program.index)
    return begun if frame is None else np.append(begun, frame.iteration + 1)


def _is_over(run: Run, region: LoopRegion, row: int) -> bool:
    return row + 1 < len(run.timeline.executions.loop_starts(region))


def _first_other(one: np.ndarray, other: np.ndarray) -> tuple[int | None, tuple[int, int]]:
    """Where two sequences first differ, as far as both go, and what they have there."""
    length = min(len(one), len(other))
    found = np.flatnonzero(one[:length] != other[:length])
    return (
        (int(found[0]), (int(one[found[0]]), int(other[found[0]])))
        if len(found)
        else (None, (0, 0))
    )


def _decision(one: Run, other: Run, step: int) -> RunDifference:
    """What was decided differently in the step before the two parted."""
    before = one.timeline.moment(max(step - 1, 0))
    level = before[-1]
    graph = one.timeline.address(level.program, level.row)
    if level.position < len(level.program.instructions):
        instruction = level.program.instructions[level.position]
        address = f"{graph}/{instruction.label}"
        words = [_entered(run, step) for run in (one, other)]
        kind: Literal["branch", "iterations"] = (
            "branch" if instruction.node.type == IF else "iterations"
        )
        return RunDifference(kind, step - 1, address, words[0], words[1])
    ended = [_iterations(run, step - 1) for run in (one, other)]
    return RunDifference("iterations", step - 1, graph.rpartition("[")[0], ended[0], ended[1])


def _entered(run: Run, step: int) -> str:
    """What a run did at a node with bodies that the step before began."""
    inner = run.timeline.moment(step)[-1]
    if inner.program.parent is None or inner.position:
        return "no iteration"
    return "its first iteration" if inner.iteration == 0 else inner.program.branch_name


def _iterations(run: Run, step: int) -> str:
    """How many iterations of a loop one run has, of which both have those until a step."""
    levels = run.timeline.moment(step)
    here, outer = levels[-1], levels[-2]
    record = run.control_flow.of(
        outer.program, outer.row, outer.program.instructions[outer.position]
    )
    count, more = (
        ((here.iteration or 0) + 1, "more than ")
        if record.ended_by is None
        else (record.iterations or 0, "")
    )
    return f"{more}{count:,} iteration{'' if count == 1 else 's'}"
