"""A failing expectation of a file of tests, as the fault that a smaller model must still show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import loopscope
from loopscope.cases import Candidate, Goal, code_span
from loopscope.errors import EngineError
from loopscope.ir import ROOT, full_address
from loopscope.peers import RuntimeProcess
from loopscope_app.command.loop_tests.expectations import (
    Expectation,
    ExpectedBranches,
    ExpectedCheck,
    ExpectedControlFlow,
    ExpectedDrift,
    ExpectedEnding,
    ExpectedFinite,
    ExpectedIterations,
)
from loopscope_app.command.loop_tests.file import quoted, read_tests
from loopscope_app.command.loop_tests.one_run import RUNTIMES, RunVerifier
from loopscope_app.command.loop_tests.results import ExpectationResult

_MAX_CHARACTERS = 300
"""Maximum number of characters of an expectation or a reason in a sentence."""
_SECONDS = 20.0
"""Time limit of each further run that an expectation needs."""
_ITERATION = re.compile(r"\[\d+\]")


def expectations_about(file: str, model: str) -> tuple[Expectation, ...]:
    """Return what the tests of a file expect of a model; ``EngineError`` if none is about it."""
    tests = [
        test
        for test in read_tests(file)
        if Path(test.path(test.model)).exists() and Path(test.path(test.model)).samefile(model)
    ]
    if not tests:
        raise EngineError(f"{file}: no test is about {model}, expected one with that model")
    return tuple(expected for test in tests for expected in test.expectations)


@dataclass(slots=True)
class FailingTest:
    """The first expectation that the whole model does not meet."""

    process: RuntimeProcess
    """The runtime of the script; the expectation itself is verified here."""
    expectations: tuple[Expectation, ...]
    goal: Goal = "test"
    _failing: Expectation | None = None
    _way: tuple[str, ...] = ()
    """The way in which the whole model fails."""

    def expect(self, candidate: Candidate) -> None:
        """Choose the expectation; raise ``EngineError`` if the model meets all of them."""
        for expectation in self.expectations:
            absolute = _absolute(expectation, candidate.model)
            result = _outcome(candidate, absolute)
            if result.state == "failed":
                _refuse_other_models(expectation)
                self._failing, self._way = absolute, _way(result)
                return
        raise EngineError("the model meets every expectation: there is no failure to reproduce")

    def shows(self, candidate: Candidate) -> bool:
        """Return True if a smaller model fails in the same way."""
        expectation = self.expectation_in(candidate)
        if expectation is None or not candidate.finished:
            return False
        result = _outcome(candidate, expectation)
        return result.state == "failed" and _way(result) == self._way

    def sentence(self, candidate: Candidate) -> str:
        expectation = self.expectation_in(candidate)
        if expectation is None:
            return ""
        reason = _outcome(candidate, expectation).reason.rstrip(".")
        words = code_span(expectation.words, _MAX_CHARACTERS)
        return f"Expected {words}, but {code_span(reason, _MAX_CHARACTERS)}."

    def expectation_in(self, candidate: Candidate) -> Expectation | None:
        """Return the expectation with its address in a candidate; None if that is outside of it."""
        expectation = self._failing
        place = _ITERATION.sub("", candidate.place)
        match expectation:
            case ExpectedIterations() | ExpectedEnding() | ExpectedBranches() if place:
                if not expectation.address.startswith(f"{place}/"):
                    return None
                return replace(expectation, address=f"{ROOT}{expectation.address[len(place) :]}")
        return expectation


def _absolute(expectation: Expectation, model: loopscope.Model) -> Expectation:
    """Return the expectation with a whole address, as a shorter one may become ambiguous."""
    match expectation:
        case ExpectedIterations() | ExpectedEnding() | ExpectedBranches():
            address = full_address(model, expectation.address)
            is_whole = address.partition("/")[0] == ROOT
            return replace(expectation, address=address if is_whole else f"{ROOT}/{address}")
    return expectation


def _refuse_other_models(expectation: Expectation) -> None:
    match expectation:
        case ExpectedControlFlow():
            pass
        case ExpectedDrift(against=against) if against and against not in RUNTIMES:
            pass
        case _:
            return
    raise EngineError(
        f"'{expectation.words}' compares with another model, which would not become smaller: "
        "expected an expectation about one model"
    )


def _outcome(candidate: Candidate, expectation: Expectation) -> ExpectationResult:
    """Verify an expectation on a run of its own, because a failure moves its cursor."""
    run = candidate.changed(candidate.model).run
    names = (node.name for node in candidate.model.inputs)
    inputs: Mapping[str | int, object] = dict(zip(names, candidate.inputs, strict=True))
    return RunVerifier(run, inputs, "", lambda name: name, _SECONDS).outcome(expectation)


def _way(result: ExpectationResult) -> tuple[str, ...]:
    """Return the words of a reason without places, names and numbers.

    Without them a loop that ends too late could become one that does not run at all.
    """
    text = result.reason.replace(result.address, "") if result.address else result.reason
    return tuple(re.findall(r"LS\d+|[A-Za-z]+", re.split(r"[`:]", text.lstrip(": "))[0]))


def as_toml(expectation: Expectation, model: str, inputs: str) -> str:
    """Return a file of tests with one expectation."""
    lines = ["[[test]]", f"model = {quoted(model)}", f"inputs = {quoted(inputs)}"]
    return "\n".join([*lines, *_entries(expectation), ""])


def _entries(expectation: Expectation) -> Iterator[str]:
    match expectation:
        case ExpectedIterations(address, bound):
            yield f"iterations.{quoted(address)} = {quoted(bound.words)}"
        case ExpectedEnding(address, endings):
            yield f"ended.{quoted(address)} = [{', '.join(map(quoted, endings))}]"
        case ExpectedBranches(address, text):
            yield f"branch.{quoted(address)} = {quoted(text)}"
        case ExpectedDrift(against=against, rounding=rounding, at_most=at_most):
            other = (
                f"against = {quoted(against)}"
                if against
                else f"round = [{', '.join(map(quoted, rounding))}]"
            )
            yield f"drift = {{ {other}, at_most = {at_most!r} }}"
        case ExpectedCheck(level):
            yield f"check = {quoted(level)}"
        case ExpectedFinite():
            yield "finite = true"
