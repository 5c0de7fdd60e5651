"""Compares a finished run of a file with the program that the file was converted from, and with
the file's own runtime.
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
from loopscope.peers.comparing import elements_told, shape_text
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
    """Runs a source program, and the file's own runtime where it is installed, with the inputs of a
    finished run.

    Values agree that differ by at most ``tolerance`` times the largest magnitude in the tensor;
    integers and truth values must be equal. ``document`` is the content of an ONNX file, for a
    model that was read from its bytes. ``EngineError`` when the run has not finished, the program
    does not run within ``seconds``, no output can be compared, or ``stopped`` says yes before it
    has.
    """
    if run.state != "finished":
        raise EngineError("only a run that has finished can be compared with its source")
    if run.overrides.slots:
        raise EngineError("values were set by hand in this run, which the source program cannot do")
    did = run_source(source, run.model, inputs, Patience(seconds, stopped))
    side = runtime_side(
        run, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped
    )
    return reported(source.where, did, run, side, tolerance)


def reported(
    name: str, did: SourceRun, run: Run, side: RuntimeSide, tolerance: float = TOLERANCE
) -> SourceReport:
    """What a source program did, a finished run, and what the runtime did, beside each other."""
    outputs = outputs_across(did, run, tolerance)
    if outputs and all(one.left_out for one in outputs):
        first = outputs[0]
        raise EngineError(
            f"no output can be compared: {elided(first.name or first.source)!r} is not, since {first.left_out}"
        )
    found, regions = across(did, run, tolerance)
    return SourceReport(
        name,
        did.framework,
        tuple(_with_runtime(one, run, side) for one in outputs),
        regions,
        tuple(path(did, number) for number in found.only_source),
        tuple(placed.address for placed in found.only_file),
        _column(side, regions),
        tuple(_at_least_once(run, regions)),
        did.unwatched,
    )


def _column(side: RuntimeSide, regions: Sequence[RegionAcross]) -> RuntimeColumn:
    if side.report is None:
        return RuntimeColumn(side.called, side.why)
    counts = tuple(side.counts.get(one.address) for one in regions)
    instead = tuple(side.instead.get(one.address, "") for one in regions)
    return RuntimeColumn(side.called, "", counts, instead, side.report.sentence)


def _with_runtime(output: OutputAcross, run: Run, side: RuntimeSide) -> OutputAcross:
    """With what the runtime gave for the element that is told."""
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
        at >= length for at, length in zip(output.place[1:], array.shape, strict=True)
    ):
        return replace(output, runtime=f"shape {shape_text(array)}")
    return replace(output, runtime=elements_told(array[None], array[None], output.place)[0])


def _at_least_once(run: Run, regions: Sequence[RegionAcross]) -> Iterator[str]:
    """Of loops that did not run in the source and did in the file, that the file's cannot but
    run.
    """
    pairs = (
        (one, pair)
        for one in regions
        if one.kind == "while_loop"
        for pair in zip(one.there, one.here, strict=True)
    )
    suspects = {one.address for one, (there, here) in pairs if there == 0 < here}
    for found in check(run.model).diagnostics if suspects else ():
        if found.code == _AT_LEAST_ONCE and found.where.address in suspects:
            yield f"{found.code}: {found.message}"
