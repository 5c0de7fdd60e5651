"""Third column next to a source program and our run: the results of the file's own runtime."""

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
    """Results of a runtime."""

    called: str
    """Name and version, or the name alone if the runtime did not run."""
    why: str = ""
    """Reason why the runtime did not run; empty if it did."""
    report: ComparisonReport | None = None
    """Comparison with our run."""
    outputs: tuple[Any, ...] = ()
    """Outputs of the model in order."""
    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Iteration counts per execution by loop address, where known; for an If, 1 for then and 0 for
    else.
    """
    instead: Mapping[str, str] = field(default_factory=dict[str, str])
    """Description by address of the operation that replaces a loop or branch."""


def runtime_side(
    run: Run,
    inputs: Inputs,
    *,
    tolerance: float,
    seconds: float,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> RuntimeSide:
    """Run the model of a finished run in its own runtime; a failing runtime is not an error.

    Raise ``EngineError`` if the caller no longer waits.
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
            counts = {loop.address: loop.there for loop in profile.loops}
            counts |= dict(_branches_taken(run, both))
            return RuntimeSide(report.runtime, "", report, both.answer.outputs, counts)
        regions = fates(run.model, seconds=seconds, stopped=stopped).regions
    except EngineError as error:
        if stopped():
            raise
        return RuntimeSide(CALLED[run.model.dialect], str(error))
    instead = {
        region.address: f"runs as {region.runs_as}" if region.runs_as else region.became
        for region in regions
        if region.became not in ("kept", "not told")
    }
    counts = {
        address: count
        for address, count in (*_loop_counts(run, both), *_branches_taken(run, both))
        if address not in instead
    }
    return RuntimeSide(report.runtime, "", report, both.answer.outputs, counts, instead)


def _loop_counts(run: Run, both: RuntimeComparison) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield address and counts of each loop outside branches, from the shapes of its body's
    values.
    """
    for probe, peer in both.answer.values.items():
        enclosing = [graph for graph in probe.program.around() if graph.parent is not None]
        if enclosing and all(isinstance(owner(graph), LoopRegion) for graph in enclosing):
            *outer, count = peer.shape[: len(enclosing)]
            times = 1
            for length in outer:
                times *= length
            yield probe.program.address.rpartition("/")[0], (count,) * times


def _branches_taken(run: Run, both: RuntimeComparison) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield address and branches of each If whose condition the runtime returned."""
    conditions = {
        (probe.program.index, probe.slot): (probe, peer)
        for probe, peer in both.answer.values.items()
    }
    for program in run.plan.programs:
        for number in program.regions:
            instruction = program.instructions[number]
            match instruction.region:
                case IfRegion(condition=condition):
                    answer = conditions.get((program.index, condition))
                    taken = (
                        _input_condition(run, program, condition)
                        if answer is None
                        else _rows_per_execution(*answer)
                    )
                    if taken is not None:
                        yield (
                            f"{program.address}/{instruction.label}",
                            tuple(map(int, taken.reshape(len(taken), -1)[:, 0].astype(bool))),
                        )
                case _:
                    pass


def _rows_per_execution(probe: Probe, peer: np.ndarray) -> np.ndarray | None:
    """Return one row per execution.

    Return None if the graph is in a branch and the iteration counts of its loops differ from ours.
    """
    if peer.shape[: len(probe.lengths)] == probe.lengths:
        return rows_of(probe, peer)
    if any(isinstance(owner(graph), IfRegion) for graph in probe.program.around()):
        return None
    return peer.reshape(-1, *peer.shape[len(probe.lengths) :])


def _input_condition(run: Run, program: Program, condition: Slot) -> np.ndarray | None:
    """Return a condition that is a model input, which is equal in the runtime; None for other
    conditions.
    """
    if program.parent is not None or condition not in program.parameters.values():
        return None
    return np.asarray(run.values.get(run.timeline, program, 0, condition))[None]
