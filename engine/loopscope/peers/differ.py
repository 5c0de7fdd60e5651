"""The first place, in the order of the run, where another runtime gives something else: which
operation, in which iteration.
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
from loopscope.debug.run import Run
from loopscope.debug.suggestions import value_names
from loopscope.errors import EngineError, elided
from loopscope.ir.element_type import type_name
from loopscope.ir.model import Signature
from loopscope.ir.readable import readable
from loopscope.native.run_once import never
from loopscope.peers import byte_sums, dynamic_quantization, fused_outputs
from loopscope.peers.comparing import (
    apart,
    close,
    elements_told,
    first_apart,
    is_numeric,
    not_compared,
    shape_text,
)
from loopscope.peers.fate import fates
from loopscope.peers.fused_regions import replaced_regions
from loopscope.peers.npz_protocol import NARROW
from loopscope.peers.other_runtimes import Patience, RuntimeAnswer, ask
from loopscope.peers.probe_batches import portions
from loopscope.peers.probes import Choice, Probe, as_it_is, whole_bytes
from loopscope.peers.quantization_steps import OneStep, Rounding, is_small
from loopscope.peers.replay_with_inputs import CrossReplay
from loopscope.peers.report import ComparisonReport, Quanta, ValueDifference
from loopscope.peers.row_feeds import rows_of

TOLERANCE = 1e-3
"""Of the largest magnitude in a tensor: what sums in another order and vector instructions may
add up to over many iterations.
"""
_MOST_FETCHED = 256 * 2**20
"""Bytes of values that are asked for at once after their fingerprints differ."""
_JOINED = "that the runtime joins with the operations that read them"
_MOST_JUDGED = 5_000
"""Values that differ and are computed again, to tell what follows from a quantum."""


@dataclass(frozen=True, slots=True)
class RuntimeComparison:
    """A finished run, and what the runtime of its model gave for the same inputs."""

    run: Run
    given: list[Any]
    left_out: dict[str, int]
    """How many values were not asked for, by the reason in words."""
    answer: RuntimeAnswer
    """With the values that were asked for as they are."""
    estimated: Mapping[Probe, Deviations]
    """How far the others are apart by their fingerprints, in the rows that both have."""
    patience: Patience
    document: bytes

    def ask(self, some: Sequence[Probe]) -> RuntimeAnswer:
        """What the runtime gives when it is asked for fewer values."""
        return ask(self.run, self.given, [some], self.patience, self.document)


def beside(
    run: Run,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> RuntimeComparison:
    """Runs the model of a finished run in its runtime, OpenVINO for IR and ONNX Runtime for ONNX,
    with the same inputs.

    Of values that are too large to be handed out in every iteration it gives fingerprints; those
    that differ by more than ``tolerance`` it is asked for again as they are, the first ones first,
    until one of them differs. ``document`` is the content of an ONNX file, for a model that was
    read from its bytes. ``EngineError`` when the run has not finished, the runtime cannot run the
    model within ``seconds``, or ``stopped`` says yes before it has.
    """
    given = fed(run, inputs)
    choice, patience = Choice(run), Patience(seconds, stopped)
    answer = ask(run, given, map(choice.probes, portions(choice.candidates)), patience, document)
    estimated, values = answer.estimated, dict(answer.values)
    while more := _to_fetch(run, estimated, tolerance):
        fetched = ask(
            run, given, [[as_it_is(run, probe) for probe in more]], patience, document
        ).values
        values |= fetched
        estimated = {probe: guessed for probe, guessed in estimated.items() if probe not in more}
        if not fetched or any(
            _is_apart(probe, there, tolerance) for probe, there in fetched.items()
        ):
            break
    return RuntimeComparison(
        run, given, choice.left_out, replace(answer, values=values), estimated, patience, document
    )


def _to_fetch(run: Run, estimated: Mapping[Probe, Deviations], tolerance: float) -> list[Probe]:
    """The first that differ by their fingerprints, as many as may be asked for at once."""
    begins: list[tuple[int, Probe]] = []
    for probe, guessed in estimated.items():
        over = np.flatnonzero(~(guessed.relative <= tolerance))
        if len(over):
            begins.append(
                (run.timeline.step_at(probe.program, int(over[0]), probe.position + 1), probe)
            )
    chosen: list[Probe] = []
    left = _MOST_FETCHED
    for _, probe in sorted(begins, key=lambda one: one[0]):
        left -= whole_bytes(run, probe)
        if chosen and left < 0:
            break
        chosen.append(probe)
    return chosen


def _is_apart(probe: Probe, there: np.ndarray, tolerance: float) -> bool:
    rows = rows_of(probe, there)
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
    """Compares a finished run with the runtime of its model, as ``beside`` runs it and
    ``differences`` tells it.
    """
    return differences(
        beside(
            run, inputs, tolerance=tolerance, seconds=seconds, document=document, stopped=stopped
        ),
        tolerance,
    )


def differences(both: RuntimeComparison, tolerance: float = TOLERANCE) -> ComparisonReport:
    """The first value that differs, and the outputs that do.

    Values agree that differ by at most ``tolerance`` times the largest magnitude in the tensor, or
    times the bound of the operation where it has one (1 for a sigmoid); integers and truth values
    must be equal. Two are no differences: one quantum, that is a step of an integer of at most 16
    bits that an operation made of floats, and what the same operations make of it. ``EngineError``
    where no output can be compared, and as of ``beside``: the runtime may be asked again.
    """
    run, answer = both.run, both.answer
    reasons = {
        one.name: why
        for one, here, there in _pairs(run, answer)
        if (why := not_compared(here, there))
    }
    if reasons and len(reasons) == len(answer.outputs) and not answer.values:
        raise EngineError(
            f"no output can be compared: {elided(next(iter(reasons)))!r} is not, since {next(iter(reasons.values()))}"
        )
    judged = _judged(run, answer, tolerance)
    if judged.at_rounded or (judged.outputs and judged.first is None and answer.values):
        rounded = list(_rounded(both, judged.rounding))
        if rounded:
            # Asked for floats in some runs and not in others, a runtime fuses operations in some
            # and not in others, and gives values that do not follow from each other; it is asked
            # for the integers alone, all in one run.
            alone = _judged(run, both.ask(rounded), tolerance)
            judged = alone if not judged.at_rounded or alone.first is None else judged
    compared = [*answer.values, *both.estimated]
    values = sum(len(probe.expected) for probe in compared)
    replaced: tuple[str, ...] = ()
    if judged.outputs and judged.first is None and not answer.refused:
        replaced = instead(both, [one.address for one in judged.outputs], tolerance)
    counts_differ = any(
        there.shape[: len(probe.lengths)] != probe.lengths for probe, there in answer.values.items()
    )
    cause = (
        byte_sums.sentence(run.model, judged.first, both.patience)
        if judged.outputs or judged.first is not None
        else ""
    )
    if judged.outputs and not replaced:
        cause = cause or dynamic_quantization.sentence(
            run,
            both.given,
            [one.address for one in judged.outputs],
            both.patience,
            tolerance,
            both.document,
        )
    cause = cause or judged.reason(answer.runtime)
    left_out = {**both.left_out, **({_JOINED: judged.joined} if judged.joined else {})}
    return ComparisonReport(
        answer.runtime, judged.outputs, judged.first, values, len(compared), left_out, answer.refused, reasons,
        judged.quanta(run), judged.following, replaced, counts_differ, cause,
    )  # fmt: skip


def _rounded(both: RuntimeComparison, rounding: Rounding) -> Iterator[Probe]:
    """The integers that were made of floats, as they are, as many as may be asked for at once."""
    run, left = both.run, _MOST_FETCHED
    for probe in (*both.answer.values, *both.estimated):
        if (
            is_small(run.values.get(run.timeline, probe.program, 0, probe.slot))
            and whole_bytes(run, probe) <= left
        ):
            whole = probe if probe.fingerprint is None else as_it_is(run, probe)
            if rounding.is_quantizing(whole):
                left -= whole.expected.nbytes
                yield whole


def fed(run: Run, inputs: Inputs) -> list[Any]:
    """The inputs of a finished run as its runtime is given them; ``EngineError`` where it cannot
    be given them, or the run not repeated.
    """
    if run.state != "finished":
        raise EngineError("only a run that has finished can be compared with another runtime")
    if run.overrides.slots:
        raise EngineError("values were set by hand in this run, which another runtime cannot do")
    given = bind(run.model, inputs)
    values = [given[signature.layer] for signature in run.model.inputs]
    odd = {
        type_name(one.dtype)
        for one in values
        if isinstance(one, np.ndarray) and one.dtype.isbuiltin != 1
    }
    if odd - (NARROW if run.model.dialect == "onnx" else frozenset()):
        raise EngineError(
            f"the runtime cannot be given inputs of type {', '.join(sorted(odd))}, which this model takes"
        )
    return values


def instead(both: RuntimeComparison, outputs: Sequence[str], tolerance: float) -> tuple[str, ...]:
    """Return what the runtime runs in place of loops and branches that these outputs come from, and
    where that begins to differ.

    For the last the runtime is asked for the outputs of the loops alone: asked for values inside,
    it runs the loops themselves.
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
        found = list(replaced_regions(run, fate.regions, results))
        probes = fused_outputs.outputs_of(
            run, [one.instruction for one in found], list(both.answer.values)
        )
        given = both.ask(probes) if probes else None
    except EngineError:
        if patience.stopped():
            raise
        return ()  # it ran the model, and does not show what it made of it
    begins = (
        None
        if given is None
        else fused_outputs.beginning(run, given.values, both.answer.runtime, tolerance)
    )
    if begins is None:
        return tuple(one.sentence for one in found)
    return (*(one.sentence for one in found if one.instruction is begins[0]), begins[1])


