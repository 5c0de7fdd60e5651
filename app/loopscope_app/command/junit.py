"""JUnit reports, which continuous integration shows, and the suite of ``loopscope drift``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lxml import etree

from loopscope.comparison import Drift, MatchedSlots
from loopscope.errors import in_one_line
from loopscope.ir import significant
from loopscope.replaced_file import replaced_file

CaseState = Literal["passed", "failed", "error"]
_TAGS: dict[CaseState, str] = {"failed": "failure", "error": "error"}


@dataclass(frozen=True, slots=True)
class JunitCase:
    """One case of a report."""

    name: str
    state: CaseState
    message: str = ""
    """Reason of a failure or an error."""
    place: str = ""
    """Address of a failure."""


@dataclass(frozen=True, slots=True)
class JunitSuite:
    """Cases that belong together."""

    name: str
    cases: Sequence[JunitCase]
    seconds: float = 0.0


def write_junit(path: str, suites: Sequence[JunitSuite]) -> None:
    """Write a report, beside its path first. Characters that XML forbids are escaped."""
    root = etree.Element("testsuites", name="loopscope")
    for suite in suites:
        states = [case.state for case in suite.cases]
        element = etree.SubElement(
            root,
            "testsuite",
            name=_xml(suite.name),
            tests=str(len(states)),
            failures=str(states.count("failed")),
            errors=str(states.count("error")),
            time=f"{suite.seconds:.3f}",
        )
        for case in suite.cases:
            child = etree.SubElement(
                element, "testcase", classname=_xml(suite.name), name=_xml(case.name)
            )
            if case.state != "passed":
                etree.SubElement(child, _TAGS[case.state], message=_xml(case.message)).text = _xml(
                    case.place
                )
    with replaced_file(path) as file:
        file.write(etree.tostring(root, xml_declaration=True, encoding="utf-8", pretty_print=True))


def _xml(text: str) -> str:
    """Return text without the characters that XML forbids."""
    return "".join(
        letter
        if letter >= " " and not "\ud800" <= letter <= "\udfff" and letter not in "\ufffe\uffff"
        else json.dumps(letter)[1:-1]
        for letter in in_one_line(text)
    )


_MAX_CASES = 10_000


def drift_suite(result: Drift, name: str, limit: float) -> JunitSuite:
    """Return a case for each pair of values, which fails if its largest error is over ``limit``.

    Without pairs, the suite has one case, which fails.
    """
    pairs = result.pairs[:_MAX_CASES]
    if not pairs:
        return JunitSuite(name, [JunitCase("values to compare", "failed", result.sentence)])
    return JunitSuite(name, [_case(pair, limit) for pair in pairs])


def _case(pair: MatchedSlots, limit: float) -> JunitCase:
    name = f"{pair.one} beside {pair.other}"
    if pair.worst.relative <= limit:
        return JunitCase(name, "passed")
    return JunitCase(name, "failed", _message(pair, limit), pair.worst.address)


def _message(pair: MatchedSlots, limit: float) -> str:
    begins = "" if pair.first is None else f", begins at {pair.first.address}"
    growth = f", {pair.growth.words}" if pair.growth else ""
    return (
        f"relative error {significant(pair.worst.relative, 2)} at {pair.worst.address}, "
        f"expected at most "
        f"{significant(limit, 6)}{begins}{growth}"
    )
