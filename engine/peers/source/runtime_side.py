"""The third column beside a source program and our run: what the file's own runtime does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.debug.inputs import Inputs
from engine.debug.run import Run
from engine.errors import EngineError
from engine.native.alone import never
from engine.peers.clock import clock
from engine.peers.differ import Beside, beside, differences
from engine.peers.fate import fates
from engine.peers.other_runtimes import CALLED, runtime_of
from engine.peers.probes import owner
from engine.peers.report import Report
from engine.run.plan.plan import LoopRegion


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeSide:
    """What a runtime did."""

    called: str
    """Its name and version, or its name alone where it did not run."""
    why: str = ""
    """Why it did not run; empty where it did."""
    report: Report | None = None
    """Beside our run."""
    outputs: tuple[Any, ...] = ()
    """Of the model, in its order."""
    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """By the address of a loop the iterations of its executions, where they are known."""
    instead: Mapping[str, str] = field(default_factory=dict[str, str])
    """By the address of a loop or branch what runs in its place, in words."""


def runtime_side(
    run: Run, inputs: Inputs, *, tolerance: float, seconds: float, document: bytes = b"", stopped: Callable[[], bool] = never
) -> RuntimeSide:
    """Runs the model of a finished run in its own runtime; that this cannot be done is no error here. ``EngineError`` where the caller
    no longer waits."""
    if not runtime_of(run.model):
        return RuntimeSide(CALLED[run.model.dialect], "not installed")
    try:
        both = beside(run, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped)
        report = differences(both, tolerance)
        if run.model.dialect == "onnx":
            profile = clock(run.model, inputs, seconds=seconds, document=document, stopped=stopped)
            return RuntimeSide(report.runtime, "", report, both.truth.outputs, {one.address: one.there for one in profile.loops})
        found = fates(run.model, seconds=seconds, stopped=stopped).regions
    except EngineError as error:
        if stopped():
            raise
        return RuntimeSide(CALLED[run.model.dialect], str(error))
    instead = {
        one.address: f"runs as {one.runs_as}" if one.runs_as else one.became for one in found if one.became not in ("kept", "not told")
    }
    counts = {address: count for address, count in _counts(run, both) if address not in instead}
    return RuntimeSide(report.runtime, "", report, both.truth.outputs, counts, instead)


def _counts(run: Run, both: Beside) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Of each loop that is in no branch, by the values that the runtime gave of its body."""
    for probe, there in both.truth.values.items():
        around = [one for one in probe.program.around() if one.parent is not None]
        if around and all(isinstance(owner(one), LoopRegion) for one in around):
            *outer, count = there.shape[: len(around)]
            times = 1
            for length in outer:
                times *= length
            yield probe.program.address.rpartition("/")[0], (count,) * times