@dataclass(frozen=True, slots=True)
class _Judged:
    """What is to be said of the values that differ."""

    rounding: Rounding
    first: ValueDifference | None
    outputs: tuple[ValueDifference, ...]
    following: tuple[ValueDifference, ...]
    """Outputs that differ by quanta, or for their sake."""
    at: tuple[Probe, int] | None
    """The value, and its row, that the first is; None where something else than a value differs."""
    joined: int = 0
    """Values of another shape that the runtime has made one operation of with those that read
    them.
    """

    @property
    def at_rounded(self) -> bool:
        """Whether the first is an integer that was made of floats."""
        return self.at is not None and self.rounding.is_quantizing(self.at[0])

    def reason(self, runtime: str) -> str:
        """Why the first value differs, in a sentence; empty where that is not known."""
        if self.at is None:
            return ""
        probe, row = self.at
        name = elided(readable(value_names(probe.program)[probe.slot]))
        if narrow := self.rounding.passed_over(probe, row):
            return f"{runtime} leaves out the rounding to {narrow} before {name}: its numbers there are none that {narrow} holds."
        if not self.rounding.turns(probe, row):
            return ""
        same = f"Computed from what {runtime} has for its inputs, {name} is the same here"
        return f"{same}: those differ by less than the tolerance, and it makes more of that."

    def quanta(self, run: Run) -> Quanta | None:
        steps = self.rounding.steps
        if not steps:
            return None
        first = steps[0]
        where = self.following[0] if first.probe is None else _of_step(run, first)
        elements = sum(int(np.count_nonzero(one.apart)) for one in steps)
        return Quanta(
            first.element_type, elements, sum(one.here.size for one in steps), len(steps), where
        )


