"""The result of ``loopscope drift`` as a JUnit file: one test per pair of matching values."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from loopscope.comparison import Drift, MatchedSlots
from loopscope.errors import neutral
from loopscope.replaced_file import replaced_file

_MAX_TESTS = 10_000


def write_junit(result: Drift, name: str, limit: float, path: str) -> None:
    """Write a test for each pair of values, which fails if its largest error is over ``limit``."""
    pairs = result.pairs[:_MAX_TESTS]
    failures = [pair for pair in pairs if _differs(pair, limit)]
    suite = ET.Element(
        "testsuite",
        name=_text(f"loopscope drift {name}"),
        tests=str(len(pairs) + 1),
        failures=str(len(failures) + (not pairs)),
        errors="0",
    )
    whole = ET.SubElement(suite, "testcase", classname="drift", name="values to compare")
    if not pairs:
        ET.SubElement(whole, "failure", message=_text(result.sentence))
    for pair in pairs:
        test = ET.SubElement(
            suite, "testcase", classname="drift", name=_text(f"{pair.one} beside {pair.other}")
        )
        if pair in failures:
            ET.SubElement(test, "failure", message=_text(_message(pair, limit)))
    document = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    with replaced_file(Path(path)) as file:
        file.write(document)


def _differs(pair: MatchedSlots, limit: float) -> bool:
    return not pair.worst.relative <= limit


def _message(pair: MatchedSlots, limit: float) -> str:
    begins = "" if pair.first is None else f", begins at {pair.first.address}"
    growth = f", {pair.growth.words}" if pair.growth else ""
    return (
        f"relative error {pair.worst.relative:.2g} at {pair.worst.address}, expected at most "
        f"{limit:g}{begins}{growth}"
    )


def _text(text: str) -> str:
    """Return a text without characters that XML does not allow."""
    return neutral(text, 1000)
