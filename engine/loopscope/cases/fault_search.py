"""Faults of a runtime, and the search for the smallest model that still shows one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from loopscope.cases.case import code_span
from loopscope.cases.runner_script import Goal
from loopscope.checks.diagnostic import InvalidModel
from loopscope.debug.debugger import Debugger
from loopscope.errors import EngineError, ValueUnavailable
from loopscope.executor.machine.limits import Limits
from loopscope.ir.address import nodes
from loopscope.ir.model import Model
from loopscope.peers import TOLERANCE, UNOPTIMIZED, RuntimeFailed, RuntimeProcess
from loopscope.peers.comparing import apart, not_compared

_MAX_REASON = 300
"""Maximum number of characters of a runtime's message in a sentence."""
_SHARE = 0.1
"""Share of the first difference that a smaller model must still show.

Without it, a reduction ends at differences of rounding.
"""
_LIMITS = Limits(iterations=200_000, seconds=20.0)
"""Limits of one run of a smaller model. A changed condition may never end a loop."""
_SEED = 1


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model with a value for each input, in order."""

    model: Model
    inputs: tuple[Any, ...]
    place: str = ""
    """Address of the graph in the original model, with iterations; empty for the outermost."""

    def changed(self, model: Model, inputs: tuple[Any, ...] | None = None) -> Candidate:
        """Return a candidate of the same place with another model, and other inputs."""
        return Candidate(model, self.inputs if inputs is None else inputs, self.place)

    @cached_property
    def run(self) -> Debugger:
        """The run to its end; raises the errors of ``Debugger``."""
        run = Debugger(self.model, list(self.inputs), limits=_LIMITS, seed=_SEED)
        run.run()
        return run

    @property
    def finished(self) -> bool:
        return self.run.state == "finished"

    @cached_property
    def outputs(self) -> tuple[Any, ...]:
        """The outputs of the run, in order; ``ValueUnavailable`` if it did not finish."""
        if not self.finished:
            raise ValueUnavailable(self.run.failure or "the run did not finish")
        return tuple(self.run.result.outputs)

    @cached_property
    def node_count(self) -> int:
        """Number of operations in all graphs, without Parameters, Results and Consts."""
        return sum(
            node.type not in ("Parameter", "Result") and node.constant is None
            for _, node in nodes(self.model)
        )

    @cached_property
    def element_count(self) -> int:
        """Number of elements of inputs and constants."""
        constants = sum(
            node.constant.elements for _, node in nodes(self.model) if node.constant is not None
        )
        return constants + sum(np.size(value) for value in self.inputs if _is_array(value))


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def arrays(values: Sequence[Any]) -> list[np.ndarray]:
    """Return the values that are arrays of numbers."""
    return [
        np.asarray(value) for value in values if _is_array(value) and value.dtype.kind in "biuf"
    ]


class Fault(Protocol):
    """A fault that a model shows."""

    goal: Goal
    process: RuntimeProcess

    def expect(self, candidate: Candidate) -> None:
        """Remember how the whole model shows the fault; raise ``EngineError`` if it does not."""

    def shows(self, candidate: Candidate) -> bool:
        """Return True if a smaller model shows the fault too."""

    def sentence(self, candidate: Candidate) -> str:
        """Return a sentence about what the model shows."""


def _runs(candidate: Candidate) -> bool:
    """Return True if a candidate is a valid model whose run finishes."""
    try:
        return candidate.finished
    except EngineError:
        return False


def distance(own: Any, peer: Any, tolerance: float) -> float:
    """Return how far two values are apart, relative to the largest magnitude; 0 if they agree.

    The distance is infinite if the kinds, shapes or NaN elements differ.
    """
    if not_compared(own, peer) or apart(own, peer, tolerance) is None:
        return 0.0
    left, right = np.asarray(own), np.asarray(peer)
    if left.shape != right.shape or left.dtype == object:
        return np.inf
    with np.errstate(all="ignore"):
        left, right = left.astype(np.float64), right.astype(np.float64)
        scale = np.abs(left[np.isfinite(left)]).max(initial=np.finfo(np.float64).tiny)
        gaps = np.abs(left - right)
        return float(np.inf if np.isnan(gaps).any() else gaps.max(initial=0.0) / scale)


@dataclass(slots=True)
class Difference:
    """A difference between a runtime's outputs and those of Loopscope."""

    process: RuntimeProcess
    tolerance: float = TOLERANCE
    goal: Goal = "compare"
    _required: float = 0.0

    def expect(self, candidate: Candidate) -> None:
        if not candidate.finished:
            raise EngineError(
                f"the run does not finish, so there are no outputs to compare: "
                f"{candidate.run.failure}"
            )
        size = self._largest(candidate)
        if not size:
            raise EngineError(
                f"{self.process.version} computes the same outputs: there is no difference to "
                "reproduce"
            )
        self._required = min(size, 1.0) * _SHARE

    def shows(self, candidate: Candidate) -> bool:
        if not _runs(candidate):
            return False
        try:
            return self._largest(candidate) >= max(self._required, np.finfo(np.float64).tiny)
        except RuntimeFailed:
            return False

    def _largest(self, candidate: Candidate, *settings: str) -> float:
        peers = self.process.outputs(candidate.model, candidate.inputs, *settings)
        return max(
            (
                distance(own, peer, self.tolerance)
                for own, peer in zip(candidate.outputs, peers, strict=True)
            ),
            default=0.0,
        )

    def sentence(self, candidate: Candidate) -> str:
        peers = self.process.outputs(candidate.model, candidate.inputs)
        own_outputs = zip(candidate.model.outputs, candidate.outputs, peers, strict=True)
        for signature, own, peer in own_outputs:
            if not_compared(own, peer):
                continue
            sides = apart(own, peer, self.tolerance)
            if sides is not None:
                count = _differing(own, peer, self.tolerance)
                text = (
                    f"Output {code_span(signature.name)} differs: {sides[1]} in "
                    f"{self.process.version}, {sides[0]} by the definition{count}."
                )
                return f"{text} {self._without_optimisations(candidate)}".strip()
        return ""

    def _without_optimisations(self, candidate: Candidate) -> str:
        if self.process.runtime != "onnxruntime":
            return ""
        try:
            size = self._largest(candidate, UNOPTIMIZED)
        except RuntimeFailed as error:
            reason = code_span(error.reason, _MAX_REASON)
            return f"Without graph optimisations it does not run the model: {reason}."
        return (
            "It differs without graph optimisations too."
            if size
            else "Without graph optimisations the outputs agree."
        )


