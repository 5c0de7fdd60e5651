"""First value, in the order of the run, that differs in another runtime: its operation and
iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.debug.inputs import Inputs, bind
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.ir.element_type import type_name
from loopscope.native.run_once import never
from loopscope.peers import fused_outputs, inexact_products
from loopscope.peers.comparing import (
    not_compared,
)
from loopscope.peers.fate import fates
from loopscope.peers.fused_outputs import replaced_regions
from loopscope.peers.judgement import judge, output_pairs
from loopscope.peers.npz_protocol import NARROW
from loopscope.peers.other_runtimes import Patience, RuntimeAnswer, ask, batches, rows_of
from loopscope.peers.probes import Probe, ProbeSelection, plain_bytes, plain_probe
from loopscope.peers.quantization_steps import RoundingAnalysis, is_small
from loopscope.peers.report import ComparisonReport

TOLERANCE = 1e-3
"""Tolerance relative to the largest magnitude in a tensor.

Different summation orders and vector instructions may accumulate to it over many iterations.
"""
_MAX_FETCHED_BYTES = 256 * 2**20
"""Maximum bytes of values requested at once after their fingerprints differ."""
_FUSED_REASON = "that the runtime joins with the operations that read them"


@dataclass(frozen=True, slots=True)
class RuntimeComparison:
    """A finished run and the values of its model's runtime for the same inputs."""

    run: Run
    feeds: list[Any]
    left_out: dict[str, int]
    """Number of values that were not requested, by reason."""
    answer: RuntimeAnswer
    """Runtime's answer, including the plainly requested values."""
    estimated: Mapping[Probe, Deviations]
    """Deviations estimated from fingerprints, in the rows that both runs have."""
    patience: Patience
    document: bytes

    def ask(self, probes: Sequence[Probe]) -> RuntimeAnswer:
        """Request fewer values in a new run of the runtime."""
        return ask(self.run, self.feeds, [probes], self.patience, self.document)


