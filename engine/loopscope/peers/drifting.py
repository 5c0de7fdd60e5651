"""How far a runtime drifts from our run of the same model: every value of every iteration that
it gives, beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.comparison.divergence import AlignedRows, Divergence, align
from loopscope.comparison.drift import (
    TOLERANCE,
    ComparedValues,
    Drift,
    MatchedSlots,
    first_over,
    matched_slots,
    values_apart,
)
from loopscope.comparison.largest_logit import other_choice
from loopscope.comparison.matching import match
from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.debug.suggestions import value_names
from loopscope.executor.plan.numbers import ProgramIndex
from loopscope.native.run_once import never
from loopscope.peers import dynamic_quantization
from loopscope.peers.comparing import counted, not_compared
from loopscope.peers.differ import RuntimeComparison, beside, instead
from loopscope.peers.probes import Probe
from loopscope.peers.row_feeds import rows_of


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeDrift:
    """What came of it."""

    runtime: str
    """Name and version."""
    drift: Drift
    replaced: tuple[str, ...]
    """Where outputs are apart and no value inside is: what runs in place of the loops and
    branches that they come from.
    """
    refused: str
    """Why the runtime did not give the values inside; empty where it did."""
    cause: str
    """Why only the outputs are apart, where the runtime was asked and that is it."""
    values: Mapping[str, np.ndarray]
    """What the runtime gave, by address without iterations, with a row along the first axis for
    each row of the pair.
    """

    @property
    def sentence(self) -> str:
        """What to know, in a few sentences."""
        apart = self.drift.first is None and self.drift.outputs > self.drift.tolerance
        outputs = (
            f"The outputs of {self.runtime} are up to {self.drift.outputs:.2g} apart."
            if apart
            else ""
        )
        refused = f"The values inside were not compared: {self.refused}." if self.refused else ""
        inside = self.drift.choice if self.refused else self.drift.sentence
        return " ".join(
            part for part in (outputs, *self.replaced, self.cause, inside, refused) if part
        )


def drift_from_runtime(
    run: Run,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> RuntimeDrift:
    """Compares a finished run with the runtime of its model, as ``against`` does, and tells the
    error of every iteration.

    Outputs are those of the model as it is; values inside are those of a model that gives them as
    outputs too. Errors as of ``against``.
    """
    return drift_beside(
        beside(
            run, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped
        ),
        tolerance,
    )


def drift_beside(both: RuntimeComparison, tolerance: float = TOLERANCE) -> RuntimeDrift:
    """The same of a run and what its runtime gave."""
    run, answer = both.run, both.answer
    drift, values = _drift(both, tolerance)
    replaced: tuple[str, ...] = ()
    cause = ""
    if drift.first is None and drift.outputs > tolerance:
        names = [signature.name for signature in run.model.outputs]
        replaced = () if answer.refused else instead(both, names, tolerance)
        cause = (
            ""
            if replaced
            else dynamic_quantization.sentence(
                run, both.given, names, both.patience, tolerance, both.document
            )
        )
    return RuntimeDrift(answer.runtime, drift, replaced, answer.refused, cause, values)


def _drift(both: RuntimeComparison, tolerance: float) -> tuple[Drift, Mapping[str, np.ndarray]]:
    run, answer = both.run, both.answer
    rows = {
        graph.one.index: aligned for graph, aligned in align(run, run, match(run, run))[0].items()
    }
    left_out = dict(both.left_out)
    pairs: list[MatchedSlots] = []
    partings: list[Divergence] = []
    values: dict[str, np.ndarray] = {}
    for probe, there in answer.values.items():
        given = rows_of(probe, there)
        if given is None:
            left_out["of another shape"] = left_out.get("of another shape", 0) + 1
            continue
        if there.shape[: len(probe.lengths)] != probe.lengths:
            partings.append(_ended(run, probe, there.shape[0], len(given)))
        if len(given):
            pairs.append(_pair(run, probe, given, rows, tolerance))
            values[pairs[-1].one] = given
    for probe, guessed in both.estimated.items():
        if len(guessed.relative):
            pairs.append(_pair_of(run, probe, guessed, rows, tolerance))
    pairs.sort(key=lambda pair: (pair.program.index, pair.position))
    outputs = zip(run.result.outputs, answer.outputs, strict=True)
    error = values_apart((here, there) for here, there in outputs if not not_compared(here, there))
    ends = zip(run.model.outputs, run.result.outputs, answer.outputs, strict=True)
    choice = other_choice((signature.name, here, there) for signature, here, there in ends)
    partings.sort(key=lambda parting: parting.step)
    return Drift(
        tolerance,
        tuple(pairs),
        first_over(pairs),
        tuple(partings[:1]),
        ((), ()),
        left_out,
        error,
        choice=choice,
    ), values


def _pair(
    run: Run,
    probe: Probe,
    given: np.ndarray,
    rows: Mapping[ProgramIndex, AlignedRows],
    tolerance: float,
) -> MatchedSlots:
    return _pair_of(run, probe, Deviations.of(probe.expected[: len(given)], given), rows, tolerance)


def _pair_of(
    run: Run,
    probe: Probe,
    found: Deviations,
    rows: Mapping[ProgramIndex, AlignedRows],
    tolerance: float,
) -> MatchedSlots:
    whole, count = rows[probe.program.index], len(found.relative)
    some = AlignedRows(
        whole.one[:count], whole.other[:count], whole.execution[:count], whole.iteration[:count]
    )
    place = f"{probe.program.address}/{value_names(probe.program)[probe.slot]}"
    asked = ComparedValues(
        place,
        place,
        "name",
        (probe.program, probe.program),
        (probe.slot, probe.slot),
        probe.position + 1,
    )
    return matched_slots(run, some, asked, found, tolerance)


def _ended(run: Run, probe: Probe, times: int, common: int) -> Divergence:
    """Of the outermost loop around a value, which runs another number of iterations in the
    runtime.
    """
    body = [program for program in probe.program.around() if program.loop is not None][-1]
    address = run.timeline.address(body, 0).rpartition("[")[0]
    step = run.timeline.step_at(probe.program, max(common - 1, 0), len(probe.program.instructions))
    return Divergence(
        "iterations",
        address,
        step,
        counted(probe.lengths[0], "iteration"),
        counted(times, "iteration"),
        "",
    )
