"""Results of tests: lines for a terminal, JSON, and a JUnit report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lxml import etree

import loopscope
from loopscope.errors import in_one_line

State = Literal["passed", "failed", "error"]
_WORDS: dict[State, str] = {"passed": "ok", "failed": "FAIL", "error": "ERROR"}


@dataclass(frozen=True, slots=True, eq=False)
class ExpectationResult:
    """Result of one expectation."""

    expectation: str
    """The expectation in words."""
    state: State
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
    def state(self) -> State:
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


def junit(results: Sequence[LoopTestResult]) -> bytes:
    """Return a JUnit report: a suite per test, a case per expectation."""
    root = etree.Element("testsuites", name="loopscope")
    for result in results:
        suite = etree.SubElement(
            root,
            "testsuite",
            name=_xml(result.name),
            tests=str(len(result.outcomes)),
            failures=str(sum(outcome.state == "failed" for outcome in result.outcomes)),
            errors=str(sum(outcome.state == "error" for outcome in result.outcomes)),
            time=f"{result.seconds:.3f}",
        )
        for outcome in result.outcomes:
            case = etree.SubElement(
                suite, "testcase", classname=_xml(result.name), name=_xml(outcome.expectation)
            )
            if outcome.state != "passed":
                tag = "failure" if outcome.state == "failed" else "error"
                etree.SubElement(case, tag, message=_xml(outcome.reason)).text = _xml(
                    outcome.address
                )
    return etree.tostring(root, xml_declaration=True, encoding="utf-8", pretty_print=True)


def _xml(text: str) -> str:
    """Return text without the characters that XML forbids."""
    line = in_one_line(text)
    return "".join(
        letter
        if letter >= " " and not "\ud800" <= letter <= "\udfff" and letter not in "\ufffe\uffff"
        else json.dumps(letter)[1:-1]
        for letter in line
    )