def _judged(run: Run, answer: RuntimeAnswer, tolerance: float) -> _Judged:
    rows = {
        probe: there
        for probe in answer.values
        if (there := rows_of(probe, answer.values[probe])) is not None
    }
    rounding = Rounding(CrossReplay(run, rows), tolerance)
    joined = frozenset(
        probe for probe in answer.values if probe not in rows and _is_joined(probe, rows, tolerance)
    )
    odd = (
        _structure(run, probe, answer.values[probe])
        for probe in answer.values
        if probe not in joined
    )
    first = min((one for one in odd if one is not None), key=lambda one: one.step, default=None)
    at: tuple[Probe, int] | None = None
    differing = heapq.merge(
        *(_differing(run, probe, there, rounding) for probe, there in rows.items()),
        key=lambda one: one[0],
    )
    for count, (step, row, probe) in enumerate(differing):
        if first is not None and first.step <= step:
            break
        if count == _MOST_JUDGED or not rounding.explains(probe, row):
            first, at = _named(run, probe, row, rows[probe], rounding), (probe, row)
            break
    return _Judged(rounding, first, *_ends(run, answer, rounding, first), at, len(joined))


def _is_joined(probe: Probe, rows: Mapping[Probe, np.ndarray], tolerance: float) -> bool:
    """Return whether a value has another shape in the runtime although all that is computed from it
    agrees.

    A runtime that makes one operation of several may give its result under the name of a part.
    """
    instructions = probe.program.instructions
    readers = {
        number
        for number, one in enumerate(instructions)
        if probe.slot in one.inputs and one.region is None
    }
    behind = [one for one in rows if one.program is probe.program and one.position in readers]
    agree = (close(one.expected[: len(rows[one])], rows[one], tolerance).all() for one in behind)
    return len({one.position for one in behind}) == len(readers) > 0 and all(agree)


