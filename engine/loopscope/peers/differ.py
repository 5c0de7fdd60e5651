"""First value, in the order of the run, that differs in another runtime: its operation and
iteration.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopscope.comparison.deviation import Deviations
from loopscope.debug.inputs import Inputs, bind
from loopscope.debug.lookup import value_names
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.ir.element_type import type_name
from loopscope.ir.model import Signature
from loopscope.ir.readable import readable
from loopscope.native.run_once import never
from loopscope.peers import fused_outputs, inexact_products
from loopscope.peers.comparing import (
    apart,
    close,
    element_texts,
    first_apart,
    is_numeric,
    not_compared,
    shape_text,
)
from loopscope.peers.fate import fates
from loopscope.peers.fused_outputs import replaced_regions
from loopscope.peers.npz_protocol import NARROW
from loopscope.peers.other_runtimes import Patience, RuntimeAnswer, ask, batches, rows_of
from loopscope.peers.probes import Probe, ProbeSelection, plain_bytes, plain_probe
from loopscope.peers.quantization_steps import QuantizationStep, RoundingAnalysis, is_small
from loopscope.peers.replay_with_inputs import CrossReplay
from loopscope.peers.report import ComparisonReport, Quanta, ValueDifference

TOLERANCE = 1e-3
"""Tolerance relative to the largest magnitude in a tensor.

