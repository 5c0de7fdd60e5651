"""The first place, in the order of the run, where another runtime gives something else: which operation, in which iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.debug.inputs import Inputs, bind
from engine.debug.names import value_names
from engine.debug.run import Run
from engine.errors import EngineError
from engine.ir.model import Signature
from engine.native.alone import never
from engine.ops.values import NO_VALUE
from engine.peers.probes import Probe, probes
from engine.peers.running import Patience, Truth, ask
from engine.peers.transport import Unread

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
        told = [f"{_name(name)!r} ({why})" for name, why in self.outputs_left_out.items()]
        return f"Not compared: {', '.join(told)}." if told else ""

    @property
    def _verdict(self) -> str:
        if self.first is not None:
            told = f"{_name(self.first.address)} is the first value that differs: {self._sides(self.first)}."
            agree = "The outputs of the model agree" if not self.outputs_left_out else "The outputs that were compared agree"
            return told if self.outputs else f"{told} {agree}."
        if not self.outputs:
            inside = f", and so do {_counted(self.values, 'value')} at {_counted(self.places, 'place')} inside" if self.values else ""
            which = "All outputs" if not self.outputs_left_out else "The outputs that were compared"
            return f"{which} agree with {self.runtime}{inside}."
        one = self.outputs[0]
        told = f"The output {_name(one.address)!r} differs: {self._sides(one)}."
        if self.refused:
            return f"{told} Where it begins cannot be said: {self.refused}."
        agree = (
            f"what could be compared inside agrees ({_counted(self.values, 'value')})"
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
        raise EngineError(f"no output can be compared: {_name(next(iter(reasons)))!r} is not, since {next(iter(reasons.values()))}")
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


def not_compared(here: Any, there: Any) -> str:
    """Why two values cannot be compared; empty when they can, whatever comes of it."""
    if isinstance(there, Unread):
        return f"the runtime's value is of the kind {there.kind}"
    if isinstance(here, (tuple, Mapping)) and type(here) is type(there) and len(here) == len(there):
        ours = here if isinstance(here, tuple) else [here[key] for key in here if key in there]
        theirs = there if isinstance(here, tuple) else [there[key] for key in here if key in there]
        return next((why for one, other in zip(ours, theirs, strict=True) if (why := not_compared(one, other))), "")
    if isinstance(here, (np.ndarray, np.generic)) and here.dtype.kind not in "biufO":
        return f"its element type is {here.dtype}"
    return ""


def apart(here: Any, there: Any, tolerance: float) -> tuple[str, str] | None:
    """How two values of any kind differ, said of each side; None where they agree."""
    kinds = _kind(here), _kind(there)
    if kinds[0] != kinds[1]:
        return kinds
    if isinstance(here, tuple):
        return _first_apart(enumerate(here), dict(enumerate(there)), "element", tolerance)
    if isinstance(here, Mapping):
        if here.keys() != there.keys():
            odd = next(iter(here.keys() ^ there.keys()))
            return (f"a key {odd!r}", f"no key {odd!r}") if odd in here else (f"no key {odd!r}", f"a key {odd!r}")
        return _first_apart(here.items(), there, "key", tolerance)
    if here is NO_VALUE:
        return None
    one, other = np.asarray(here), np.asarray(there)
    if one.shape != other.shape:
        return f"shape {_shape(one)}", f"shape {_shape(other)}"
    place = _first(one[None], other[None], tolerance)
    return None if place is None else _told(one[None], other[None], place)


def _first_apart(items: Iterable[tuple[Any, Any]], there: Mapping[Any, Any], word: str, tolerance: float) -> tuple[str, str] | None:
    for key, value in items:
        if (told := apart(value, there[key], tolerance)) is not None:
            return f"{told[0]} in {word} {key!r}", f"{told[1]} in {word} {key!r}"
    return None


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a sequence of {_counted(len(value), 'value')}"
    if isinstance(value, Mapping):
        return f"a map of {_counted(len(value), 'entry', 'entries')}"
    return "nothing" if value is NO_VALUE else "texts" if np.asarray(value).dtype == object else "a tensor"


def _difference(run: Run, probe: Probe, there: np.ndarray, tolerance: float) -> Difference | None:
    """The first row in which a value differs."""
    here, lengths = probe.expected, there.shape[: len(probe.lengths)]
    rows = there.reshape(math.prod(lengths), *there.shape[len(lengths) :])
    if rows.shape[1:] != here.shape[1:]:
        return _at(run, probe, 0, f"shape {_shape(here[0])}", f"shape [{','.join(map(str, rows.shape[1:]))}]")
    told = [f"in {' x '.join(f'{length:,}' for length in each)} iterations" for each in (probe.lengths, lengths)]
    if lengths[1:] != probe.lengths[1:]:
        return _at(run, probe, 0, *told)
    common = int(np.searchsorted(probe.places, len(rows)))
    place = _first(here[:common], rows[probe.places[:common]], tolerance)
    if place is not None:
        return _at(run, probe, place[0], *_told(here, rows[probe.places[:common]], place))
    return _at(run, probe, min(common, len(here) - 1), *told) if lengths != probe.lengths else None


def _at(run: Run, probe: Probe, row: int, here: str, there: str) -> Difference:
    address = f"{run.timeline.address(probe.program, row)}/{value_names(probe.program)[probe.slot]}"
    return Difference(address, run.timeline.step_at(probe.program, row, probe.position + 1), here, there)


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


def _counted(number: int, word: str, words: str = "") -> str:
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"


def _name(text: str) -> str:
    """A name or address for a sentence: a long one without its middle, since the end tells most.

    >>> _name("a" * 100 + "/body/Add_1")
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…aaaaaaaaaaaaaaaaaaaaaaaaaaaaa/body/Add_1'
    """
    half = _LONGEST_NAME // 2
    return text if len(text) <= _LONGEST_NAME else f"{text[: half - 1]}…{text[-half:]}"


_LONGEST_NAME = 80
