"""Judgement of a runtime's values: the first that differs, the outputs that differ, and which
differences are quantisation steps or their consequences.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.lookup import value_names
from loopscope.debug.run import Run
from loopscope.errors import elided
from loopscope.ir.model import Signature
from loopscope.ir.readable import readable
from loopscope.peers.comparing import (
    apart,
    close,
    element_texts,
    first_apart,
    is_numeric,
    not_compared,
    shape_text,
)
from loopscope.peers.other_runtimes import RuntimeAnswer, rows_of
from loopscope.peers.probes import Probe
from loopscope.peers.quantization_steps import QuantizationStep, RoundingAnalysis
from loopscope.peers.replay_with_inputs import CrossReplay
from loopscope.peers.report import Quanta, ValueDifference

_MAX_EXPLAINED = 5_000
"""Maximum number of differing values that are replayed to find the consequences of a quantisation
step.
"""


@dataclass(frozen=True, slots=True)
class Judgement:
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
                f"{runtime} omits the rounding to {narrow} before {name}: "
                f"its values there are not representable in {narrow}."
            )
        if not self.rounding.reproduces(probe, row):
            return ""
        return (
            f"Recomputed from the inputs that {runtime} has, {name} equals its value: "
            "the inputs differ by less than the tolerance, and this operation amplifies that."
        )

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


def judge(run: Run, answer: RuntimeAnswer, tolerance: float) -> Judgement:
    """Compare all values of the runtime's answer with those of the run, in the order of the run."""
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
    return Judgement(
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
    for signature, own, peer in output_pairs(run, answer):
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


def output_pairs(run: Run, answer: RuntimeAnswer) -> Iterator[tuple[Signature, Any, Any]]:
    """Return each model output with our value and the runtime's."""
    return zip(run.model.outputs, run.result.outputs, answer.outputs, strict=True)


def _difference_at(run: Run, probe: Probe, row: int, own: str, peer: str) -> ValueDifference:
    address = f"{run.timeline.address(probe.program, row)}/{value_names(probe.program)[probe.slot]}"
    return ValueDifference(
        address, run.timeline.step_at(probe.program, row, probe.position + 1), own, peer
    )