Different summation orders and vector instructions may accumulate to it over many iterations.
"""
_MAX_FETCHED_BYTES = 256 * 2**20
"""Maximum bytes of values requested at once after their fingerprints differ."""
_FUSED_REASON = "that the runtime joins with the operations that read them"
_MAX_EXPLAINED = 5_000
"""Maximum number of differing values that are replayed to find the consequences of a quantisation
step.
"""


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
        for signature, own, peer in _output_pairs(run, answer)
        if (why := not_compared(own, peer))
    }
    if reasons and len(reasons) == len(answer.outputs) and not answer.values:
        name, why = next(iter(reasons.items()))
        raise EngineError(f"no output can be compared: {elided(name)!r} is not, since {why}")
    judgement = _judge(run, answer, tolerance)
    if judgement.at_rounded or (judgement.outputs and judgement.first is None and answer.values):
        rounded = list(_rounded_integers(both, judgement.rounding))
        if rounded:
            # A runtime fuses operations differently depending on the requested values, so values of
            # several runs need not follow from each other. The integers alone are requested in one
            # run.
            alone = _judge(run, both.ask(rounded), tolerance)
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
        raise EngineError("values were set by hand in this run, which another runtime cannot do")
    bound = bind(run.model, inputs)
    values = [bound[signature.layer] for signature in run.model.inputs]
    extension_types = {
        type_name(value.dtype)
        for value in values
        if isinstance(value, np.ndarray) and value.dtype.isbuiltin != 1
    }
    if extension_types - (NARROW if run.model.dialect == "onnx" else frozenset()):
        types = ", ".join(sorted(extension_types))
        raise EngineError(
            f"the runtime cannot be given inputs of type {types}, which this model takes"
        )
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


@dataclass(frozen=True, slots=True)
class _Judgement:
    """Judgement of the differing values."""

    rounding: RoundingAnalysis
    first: ValueDifference | None
    outputs: tuple[ValueDifference, ...]
    following: tuple[ValueDifference, ...]
    """Outputs that differ by a quantisation step, or as a consequence of one."""
    location: tuple[Probe, int] | None
    """Value and row of ``first``; None if the difference is structural."""
    joined: int = 0
    """Number of values with another shape, because the runtime fused their operation with the
    readers.
    """

    @property
    def at_rounded(self) -> bool:
        """True if the first difference is an integer computed from floats."""
        return self.location is not None and self.rounding.is_quantizing(self.location[0])

    def reason(self, runtime: str) -> str:
        """Return a sentence about the reason of the first difference; empty if it is unknown."""
        if self.location is None:
            return ""
        probe, row = self.location
        name = elided(readable(value_names(probe.program)[probe.slot]))
        if narrow := self.rounding.removed_narrowing(probe, row):
            return (
                f"{runtime} leaves out the rounding to {narrow} before {name}: "
                f"its numbers there are none that {narrow} holds."
            )
        if not self.rounding.reproduces(probe, row):
            return ""
        sentence = f"Computed from what {runtime} has for its inputs, {name} is the same here"
        return f"{sentence}: those differ by less than the tolerance, and it makes more of that."

    def quanta(self, run: Run) -> Quanta | None:
        steps = self.rounding.steps
        if not steps:
            return None
        first = steps[0]
        difference = self.following[0] if first.probe is None else _step_difference(run, first)
        elements = sum(int(np.count_nonzero(step.apart)) for step in steps)
        return Quanta(
            first.element_type,
            elements,
            sum(step.own.size for step in steps),
            len(steps),
            difference,
        )


def _judge(run: Run, answer: RuntimeAnswer, tolerance: float) -> _Judgement:
    rows = {
        probe: peer
        for probe in answer.values
        if (peer := rows_of(probe, answer.values[probe])) is not None
    }
    rounding = RoundingAnalysis(CrossReplay(run, rows), tolerance)
    joined = frozenset(
        probe for probe in answer.values if probe not in rows and _is_fused(probe, rows, tolerance)
    )
    structural = (
        _structural_difference(run, probe, answer.values[probe])
        for probe in answer.values
        if probe not in joined
    )
    first = min(
        (difference for difference in structural if difference is not None),
        key=lambda difference: difference.step,
        default=None,
    )
    location: tuple[Probe, int] | None = None
    differing = heapq.merge(
        *(_differing(run, probe, peer, rounding) for probe, peer in rows.items()),
        key=lambda entry: entry[0],
    )
    for count, (step, row, probe) in enumerate(differing):
        if first is not None and first.step <= step:
            break
        if count == _MAX_EXPLAINED or not rounding.explain_difference(probe, row):
            first = _value_difference(run, probe, row, rows[probe], rounding)
            location = (probe, row)
            break
    return _Judgement(
        rounding, first, *_output_differences(run, answer, rounding, first), location, len(joined)
    )


def _is_fused(probe: Probe, rows: Mapping[Probe, np.ndarray], tolerance: float) -> bool:
    """Return True if a value has another shape in the runtime although all its readers agree.

    A runtime that fuses several operations may return the result under the name of a part.
    """
    instructions = probe.program.instructions
    readers = {
        number
        for number, instruction in enumerate(instructions)
        if probe.slot in instruction.inputs and instruction.region is None
    }
    reader_probes = [
        reader for reader in rows if reader.program is probe.program and reader.position in readers
    ]
    agree = (
        close(reader.expected[: len(rows[reader])], rows[reader], tolerance).all()
        for reader in reader_probes
    )
    return len({reader.position for reader in reader_probes}) == len(readers) > 0 and all(agree)


def _structural_difference(run: Run, probe: Probe, peer: np.ndarray) -> ValueDifference | None:
    """Return the difference in shape or iteration counts; None if there is none."""
    own, lengths = probe.expected, peer.shape[: len(probe.lengths)]
    if peer.shape[len(lengths) :] != own.shape[1:]:
        shape = ",".join(map(str, peer.shape[len(lengths) :]))
        return _difference_at(run, probe, 0, f"shape {shape_text(own[0])}", f"shape [{shape}]")
    if lengths == probe.lengths:
        return None
    words = [
        f"in {' x '.join(f'{length:,}' for length in counts)} iterations"
        for counts in (probe.lengths, lengths)
    ]
    common = (
        0
        if lengths[1:] != probe.lengths[1:]
        else int(np.searchsorted(probe.places, math.prod(lengths)))
    )
    return _difference_at(run, probe, min(common, len(own) - 1), *words)


def _differing(
    run: Run, probe: Probe, peer: np.ndarray, rounding: RoundingAnalysis
) -> Iterator[tuple[int, int, Probe]]:
    """Yield step, row and probe of the rows in which a value differs."""
    is_close = close(probe.expected[: len(peer)], peer, rounding.tolerance)
    for row in np.flatnonzero(~is_close.reshape(len(peer), -1).all(axis=1)).tolist():
        if not rounding.agree(probe.program, row, probe.slot, probe.expected[row], peer[row]):
            yield run.timeline.step_at(probe.program, row, probe.position + 1), row, probe


def _value_difference(
    run: Run, probe: Probe, row: int, peer: np.ndarray, rounding: RoundingAnalysis
) -> ValueDifference:
    """Return the difference of a value at its first differing element."""
    place = first_apart(probe.expected[row : row + 1], peer[row : row + 1], rounding.tolerance)
    assert place is not None
    return _difference_at(
        run, probe, row, *element_texts(probe.expected[row : row + 1], peer[row : row + 1], place)
    )


def _step_difference(run: Run, step: QuantizationStep) -> ValueDifference:
    assert step.probe is not None
    return _difference_at(
        run,
        step.probe,
        step.row,
        *element_texts(step.own[None], step.peer[None], (0, *step.place)),
    )


def _output_differences(
    run: Run, answer: RuntimeAnswer, rounding: RoundingAnalysis, first: ValueDifference | None
) -> tuple[tuple[ValueDifference, ...], tuple[ValueDifference, ...]]:
    """Return the differing model outputs, and those that differ because of quantisation steps."""
    outputs: list[ValueDifference] = []
    following: list[ValueDifference] = []
    main = run.plan.main
    for signature, own, peer in _output_pairs(run, answer):
        slot = main.results[signature.layer]
        if not_compared(own, peer) or (sides := apart(own, peer, rounding.tolerance)) is None:
            continue
        if is_numeric(own) and is_numeric(peer):
            if rounding.agree(main, 0, slot, own, peer):
                continue
            if first is None and rounding.explain_output(main, slot, own, peer):
                following.append(ValueDifference(signature.name, -1, *sides))
                continue
        outputs.append(ValueDifference(signature.name, -1, *sides))
    return tuple(outputs), tuple(following)


def _output_pairs(run: Run, answer: RuntimeAnswer) -> Iterator[tuple[Signature, Any, Any]]:
    """Return each model output with our value and the runtime's."""
    return zip(run.model.outputs, run.result.outputs, answer.outputs, strict=True)


def _difference_at(run: Run, probe: Probe, row: int, own: str, peer: str) -> ValueDifference:
    address = f"{run.timeline.address(probe.program, row)}/{value_names(probe.program)[probe.slot]}"
    return ValueDifference(
        address, run.timeline.step_at(probe.program, row, probe.position + 1), own, peer
    )
