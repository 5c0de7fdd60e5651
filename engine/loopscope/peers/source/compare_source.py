"""Comparison of a finished run of a file with its source program and with the file's own
runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from loopscope.checks.check import check
from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.native.run_once import never
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import element_texts, shape_text
from loopscope.peers.differ import TOLERANCE
from loopscope.peers.other_runtimes import Patience
from loopscope.peers.source.program import Source, SourceRun, run_source
from loopscope.peers.source.report_columns import (
    OutputAcross,
    RegionAcross,
    across,
    outputs_across,
    path,
)
from loopscope.peers.source.runtime_column import RuntimeSide, runtime_side
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
        raise EngineError("values were set by hand in this run, which the source program cannot do")
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