def beside(
    run: Run,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> RuntimeComparison:
    """Run the model of a finished run in its runtime with the same inputs.

    The runtime is OpenVINO for IR and ONNX Runtime for ONNX. Values that are too large to return in
    every iteration become fingerprints. Fingerprints that differ by more than ``tolerance`` are
    requested again as plain values, first ones first, until one differs. ``document`` is the
    content of an ONNX file, for a model read from bytes. Raise ``EngineError`` if the run is not
    finished, if the runtime cannot run the model within ``seconds``, or if ``stopped`` returns True
    first.
    """
    feeds = runtime_inputs(run, inputs)
    choice, patience = ProbeSelection(run), Patience(seconds, stopped)
    answer = ask(run, feeds, map(choice.probes, batches(choice.candidates)), patience, document)
    estimated, values = answer.estimated, dict(answer.values)
    while probes := _probes_to_fetch(run, estimated, tolerance):
        fetched = ask(
            run, feeds, [[plain_probe(run, probe) for probe in probes]], patience, document
        ).values
        values |= fetched
        estimated = {
            probe: deviations for probe, deviations in estimated.items() if probe not in probes
        }
        if not fetched or any(_is_apart(probe, peer, tolerance) for probe, peer in fetched.items()):
            break
    return RuntimeComparison(
        run, feeds, choice.left_out, replace(answer, values=values), estimated, patience, document
    )


def _probes_to_fetch(
    run: Run, estimated: Mapping[Probe, Deviations], tolerance: float
) -> list[Probe]:
    """Return the first probes whose fingerprints differ, as many as may be requested at once."""
    begins: list[tuple[int, Probe]] = []
    for probe, deviations in estimated.items():
        over = np.flatnonzero(~(deviations.relative <= tolerance))
        if len(over):
            begins.append(
                (run.timeline.step_at(probe.program, int(over[0]), probe.position + 1), probe)
            )
    chosen: list[Probe] = []
    remaining = _MAX_FETCHED_BYTES
    for _, probe in sorted(begins, key=lambda entry: entry[0]):
        remaining -= plain_bytes(run, probe)
        if chosen and remaining < 0:
            break
        chosen.append(probe)
    return chosen


def _is_apart(probe: Probe, peer: np.ndarray, tolerance: float) -> bool:
    rows = rows_of(probe, peer)
    return rows is None or bool(
        np.any(~(Deviations.of(probe.expected[: len(rows)], rows).relative <= tolerance))
    )


def against(
    run: Run,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> ComparisonReport:
    """Compare a finished run with its model's runtime, by ``beside`` and ``differences``."""
    return differences(
        beside(
            run, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped
        ),
        tolerance,
    )


def differences(both: RuntimeComparison, tolerance: float = TOLERANCE) -> ComparisonReport:
    """Return the first differing value and the differing outputs.

    Values agree if they differ by at most ``tolerance`` times the largest magnitude in the tensor,
    or times the bound of the operation (1 for a sigmoid). Integers and booleans must be equal. A
    quantisation step is not a difference: one step of an integer of at most 16 bits computed from
    floats, and its consequences. Raise ``EngineError`` if no output is comparable, and as
    ``beside``, because the runtime may run again.
    """
    run, answer = both.run, both.answer
    reasons = {
        signature.name: why
        for signature, own, peer in output_pairs(run, answer)
        if (why := not_compared(own, peer))
    }
    if reasons and len(reasons) == len(answer.outputs) and not answer.values:
        name, why = next(iter(reasons.items()))
        raise EngineError(f"no output can be compared: {elided(name)!r} is not, since {why}")
    judgement = judge(run, answer, tolerance)
    if judgement.at_rounded or (judgement.outputs and judgement.first is None and answer.values):
        rounded = list(_rounded_integers(both, judgement.rounding))
        if rounded:
            # A runtime fuses operations differently depending on the requested values, so values of
            # several runs need not follow from each other. The integers alone are requested in one
            # run.
            alone = judge(run, both.ask(rounded), tolerance)
            judgement = alone if not judgement.at_rounded or alone.first is None else judgement
    compared = [*answer.values, *both.estimated]
    values = sum(len(probe.expected) for probe in compared)
    replaced: tuple[str, ...] = ()
    if judgement.outputs and judgement.first is None and not answer.refused:
        replaced = replacements(
            both, [difference.address for difference in judgement.outputs], tolerance
        ).sentences
    counts_differ = any(
        peer.shape[: len(probe.lengths)] != probe.lengths for probe, peer in answer.values.items()
    )
    cause = (
        inexact_products.byte_sums_sentence(run.model, judgement.first, both.patience)
        if judgement.outputs or judgement.first is not None
        else ""
    )
    if judgement.outputs and not replaced:
        cause = cause or inexact_products.quantization_sentence(
            run,
            both.feeds,
            [difference.address for difference in judgement.outputs],
            both.patience,
            tolerance,
            both.document,
        )
    cause = cause or judgement.reason(answer.runtime)
    left_out = {**both.left_out, **({_FUSED_REASON: judgement.joined} if judgement.joined else {})}
    return ComparisonReport(
        answer.runtime,
        judgement.outputs,
        judgement.first,
        values,
        len(compared),
        left_out,
        answer.refused,
        reasons,
        judgement.quanta(run),
        judgement.following,
        replaced,
        counts_differ,
        cause,
    )


def _rounded_integers(both: RuntimeComparison, rounding: RoundingAnalysis) -> Iterator[Probe]:
    """Yield the integers computed from floats as plain values, as many as may be requested at
    once.
    """
    run, remaining = both.run, _MAX_FETCHED_BYTES
    for probe in (*both.answer.values, *both.estimated):
        if (
            is_small(run.values.get(run.timeline, probe.program, 0, probe.slot))
            and plain_bytes(run, probe) <= remaining
        ):
            whole = probe if probe.fingerprint is None else plain_probe(run, probe)
            if rounding.is_quantizing(whole):
                remaining -= whole.expected.nbytes
                yield whole


def runtime_inputs(run: Run, inputs: Inputs) -> list[Any]:
    """Return the inputs of a finished run for its runtime.

    Raise ``EngineError`` if the runtime does not support an input type, or if the run cannot be
    repeated.
    """
    if run.state != "finished":
        raise EngineError("only a run that has finished can be compared with another runtime")
    if run.overrides.slots:
        raise EngineError("a run whose values were edited cannot be compared with another runtime")
    bound = bind(run.model, inputs)
    values = [bound[signature.layer] for signature in run.model.inputs]
    extension_types = {
        type_name(value.dtype)
        for value in values
        if isinstance(value, np.ndarray) and value.dtype.isbuiltin != 1
    }
    if extension_types - (NARROW if run.model.dialect == "onnx" else frozenset()):
        types = ", ".join(sorted(extension_types))
        raise EngineError(f"the runtime does not accept this model's inputs of type {types}")
    return values


def replacements(
    both: RuntimeComparison, outputs: Sequence[str], tolerance: float
) -> fused_outputs.Replacements:
    """Return the operations that replace loops and branches on which these outputs depend.

    The sentences include the first difference. For it the runtime is asked for the loops' outputs
    alone, because it does not replace a loop whose inner values are requested.
    """
    run, patience = both.run, both.patience
    results = [
        run.plan.main.results[signature.layer]
        for signature in run.model.outputs
        if signature.name in outputs
    ]
    try:
        fate = fates(
            run.model, seconds=patience.seconds, document=both.document, stopped=patience.stopped
        )
        replaced = list(replaced_regions(run, fate.regions, results))
        probes = fused_outputs.outputs_of(
            run, [region.instruction for region in replaced], list(both.answer.values)
        )
        replaced_answer = both.ask(probes) if probes else None
    except EngineError:
        if patience.stopped():
            raise
        # The runtime runs the model but does not show the compiled graph.
        return fused_outputs.Replacements((), {})
    values = {} if replaced_answer is None else replaced_answer.values
    begins = fused_outputs.first_difference(run, values, both.answer.runtime, tolerance)
    sentences = [
        region.sentence for region in replaced if begins is None or region.instruction is begins[0]
    ]
    return fused_outputs.Replacements((*sentences, *(() if begins is None else begins[1:])), values)
