"""The first place, in the order of the run, where another runtime gives something else: which operation, in which iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.debug.inputs import Inputs, bind
from engine.debug.names import value_names
from engine.debug.run import Run
from engine.errors import EngineError, short_name
from engine.ir.model import Signature
from engine.native.alone import never
from engine.peers.comparing import apart, counted, elements_told, first_apart, not_compared, shape_text
from engine.peers.other_runtimes import Patience, Truth, ask
from engine.peers.probes import Probe, probes

TOLERANCE = 1e-3
"""Of the largest magnitude in a tensor: what sums in another order and vector instructions may add up to over many iterations."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs."""

    address: str
    """Such as ``main/while_3[2]/body/Add_7``; the name of an output of the model."""
    step: int
    """Of our run; -1 for an output."""
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class Report:
    """What came out of a comparison."""

    runtime: str
    """Name and version."""
    outputs: tuple[Difference, ...]
    """The outputs of the model that differ."""
    first: Difference | None
    """The first value inside that differs; None where all agree."""
    values: int = 0
    """Values inside that were compared, each iteration counted."""
    places: int = 0
    """At so many places of the graph."""
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """Places that were not compared, by the reason."""
    refused: str = ""
    """Why the runtime did not give the values inside; empty where it did."""
    outputs_left_out: dict[str, str] = field(default_factory=dict[str, str])
    """Outputs of the model that were not compared, with the reason."""

    @property
    def agrees(self) -> bool:
        """Whether nothing that was compared differs, inside or at the end."""
        return not self.outputs and self.first is None

    @property
    def outputs_agree(self) -> bool:
        """Whether no output that was compared differs; values inside may."""
        return not self.outputs

    @property
    def sentence(self) -> str:
        """What to know, in one to three sentences, never cut: what is long is a name, and is shortened in its middle."""
        return f"{self._verdict} {self._omissions}".strip()

    def _sides(self, one: Difference) -> str:
        return f"{one.there} in {self.runtime}, {one.here} here"

    @property
    def _omissions(self) -> str:
        told = [f"{short_name(name)!r} ({why})" for name, why in self.outputs_left_out.items()]
        return f"Not compared: {', '.join(told)}." if told else ""

    @property
    def _verdict(self) -> str:
        if self.first is not None:
            told = f"{short_name(self.first.address)} is the first value that differs: {self._sides(self.first)}."
            agree = "The outputs of the model agree" if not self.outputs_left_out else "The outputs that were compared agree"
            return told if self.outputs else f"{told} {agree}."
        if not self.outputs:
            inside = f", and so do {counted(self.values, 'value')} at {counted(self.places, 'place')} inside" if self.values else ""
            which = "All outputs" if not self.outputs_left_out else "The outputs that were compared"
            return f"{which} agree with {self.runtime}{inside}."
        one = self.outputs[0]
        told = f"The output {short_name(one.address)!r} differs: {self._sides(one)}."
        if self.refused:
            return f"{told} Where it begins cannot be said: {self.refused}."
        agree = (
            f"what could be compared inside agrees ({counted(self.values, 'value')})"
            if self.values
            else "no value inside could be compared"
        )
        return f"{told} Where it begins cannot be said: {agree}."


def against(
    run: Run,
    inputs: Inputs,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> Report:
    """Compares a finished run with the runtime of its model: OpenVINO for IR, ONNX Runtime for ONNX.

    Values agree that differ by at most ``tolerance`` times the largest magnitude in the tensor; integers and truth values must be
    equal. ``document`` is the content of an ONNX file, for a model that was read from its bytes. ``EngineError`` when the run has
    not finished, the runtime cannot run the model within ``seconds``, or ``stopped`` says yes before it has.
    """
    if run.state != "finished":
        raise EngineError("only a run that has finished can be compared with another runtime")
    if run.overrides.slots:
        raise EngineError("values were set by hand in this run, which another runtime cannot do")
    given = bind(run.model, inputs)
    fed = [given[signature.layer] for signature in run.model.inputs]
    if any(isinstance(one, np.ndarray) and one.dtype.isbuiltin != 1 for one in fed):
        raise EngineError("other runtimes are given inputs of numpy's own types only, and this model takes others")
    found = probes(run)
    truth = ask(run, fed, found.asked, Patience(seconds, stopped), document)
    reasons = {one.name: why for one, here, there in _pairs(run, truth) if (why := not_compared(here, there))}
    if reasons and len(reasons) == len(truth.outputs) and not truth.values:
        raise EngineError(f"no output can be compared: {short_name(next(iter(reasons)))!r} is not, since {next(iter(reasons.values()))}")
    outputs = tuple(_outputs(run, truth, tolerance))
    differing = [_difference(run, probe, truth.values[probe], tolerance) for probe in truth.values]
    first = min((one for one in differing if one is not None), key=lambda one: one.step, default=None)
    values = sum(len(probe.expected) for probe in truth.values)
    return Report(truth.runtime, outputs, first, values, len(truth.values), found.left_out, truth.refused, reasons)


def _outputs(run: Run, truth: Truth, tolerance: float) -> Iterator[Difference]:
    for signature, here, there in _pairs(run, truth):
        told = None if not_compared(here, there) else apart(here, there, tolerance)
        if told is not None:
            yield Difference(signature.name, -1, *told)


def _pairs(run: Run, truth: Truth) -> Iterator[tuple[Signature, Any, Any]]:
    """Each output of the model, with what it is here and there."""
    return zip(run.model.outputs, run.result.outputs, truth.outputs, strict=True)


def _difference(run: Run, probe: Probe, there: np.ndarray, tolerance: float) -> Difference | None:
    """The first row in which a value differs."""
    here, lengths = probe.expected, there.shape[: len(probe.lengths)]
    rows = there.reshape(math.prod(lengths), *there.shape[len(lengths) :])
    if rows.shape[1:] != here.shape[1:]:
        return _at(run, probe, 0, f"shape {shape_text(here[0])}", f"shape [{','.join(map(str, rows.shape[1:]))}]")
    told = [f"in {' x '.join(f'{length:,}' for length in each)} iterations" for each in (probe.lengths, lengths)]
    if lengths[1:] != probe.lengths[1:]:
        return _at(run, probe, 0, *told)
    common = int(np.searchsorted(probe.places, len(rows)))
    place = first_apart(here[:common], rows[probe.places[:common]], tolerance)
    if place is not None:
        return _at(run, probe, place[0], *elements_told(here, rows[probe.places[:common]], place))
    return _at(run, probe, min(common, len(here) - 1), *told) if lengths != probe.lengths else None


def _at(run: Run, probe: Probe, row: int, here: str, there: str) -> Difference:
    address = f"{run.timeline.address(probe.program, row)}/{value_names(probe.program)[probe.slot]}"
    return Difference(address, run.timeline.step_at(probe.program, row, probe.position + 1), here, there)