def _structure(run: Run, probe: Probe, there: np.ndarray) -> ValueDifference | None:
    """Where shapes or numbers of iterations differ."""
    here, lengths = probe.expected, there.shape[: len(probe.lengths)]
    if there.shape[len(lengths) :] != here.shape[1:]:
        shape = ",".join(map(str, there.shape[len(lengths) :]))
        return _at(run, probe, 0, f"shape {shape_text(here[0])}", f"shape [{shape}]")
    if lengths == probe.lengths:
        return None
    told = [
        f"in {' x '.join(f'{length:,}' for length in each)} iterations"
        for each in (probe.lengths, lengths)
    ]
    common = (
        0
        if lengths[1:] != probe.lengths[1:]
        else int(np.searchsorted(probe.places, math.prod(lengths)))
    )
    return _at(run, probe, min(common, len(here) - 1), *told)


def _differing(
    run: Run, probe: Probe, there: np.ndarray, rounding: Rounding
) -> Iterator[tuple[int, int, Probe]]:
    """The rows in which a value differs, with the step of each."""
    same = close(probe.expected[: len(there)], there, rounding.tolerance)
    for row in np.flatnonzero(~same.reshape(len(there), -1).all(axis=1)).tolist():
        if not rounding.agree(probe.program, row, probe.slot, probe.expected[row], there[row]):
            yield run.timeline.step_at(probe.program, row, probe.position + 1), row, probe


def _named(
    run: Run, probe: Probe, row: int, there: np.ndarray, rounding: Rounding
) -> ValueDifference:
    """A value of which one side has something else, at the first such element."""
    place = first_apart(probe.expected[row : row + 1], there[row : row + 1], rounding.tolerance)
    assert place is not None
    return _at(
        run, probe, row, *elements_told(probe.expected[row : row + 1], there[row : row + 1], place)
    )


def _of_step(run: Run, one: OneStep) -> ValueDifference:
    assert one.probe is not None
    return _at(
        run, one.probe, one.row, *elements_told(one.here[None], one.there[None], (0, *one.place))
    )


def _ends(
    run: Run, answer: RuntimeAnswer, rounding: Rounding, first: ValueDifference | None
) -> tuple[tuple[ValueDifference, ...], tuple[ValueDifference, ...]]:
    """The outputs of the model that differ, and those that differ for the sake of quanta."""
    outputs: list[ValueDifference] = []
    following: list[ValueDifference] = []
    main = run.plan.main
    for signature, here, there in _pairs(run, answer):
        slot = main.results[signature.layer]
        if not_compared(here, there) or (told := apart(here, there, rounding.tolerance)) is None:
            continue
        if is_numeric(here) and is_numeric(there):
            if rounding.agree(main, 0, slot, here, there):
                continue
            if first is None and rounding.explains_output(main, slot, here, there):
                following.append(ValueDifference(signature.name, -1, *told))
                continue
        outputs.append(ValueDifference(signature.name, -1, *told))
    return tuple(outputs), tuple(following)


def _pairs(run: Run, answer: RuntimeAnswer) -> Iterator[tuple[Signature, Any, Any]]:
    """Each output of the model, with what it is here and there."""
    return zip(run.model.outputs, run.result.outputs, answer.outputs, strict=True)


def _at(run: Run, probe: Probe, row: int, here: str, there: str) -> ValueDifference:
    address = f"{run.timeline.address(probe.program, row)}/{value_names(probe.program)[probe.slot]}"
    return ValueDifference(
        address, run.timeline.step_at(probe.program, row, probe.position + 1), here, there
    )
