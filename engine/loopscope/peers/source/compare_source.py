"""Comparison of a finished run of a file with its source program and the file's own runtime.

The results of the runtime are the third column next to the source program and our run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loopscope.checks.check import check
from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.native.run_once import never
from loopscope.ops.values import is_tensor
from loopscope.peers.clock import clock
from loopscope.peers.comparing import element_texts, shape_text
from loopscope.peers.differ import TOLERANCE, RuntimeComparison, beside, differences
from loopscope.peers.fate import fates
from loopscope.peers.other_runtimes import CALLED, Patience, rows_of, runtime_of
from loopscope.peers.probes import Probe, owner
from loopscope.peers.report import ComparisonReport
from loopscope.peers.source.program import Source, SourceRun, run_source
from loopscope.peers.source.report_columns import (
    OutputAcross,
    RegionAcross,
    across,
    outputs_across,
    path,
)
from loopscope.peers.source.source_report import RuntimeColumn, SourceReport

_AT_LEAST_ONCE = "LS931"


def against_source(
    run: Run,
    source: Source,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> SourceReport:
    """Run a source program, and the file's runtime if installed, with the inputs of a finished run.

    Values agree if they differ by at most ``tolerance`` times the largest magnitude in the tensor;
    integers and booleans must be equal. ``document`` is the content of an ONNX file, for a model
    read from bytes. Raise ``EngineError`` if the run is not finished, the program does not run
    within ``seconds``, no output is comparable, or ``stopped`` returns True first.
    """
    if run.state != "finished":
        raise EngineError("only a run that has finished can be compared with its source")
    if run.overrides.slots:
        raise EngineError(
            "a run whose values were edited cannot be compared with its source program"
        )
    source_run = run_source(source, run.model, inputs, Patience(seconds, stopped))
    side = runtime_side(
        run, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped
    )
    return reported(source.where, source_run, run, side, tolerance)


def reported(
    name: str, source_run: SourceRun, run: Run, side: RuntimeSide, tolerance: float = TOLERANCE
) -> SourceReport:
    """Return the comparison of a source program's run, a finished run, and the runtime's
    results.
    """
    outputs = outputs_across(source_run, run, tolerance)
    if outputs and all(output.left_out for output in outputs):
        first = outputs[0]
        name = elided(first.name or first.source)
        raise EngineError(f"no output can be compared: {name!r} is not, since {first.left_out}")
    matching, regions = across(source_run, run, tolerance)
    return SourceReport(
        name,
        source_run.framework,
        tuple(_with_runtime(output, run, side) for output in outputs),
        regions,
        tuple(path(source_run, number) for number in matching.only_source),
        tuple(region.address for region in matching.only_file),
        _column(side, regions),
        tuple(_at_least_once(run, regions)),
        source_run.unwatched,
    )


def _column(side: RuntimeSide, regions: Sequence[RegionAcross]) -> RuntimeColumn:
    if side.report is None:
        return RuntimeColumn(side.called, side.why)
    counts = tuple(side.counts.get(region.address) for region in regions)
    replacements = tuple(side.instead.get(region.address, "") for region in regions)
    return RuntimeColumn(side.called, "", counts, replacements, side.report.sentence)


def _with_runtime(output: OutputAcross, run: Run, side: RuntimeSide) -> OutputAcross:
    """Return the output with the runtime's value of the described element."""
    if side.report is None or not output.differs:
        return output
    names = [{signature.name, *signature.names} for signature in run.model.outputs]
    value = side.outputs[next(number for number, some in enumerate(names) if output.name in some)]
    if not is_tensor(value):
        return output
    array = np.asarray(value)
    if output.place is None:
        return replace(output, runtime=f"shape {shape_text(array)}")
    if array[None].ndim != len(output.place) or any(
        index >= length for index, length in zip(output.place[1:], array.shape, strict=True)
    ):
        return replace(output, runtime=f"shape {shape_text(array)}")
    return replace(output, runtime=element_texts(array[None], array[None], output.place)[0])


def _at_least_once(run: Run, regions: Sequence[RegionAcross]) -> Iterator[str]:
    """Yield diagnostics of file loops that always run an iteration, if the source's loop ran
    none.
    """
    pairs = (
        (region, pair)
        for region in regions
        if region.kind == "while_loop"
        for pair in zip(region.there, region.here, strict=True)
    )
    suspects = {
        region.address
        for region, (source_count, own_count) in pairs
        if source_count == 0 < own_count
    }
    for diagnostic in check(run.model).diagnostics if suspects else ():
        if diagnostic.code == _AT_LEAST_ONCE and diagnostic.where.address in suspects:
            yield f"{diagnostic.code}: {diagnostic.message}"


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
