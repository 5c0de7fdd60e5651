"""JUnit reports, which continuous integration shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lxml import etree

from loopscope.errors import in_one_line
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
