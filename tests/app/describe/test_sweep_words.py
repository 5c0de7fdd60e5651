"""What is said of many runs of a model with dozens of branches: those that none took are told,
and hide nothing else.
"""

from __future__ import annotations

from loopscope.sweeps import SweepSummary
from loopscope.sweeps.summary import BranchSummary
from loopscope_app.describe.sweep_words import findings

OUTER = "main/If_0"
INNER = [f"{OUTER}/else/If_{number}" for number in range(20)]


def of_one_branch() -> SweepSummary:
    """Ten runs that all took the outer If's then branch: none came to what is in the other."""
    summary = SweepSummary(rows=10, failed=1, first_failed=(4, "main/x: it failed"))
    summary.branches = {
        OUTER: BranchSummary(9, 0),
        **{address: BranchSummary() for address in INNER},
    }
    return summary


def test_branches_inside_one_that_was_not_taken_are_not_called_never_taken() -> None:
    told = list(of_one_branch().sentences())
    assert told[1:4] == [
        "main/If_0: then 9, else 0",
        "never taken: else main/If_0",
        f"never reached: {', '.join(INNER[:8])} and 12 more",
    ]
    assert len(of_one_branch().never_taken) == 41, "as data, all of them"


def test_what_failed_is_found_beside_many_that_were_not_reached() -> None:
    told = list(findings(of_one_branch()))
    assert [(one.title, one.text) for one in told[:2]] == [
        ("never taken", "else If_0"),
        ("never reached", "If_0 · else › If_0"),
    ]
    assert [one.text for one in told[4:]] == ["17 more Ifs", "x: it failed; 1 run failed"]
    assert len(told) < 12