def _differing(own: Any, peer: Any, tolerance: float) -> str:
    left, right = np.asarray(own), np.asarray(peer)
    if left.shape != right.shape or left.size < 2 or left.dtype == object:
        return ""
    wrong = sum(
        apart(own_element, peer_element, tolerance) is not None
        for own_element, peer_element in zip(left.reshape(-1), right.reshape(-1), strict=True)
    )
    return f" ({wrong:,} of {left.size:,} elements)"


@dataclass(slots=True)
class NotANumber:
    """NaN in the outputs of a runtime and of Loopscope, from inputs without NaN."""

    process: RuntimeProcess
    goal: Goal = "nan"
    _finite: bool = False

    def expect(self, candidate: Candidate) -> None:
        self._finite = _all_finite(candidate)
        if not candidate.finished or not _has_nan(candidate.outputs):
            raise EngineError("no output contains NaN: there is nothing to reproduce")
        if _has_nan(candidate.inputs):
            raise EngineError("an input contains NaN: expected inputs of numbers")
        peers = self.process.outputs(candidate.model, candidate.inputs)
        if not _has_nan(peers):
            raise EngineError(
                f"the outputs contain NaN here but not in {self.process.version}: "
                f"use --differs {self.process.runtime}"
            )

    def shows(self, candidate: Candidate) -> bool:
        if not _runs(candidate) or not _has_nan(candidate.outputs):
            return False
        if not (_all_finite(candidate) if self._finite else not _has_nan(_sources(candidate))):
            return False
        try:
            return _has_nan(self.process.outputs(candidate.model, candidate.inputs))
        except RuntimeFailed:
            return False

    def sentence(self, candidate: Candidate) -> str:
        for signature, value in zip(candidate.model.outputs, candidate.outputs, strict=True):
            count = sum(int(np.isnan(array).sum()) for array in arrays([value]) if _is_float(array))
            if count:
                sources = "finite" if self._finite else "without NaN"
                return (
                    f"Output {code_span(signature.name)} contains {count:,} NaN, in "
                    f"{self.process.version} and by the definition, although all inputs and "
                    f"weights are {sources}."
                )
        return ""


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f"


