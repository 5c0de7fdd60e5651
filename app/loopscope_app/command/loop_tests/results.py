"""Results of tests: lines for a terminal, JSON, and a JUnit report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import loopscope
from loopscope_app.command.junit import CaseState, JunitCase, JunitSuite

_WORDS: dict[CaseState, str] = {"passed": "ok", "failed": "FAIL", "error": "ERROR"}


@dataclass(frozen=True, slots=True, eq=False)
class ExpectationResult:
    """Result of one expectation."""

    expectation: str
    """The expectation in words."""
    state: CaseState
    reason: str
    """Counts or branches of the run; for a failure also the place and its values."""
    address: str = ""
    """Place where the expectation fails, with iterations."""
    sample: int | None = None
    """Number of the sample that fails, if the test has many."""
    run: loopscope.Debugger | None = None
    """The run that fails, at the place; None if a page could not show it."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopTestResult:
    """Results of one test."""

    name: str
    outcomes: tuple[ExpectationResult, ...]
    seconds: float

    @property
    def state(self) -> CaseState:
        """The worst state of its expectations."""
        states = {outcome.state for outcome in self.outcomes}
        return "error" if "error" in states else "failed" if "failed" in states else "passed"


def lines(results: Sequence[LoopTestResult]) -> Iterator[str]:
    """Yield a line for each expectation, and the totals."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    for result in results:
        for outcome in result.outcomes:
            separated = (
                f" ({outcome.reason})" if outcome.state == "passed" else f": {outcome.reason}"
            )
            reason = separated if outcome.reason else ""
            yield f"{_WORDS[outcome.state]} {result.name}: {outcome.expectation}{reason}"
    totals = {state: sum(outcome.state == state for outcome in outcomes) for state in _WORDS}
    yield ", ".join(
        f"{count:,} {words}"
        for count, words in (
            (totals["passed"], "passed"),
            (totals["failed"], "failed"),
            (totals["error"], "could not be verified"),
        )
        if count or words == "passed"
    )


def as_data(results: Sequence[LoopTestResult]) -> list[dict[str, Any]]:
    """Return the results as JSON."""
    return [
        {
            "name": result.name,
            "state": result.state,
            "seconds": round(result.seconds, 3),
            "expectations": [
                {
                    "expectation": outcome.expectation,
                    "state": outcome.state,
                    "reason": outcome.reason,
                    "address": outcome.address or None,
                    "sample": outcome.sample,
                }
                for outcome in result.outcomes
            ],
        }
        for result in results
    ]


def junit_suites(results: Sequence[LoopTestResult]) -> list[JunitSuite]:
    """Return a suite for each test, with a case for each expectation."""
    return [
        JunitSuite(
            result.name,
            [
                JunitCase(outcome.expectation, outcome.state, outcome.reason, outcome.address)
                for outcome in result.outcomes
            ],
            result.seconds,
        )
        for result in results
    ]
