"""The third column beside a source program and our run: what the file's own runtime does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.native.run_once import never
from loopscope.peers.clock import clock
from loopscope.peers.differ import RuntimeComparison, beside, differences
from loopscope.peers.fate import fates
from loopscope.peers.other_runtimes import CALLED, runtime_of
from loopscope.peers.probes import Probe, owner
from loopscope.peers.report import ComparisonReport
from loopscope.peers.row_feeds import rows_of


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeSide:
    """What a runtime did."""

    called: str
    """Its name and version, or its name alone where it did not run."""
    why: str = ""
    """Why it did not run; empty where it did."""
    report: ComparisonReport | None = None
    """Beside our run."""
    outputs: tuple[Any, ...] = ()
    """Of the model, in its order."""
    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """By the address of a loop the iterations of its executions, of a branch 1 for then and 0
    for else, where they are known.
    """
    instead: Mapping[str, str] = field(default_factory=dict[str, str])
    """By the address of a loop or branch what runs in its place, in words."""


def runtime_side(
    run: Run,
    inputs: Inputs,
    *,
    tolerance: float,
    seconds: float,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> RuntimeSide:
    """Runs the model of a finished run in its own runtime; that this cannot be done is no error
    here. ``EngineError`` where the caller no longer waits.
    """
    if not runtime_of(run.model):
        return RuntimeSide(CALLED[run.model.dialect], "not installed")
    try:
        both = beside(
            run, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped
        )
        report = differences(both, tolerance)
        if run.model.dialect == "onnx":
            profile = clock(run.model, inputs, seconds=seconds, document=document, stopped=stopped)
            counts = {one.address: one.there for one in profile.loops} | dict(_branches(run, both))
            return RuntimeSide(report.runtime, "", report, both.answer.outputs, counts)
        found = fates(run.model, seconds=seconds, stopped=stopped).regions
    except EngineError as error:
        if stopped():
            raise
        return RuntimeSide(CALLED[run.model.dialect], str(error))
    instead = {
        one.address: f"runs as {one.runs_as}" if one.runs_as else one.became
        for one in found
        if one.became not in ("kept", "not told")
    }
    counts = {
        address: count
        for address, count in (*_counts(run, both), *_branches(run, both))
        if address not in instead
    }
    return RuntimeSide(report.runtime, "", report, both.answer.outputs, counts, instead)


def _counts(run: Run, both: RuntimeComparison) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Of each loop that is in no branch, by the values that the runtime gave of its body."""
    for probe, there in both.answer.values.items():
        around = [one for one in probe.program.around() if one.parent is not None]
        if around and all(isinstance(owner(one), LoopRegion) for one in around):
            *outer, count = there.shape[: len(around)]
            times = 1
            for length in outer:
                times *= length
            yield probe.program.address.rpartition("/")[0], (count,) * times


def _branches(run: Run, both: RuntimeComparison) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Of each If what its condition was in the runtime, in every execution; of those whose
    condition it gave.
    """
    given = {
        (probe.program.index, probe.slot): (probe, there)
        for probe, there in both.answer.values.items()
    }
    for program in run.plan.programs:
        for number in program.regions:
            instruction = program.instructions[number]
            match instruction.region:
                case IfRegion(condition=condition):
                    found = given.get((program.index, condition))
                    taken = (
                        _of_input(run, program, condition)
                        if found is None
                        else _in_all_rows(*found)
                    )
                    if taken is not None:
                        yield (
                            f"{program.address}/{instruction.label}",
                            tuple(map(int, taken.reshape(len(taken), -1)[:, 0].astype(bool))),
                        )
                case _:
                    pass


def _in_all_rows(probe: Probe, there: np.ndarray) -> np.ndarray | None:
    """With a row for each execution; None where the graph is in a branch and the loops around
    ran otherwise than here.
    """
    if there.shape[: len(probe.lengths)] == probe.lengths:
        return rows_of(probe, there)
    if any(isinstance(owner(one), IfRegion) for one in probe.program.around()):
        return None
    return there.reshape(-1, *there.shape[len(probe.lengths) :])


def _of_input(run: Run, program: Program, condition: Slot) -> np.ndarray | None:
    """Of a condition that is an input of the model, and so the same there; None for any other."""
    if program.parent is not None or condition not in program.parameters.values():
        return None
    return np.asarray(run.values.get(run.timeline, program, 0, condition))[None]
