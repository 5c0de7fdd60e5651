"""The first place, in the order of the run, where another runtime gives something else: which operation, in which iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from engine.debug.debugger import Debugger
from engine.debug.inputs import Inputs, bind
from engine.debug.names import value_names
from engine.errors import EngineError
from engine.native.alone import never
from engine.peers.probes import Probe, probes
from engine.peers.running import Patience, Truth, ask

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

    @property
    def agrees(self) -> bool:
        return not self.outputs and self.first is None

    @property
    def sentence(self) -> str:
        """What to know, in one or two sentences."""
        if self.first is not None:
            told = f"{self.first.address} is the first value that differs: {self.first.there} in {self.runtime}, {self.first.here} here."
            return told if self.outputs else f"{told} The outputs of the model agree."
        if not self.outputs:
            inside = f", and so do {_counted(self.values, 'value')} at {_counted(self.places, 'place')} inside" if self.values else ""
            return f"All outputs agree with {self.runtime}{inside}."
        one = self.outputs[0]
        told = f"The output {one.address!r} differs: {one.there} in {self.runtime}, {one.here} here."
        if self.refused:
            return f"{told} Where it begins cannot be said: {self.refused}."
        agree = (
            f"what could be compared inside agrees ({_counted(self.values, 'value')})"
            if self.values
            else "no value inside could be compared"
        )
        return f"{told} Where it begins cannot be said: {agree}."


def against(
    debugger: Debugger,
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
    if debugger.state != "finished":
        raise EngineError("only a run that has finished can be compared with another runtime")
    if debugger.overrides.slots:
        raise EngineError("values were set by hand in this run, which another runtime cannot do")
    given = bind(debugger.model, inputs)
    fed = [given[signature.layer] for signature in debugger.model.inputs]
    if any(array.dtype.isbuiltin != 1 for array in fed):
        raise EngineError("other runtimes are given inputs of numpy's own types only, and this model takes others")
    found = probes(debugger)
    truth = ask(debugger, fed, found.asked, Patience(seconds, stopped), document)
    outputs = tuple(_outputs(debugger, truth, tolerance))
    differing = [_difference(debugger, probe, truth.values[probe], tolerance) for probe in truth.values]
    first = min((one for one in differing if one is not None), key=lambda one: one.step, default=None)
    values = sum(len(probe.expected) for probe in truth.values)
    return Report(truth.runtime, outputs, first, values, len(truth.values), found.left_out, truth.refused)


def _outputs(debugger: Debugger, truth: Truth, tolerance: float) -> Iterator[Difference]:
    for signature, here, there in zip(debugger.model.outputs, debugger.result.outputs, truth.outputs, strict=False):
        array = np.asarray(here)
        if array.dtype.kind not in "biuf":
            continue
        if array.shape != there.shape:
            yield Difference(signature.name, -1, f"shape {_shape(array)}", f"shape {_shape(there)}")
        elif (place := _first(array[None], there[None], tolerance)) is not None:
            yield Difference(signature.name, -1, *_told(array[None], there[None], place))


def _difference(debugger: Debugger, probe: Probe, there: np.ndarray, tolerance: float) -> Difference | None:
    """The first row in which a value differs."""
    here, lengths = probe.expected, there.shape[: len(probe.lengths)]
    rows = there.reshape(math.prod(lengths), *there.shape[len(lengths) :])
    if rows.shape[1:] != here.shape[1:]:
        return _at(debugger, probe, 0, f"shape {_shape(here[0])}", f"shape [{','.join(map(str, rows.shape[1:]))}]")
    told = [f"in {' x '.join(f'{length:,}' for length in each)} iterations" for each in (probe.lengths, lengths)]
    if lengths[1:] != probe.lengths[1:]:
        return _at(debugger, probe, 0, *told)
    common = int(np.searchsorted(probe.places, len(rows)))
    place = _first(here[:common], rows[probe.places[:common]], tolerance)
    if place is not None:
        return _at(debugger, probe, place[0], *_told(here, rows[probe.places[:common]], place))
    return _at(debugger, probe, min(common, len(here) - 1), *told) if lengths != probe.lengths else None


def _at(debugger: Debugger, probe: Probe, row: int, here: str, there: str) -> Difference:
    address = f"{debugger.timeline.address(probe.program, row)}/{value_names(probe.program)[probe.slot]}"
    return Difference(address, debugger.timeline.step_at(probe.program, row, probe.position + 1), here, there)


def _first(here: np.ndarray, there: np.ndarray, tolerance: float) -> tuple[int, ...] | None:
    """Row and element of the first difference; None where all is close."""
    with np.errstate(all="ignore"):
        if here.dtype.kind == "f":
            one, other = here.astype(np.float64), there.astype(np.float64)
            finite = np.where(np.isfinite(one), np.abs(one), 0)
            scale = finite.max(axis=tuple(range(1, one.ndim)), keepdims=True, initial=0)
            exact = 8 * float(np.finfo(here.dtype).eps)
            same = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= max(tolerance, exact) * scale)
        else:
            same = here == there.astype(here.dtype)
    wrong = np.argwhere(~same)
    return tuple(int(number) for number in wrong[0]) if len(wrong) else None


def _told(here: np.ndarray, there: np.ndarray, place: tuple[int, ...]) -> tuple[str, str]:
    """Both elements at a place, with its index where a row has more than one."""
    index = f" at [{','.join(map(str, place[1:]))}]" if here[place[0]].size > 1 else ""
    return f"{_number(here[place])}{index}", f"{_number(there[place])}{index}"


def _number(value: np.generic) -> str:
    return f"{float(value):.7g}" if isinstance(value, np.floating) else str(value)


def _shape(array: np.ndarray) -> str:
    return f"[{','.join(map(str, array.shape))}]"


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"
