"""Why a run pauses: the sentence at the cursor, and that it is gone one step later."""

from __future__ import annotations

import pytest

from loopscope.debug.breakpoints import BreakpointKind
from loopscope.debug.debugger import Debugger
from loopscope.errors import ExpressionError
from loopscope.ir import readable
from tests.engine.explain.runs import begun

ADD = "main/while_not_one[*]/body/next_steps"
REASONS: list[tuple[str, str, str, BreakpointKind, str]] = [
    (
        "collatz",
        "main/while_not_one[2]/body/equal",
        "",
        "address",
        "breakpoint 1, before while_not_one · iteration 2 › equal",
    ),
    (
        "collatz",
        ADD,
        "next_steps > 4",
        "address",
        f"breakpoint 1, after {readable(ADD)} when next_steps > 4",
    ),
    (
        "diverging_training",
        "main/while_training[*]/body/loss",
        "",
        "infinity",
        "gave an infinity, and its inputs have none",
    ),
    ("diverging_training", "", "", "nan", "'next_weight' gave a NaN, and its inputs have none"),
    (
        "growing_sequence",
        "",
        "",
        "shape",
        "breakpoint 1, the shape of 'next_sequence' changed from [3] to [4]",
    ),
]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(("name", "place", "condition", "kind", "words"), REASONS)
def test_a_pause_says_its_reason(
    name: str, place: str, condition: str, kind: BreakpointKind, words: str, recorded: bool
) -> None:
    debugger = begun(name, "too_fast") if name == "diverging_training" else begun(name)
    if recorded:
        debugger.run()
        debugger.seek(0)
    debugger.breakpoints.add(place, condition, kind)
    before = debugger.notice
    debugger.run()
    assert before is None
    assert words in str(debugger.notice)
    debugger.step()
    assert debugger.notice is None


def test_every_stop_has_a_reason_and_the_end_has_none() -> None:
    debugger: Debugger = begun("collatz")
    debugger.breakpoints.add(ADD)
    told = []
    while debugger.run().kind != "finished":
        told.append(debugger.notice)
    assert told == [f"breakpoint 1, before {readable(ADD)}"] * 7
    assert debugger.notice is None


@pytest.mark.parametrize(
    ("condition", "hint"),
    [("iteration = 3", True), ("x := 3", True), ("1 +", False), ("1 == ", False), ("x >= ", False)],
)
def test_one_equals_sign_is_told(condition: str, hint: bool) -> None:
    with pytest.raises(ExpressionError) as refused:
        begun("collatz").breakpoints.add("", condition)
    assert ("to compare, write ==" in str(refused.value)) is hint
