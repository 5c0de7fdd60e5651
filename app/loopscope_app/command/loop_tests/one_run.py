"""Verification of expectations on one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import loopscope
from loopscope.checks import own_runtimes
from loopscope.comparison import COMPARED, Alignment, RequestedPair
from loopscope.debug import run_stopped
from loopscope.errors import EngineError, InputError, counted, shorten
from loopscope.explain import ExecutionHistory, executions, first_infinity, first_nan, verdict
from loopscope.ir import full_address, is_trace, significant
from loopscope.ops import CATALOGUE
from loopscope.peers import drift_from_runtime
from loopscope.timeline import ControlFlowRecord
from loopscope_app.command.drift import parse_rounding
from loopscope_app.command.given_inputs import read_inputs
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
from loopscope_app.command.loop_tests.results import ExpectationResult
from loopscope_app.describe.wording import reason, times

RUNTIMES = ("onnxruntime", "openvino", "openvino:CPU")
"""Names of runtimes that a drift may be against."""
_SEARCH_SECONDS = 60.0


class RunVerifier:
    """Verification of expectations on one finished run."""

    def __init__(
        self,
        run: loopscope.Debugger,
        inputs: Mapping[str | int, object],
        source: str,
        path: Callable[[str], str],
        seconds: float,
    ) -> None:
        """``inputs`` are the values of the run, and ``source`` their text in the test.

        ``path`` resolves the names of other models. ``seconds`` limits each further run.
        """
        self.run, self._inputs, self._source = run, inputs, source
        self._path, self._seconds = path, seconds

    def outcome(self, expectation: Expectation) -> ExpectationResult:
        """Return whether the run meets an expectation; an error if it cannot be verified."""
        try:
            match expectation:
                case ExpectedIterations():
                    return self._iterations(expectation)
                case ExpectedEnding():
                    return self._ending(expectation)
                case ExpectedBranches():
                    return self._branches(expectation)
                case ExpectedDrift():
                    return self._drift(expectation)
                case ExpectedControlFlow():
                    return self._control_flow(expectation)
                case ExpectedCheck():
                    return self._check(expectation)
                case ExpectedFinite():
                    return self._finite(expectation)
        except (EngineError, OSError) as error:
            return ExpectationResult(expectation.words, "error", str(error))

    def _iterations(self, expectation: ExpectedIterations) -> ExpectationResult:
        records = self._records(expectation.address)
        counts = [record.iterations or 0 for record in records]
        for record, count in zip(records, counts, strict=True):
            if not expectation.bound.holds(count):
                return self._failed_at(expectation, record)
        return ExpectationResult(expectation.words, "passed", _counts_text(counts))

    def _ending(self, expectation: ExpectedEnding) -> ExpectationResult:
        records = self._records(expectation.address)
        for record in records:
            if record.ended_by not in expectation.endings:
                return self._failed_at(expectation, record)
        endings = sorted({reason(record.ended_by) for record in records})
        return ExpectationResult(expectation.words, "passed", " or ".join(endings))

    def _branches(self, expectation: ExpectedBranches) -> ExpectationResult:
        records = self._records(expectation.address, branches=True)
        branches = [str(record.branch) for record in records]
        if expectation.bound is not None:
            return self._branch_count(expectation, branches)
        wanted = expectation.branch
        letters = {"T": "then", "E": "else"}
        tape = [letters[letter] for letter in expectation.tape]
        for number, (record, branch) in enumerate(zip(records, branches, strict=True)):
            expected = wanted or (tape[number] if number < len(tape) else "")
            if not expected and expectation.is_prefix:
                break
            if branch != expected:
                text = f"execution {number} took {branch}, expected {expected or 'no more'}. "
                return self._failed_at(expectation, record, text)
        if len(branches) < len(tape):
            text = f"it ran {counted(len(branches), 'time')}, expected {len(tape):,}"
            return self._failed(expectation, expectation.address, text)
        return ExpectationResult(expectation.words, "passed", counted(len(branches), "execution"))

    def _drift(self, expectation: ExpectedDrift) -> ExpectationResult:
        tolerance = expectation.at_most
        if expectation.against in RUNTIMES:
            result = drift_from_runtime(
                self._compared(self.run.model, {}),
                self._inputs,
                tolerance=tolerance,
                seconds=self._seconds,
            )
            drift, sentence, every_value = result.drift, result.sentence, False
        else:
            other = self._other(expectation)
            drift = loopscope.drift(
                self._compared(self.run.model, {}),
                other,
                tolerance=tolerance,
                pairs=RequestedPair.parse(expectation.match),
                alignment=Alignment.parse(expectation.align) if expectation.align else None,
            )
            sentence = drift.sentence
            every_value = (
                bool(expectation.align) or is_trace(self.run.model) or is_trace(other.model)
            )
        error, subject = drift.outputs, "outputs"
        if every_value:  # a trace has no outputs but what it recorded last
            worst = drift.worst
            error, subject = worst.worst.relative if worst is not None else math.nan, "values"
        if error <= tolerance:
            text = f"the {subject} are at most {significant(error, 2)} apart"
            return ExpectationResult(expectation.words, "passed", text)
        first = drift.first.first if drift.first is not None else None
        return self._failed(expectation, first.address if first is not None else "", sentence)

    def _control_flow(self, expectation: ExpectedControlFlow) -> ExpectationResult:
        model = loopscope.read_model(self._path(expectation.other))
        drift = loopscope.drift(self._compared(self.run.model, {}), self._compared(model, {}))
        if not drift.partings:
            return ExpectationResult(expectation.words, "passed", "equal counts and branches")
        first = drift.partings[0]
        return self._failed(expectation, first.address, first.sentence)

    def _check(self, expectation: ExpectedCheck) -> ExpectationResult:
        model = self.run.model
        report = loopscope.check(model, CATALOGUE).about(own_runtimes(model))
        if expectation.code:
            findings = [item for item in report.diagnostics if item.code == expectation.code]
        else:
            warnings = report.warnings if expectation.level == "no warnings" else ()
            findings = [*report.errors, *warnings]
        if not findings:
            return ExpectationResult(expectation.words, "passed", "")
        first = findings[0]
        more = f" (and {len(findings) - 1:,} more)" if len(findings) > 1 else ""
        text = f"{first.code} at {first.where}: {first.message}{more}"
        return ExpectationResult(expectation.words, "failed", text, str(first.where))

    def _finite(self, expectation: ExpectedFinite) -> ExpectationResult:
        for search in (first_nan, first_infinity):
            odd = search(self.run, _SEARCH_SECONDS)
            if odd.step is not None:
                text = f"the first {odd.noun} is in {odd.address}"
                return self._failed(expectation, odd.address, text, odd.step)
            if odd.left:
                text = f"the search for a {odd.noun} did not end in {_SEARCH_SECONDS:g} s"
                return ExpectationResult(expectation.words, "error", text)
        return ExpectationResult(expectation.words, "passed", "")

    # -- the run

    def _records(self, name: str, *, branches: bool = False) -> list[ControlFlowRecord]:
        """Return the records of all executions of a loop or an If; ``InputError`` for any other
        place, and for one that never ran.

        An address with iterations names one execution.
        """
        address = full_address(self.run.model, name)
        history = _history(self.run, address)
        if history is not None:
            records = [
                self.run.control_flow.record_of(history.region, number, history.address(number))
                for number in range(history.count)
            ]
        else:
            record = self.run.record(address)
            records = [] if record is None else [record]
        if records and (records[0].branch is not None) != branches:
            wanted = "an If" if branches else "a loop"
            raise InputError(f"{shorten(name, 100)}: expected {wanted}, got {records[0].kind}")
        if not records:
            raise InputError(f"{shorten(name, 100)}: it did not run, so nothing can be verified")
        return records

    def _failed_at(
        self, expectation: Expectation, record: ControlFlowRecord, text: str = ""
    ) -> ExpectationResult:
        """Return the failure of one execution with its verdict, at the operation that decided."""
        place = record.address
        try:
            result = verdict(self.run, record.address)
        except EngineError:  # a run without weights
            ended = record.branch or f"{times(record.iterations or 0)}, {reason(record.ended_by)}"
            return self._failed(expectation, place, f"{text}{place}: {ended}")
        decided = result.proof[0].address if result.proof else place
        return self._failed(expectation, place, f"{text}{place}: {result.sentence}", decided)

    def _branch_count(
        self, expectation: ExpectedBranches, branches: list[str]
    ) -> ExpectationResult:
        assert expectation.bound is not None
        number, text = taken_share(branches.count(expectation.branch), len(branches), expectation)
        if expectation.bound.holds(number):
            return ExpectationResult(expectation.words, "passed", text)
        return self._failed(expectation, expectation.address, text)

    def _compared(self, model: loopscope.Model, rounding: Mapping[str, str]) -> loopscope.Debugger:
        """Return a finished run of a model on the inputs of the test, recorded for a comparison."""
        inputs = self._inputs
        if model is not self.run.model:
            inputs = {} if is_trace(model) else read_inputs(self._source, model)
        debugger = loopscope.Debugger(
            model,
            inputs,
            limits=loopscope.Limits(seconds=self._seconds),
            record=COMPARED,
            rounding=rounding,
        )
        debugger.run()
        if debugger.state != "finished":
            text = debugger.failure or "the run did not finish"
            raise run_stopped(debugger.machine, text, "error")
        return debugger

    def _other(self, expectation: ExpectedDrift) -> loopscope.Debugger:
        """Return the run to compare with: of another model, or of this one with rounding."""
        if expectation.rounding:
            return self._compared(self.run.model, parse_rounding(expectation.rounding))
        return self._compared(loopscope.read_model(self._path(expectation.against)), {})

    def _failed(
        self, expectation: Expectation, address: str, text: str, opened: str | int = ""
    ) -> ExpectationResult:
        """Return a failure at an address.

        The run moves to ``opened``, a step or an address, by default ``address``: a page opens
        there.
        """
        try:
            self.run.seek(opened or address or self.run.steps)
        except EngineError:
            self.run.seek(self.run.steps)
        return ExpectationResult(expectation.words, "failed", text, address, run=self.run)


def _history(run: loopscope.Debugger, address: str) -> ExecutionHistory | None:
    """Return all executions of a loop or If by its address without iterations, or the end of it."""
    matches = [
        region
        for region in executions(run)
        if region.static == address or region.static.endswith(f"/{address}")
    ]
    return matches[0] if len(matches) == 1 else None


def taken_share(taken: int, total: int, expectation: ExpectedBranches) -> tuple[float, str]:
    """Return the number that a branch's bound limits, and a text that states it."""
    assert expectation.bound is not None
    share = 100.0 * taken / total if total else 0.0
    text = f"{expectation.branch} ran {taken:,} of {counted(total, 'time')}, {share:.3g} %"
    return (share if expectation.bound.percent else float(taken)), text


def _counts_text(counts: list[int]) -> str:
    if len(counts) == 1:
        return str(counts[0])
    return f"{min(counts):,} to {max(counts):,} in {counted(len(counts), 'execution')}"