def _has_nan(values: Sequence[Any]) -> bool:
    return any(bool(np.isnan(array).any()) for array in arrays(values) if _is_float(array))


def _sources(candidate: Candidate) -> list[Any]:
    """Return the inputs and constants of a candidate."""
    constants = [
        node.constant.array()
        for _, node in nodes(candidate.model)
        if node.constant is not None and node.constant.is_kept
    ]
    return [*candidate.inputs, *constants]


def _all_finite(candidate: Candidate) -> bool:
    return all(
        bool(np.isfinite(array).all()) for array in arrays(_sources(candidate)) if _is_float(array)
    )


@dataclass(slots=True)
class RuntimeFailure:
    """A runtime that does not run the model; ``expect`` stores its reason."""

    process: RuntimeProcess
    goal: Goal = "fails"
    _reason: str = ""
    _runs_here: bool = False

    def expect(self, candidate: Candidate) -> None:
        reason = self._reason_of(candidate)
        if reason is None:
            raise EngineError(
                f"{self.process.version} runs the model: there is no failure to reproduce"
            )
        self._reason, self._runs_here = _kind(reason), _runs(candidate)

    def shows(self, candidate: Candidate) -> bool:
        """Return True if the runtime fails for the same reason.

        A model that runs in Loopscope must still run, so that the smaller model is a valid one.
        """
        try:
            if candidate.finished is not self._runs_here:
                return False
        except InvalidModel:
            return False
        except EngineError:
            if self._runs_here:
                return False
        reason = self._reason_of(candidate)
        return reason is not None and _kind(reason) == self._reason

    def _reason_of(self, candidate: Candidate) -> str | None:
        try:
            self.process.outputs(candidate.model, candidate.inputs)
        except RuntimeFailed as error:
            return error.reason
        return None

    def sentence(self, candidate: Candidate) -> str:
        reason = code_span(self._reason_of(candidate) or "", _MAX_REASON)
        own = "Loopscope runs it" if self._runs_here else "Loopscope does not run it either"
        return f"{self.process.title} does not run the model: {reason}. {own}."


def _kind(reason: str) -> str:
    """Return the words of an error without names, numbers and places."""
    without_names = re.sub(r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^\]]*\]|\{[^}]*\}", "", reason)
    return " ".join(re.findall(r"[A-Za-z]{3,}", re.sub(r"\S*[\d/_:.]\S*", " ", without_names))[:12])


class TimeUp(Exception):
    """The end of the time of a search."""


@dataclass(slots=True)
class ReductionSearch:
    """The smallest model so far that shows the fault."""

    fault: Fault
    best: Candidate
    deadline: float = float("inf")
    """Time at which the search ends, in seconds of ``time.monotonic``."""
    report: Callable[[ReductionSearch], None] = lambda _: None
    """Called after each attempt."""
    attempts: int = 0
    accepted: int = 0

    def accepts(self, candidate: Candidate) -> bool:
        """Return True if a candidate shows the fault; it is the best one from then on.

        Raise ``TimeUp`` after the deadline.
        """
        if time.monotonic() > self.deadline:
            raise TimeUp
        self.attempts += 1
        try:
            shows = self.fault.shows(candidate)
        except EngineError:  # a candidate that no file can express, for example
            shows = False
        if shows:
            self.accepted += 1
            self.best = candidate
        self.report(self)
        return shows
