"""The verdict of a comparison with a runtime: the first value that differs, and its cause."""

from __future__ import annotations

import pytest

from loopscope.peers import ComparisonReport, ValueDifference
from loopscope_app.parts.run_views import compare_view

FIRST = ValueDifference("main/Round_2", 2, "330 at [3,10]", "331 at [3,10]")


@pytest.mark.parametrize(
    "cause", ["Recomputed from the inputs that A 1 has, Round_2 equals its value.", ""]
)
def test_a_known_cause_follows_the_first_difference(cause: str) -> None:
    words = compare_view.runtime_verdict(ComparisonReport("A 1", (), FIRST, cause=cause), None)
    begin = "**First difference: Round_2**, 330 at [3,10] here, 331 at [3,10] there."
    assert words == (f"{begin} {cause}" if cause else begin)


def test_outputs_are_lines_after_the_first_value() -> None:
    output = ValueDifference("words", -1, "3", "4")
    report = ComparisonReport("A 1", (output,), FIRST, left_out={"never ran": 2})
    assert [line.cells for line in compare_view.runtime_lines(report)] == [
        ("Round_2", "", "330 at [3,10]", "331 at [3,10]"),
        ("words (output)", "", "3", "4"),
    ]


def test_an_agreement_is_the_sentence_of_the_report() -> None:
    report = ComparisonReport("A 1", (), None, values=12, places=3)
    assert compare_view.runtime_verdict(report, None) == report.sentence
