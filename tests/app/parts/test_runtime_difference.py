"""What the screen says of a comparison with a runtime: the first value that differs, and why it
does where that is known.
"""

from __future__ import annotations

import pytest

from loopscope.peers import ComparisonReport, ValueDifference
from loopscope_app.parts.run_views import runtime_difference
from loopscope_app.parts.widgets import chain, markup

FIRST = ValueDifference("main/Round_2", 2, "330 at [3,10]", "331 at [3,10]")


@pytest.mark.parametrize(
    "cause", ["Computed from what A 1 has for its inputs, Round_2 is the same here.", ""]
)
def test_a_cause_that_is_known_stands_below_the_first_value(
    cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(markup, "show", lambda text, *_: shown.append(text))
    monkeypatch.setattr(
        chain, "show", lambda lines, **_: shown.extend(line.title for line in lines)
    )
    runtime_difference.show(ComparisonReport("A 1", (), FIRST, cause=cause), None, "A")
    assert shown[1:] == ["Round_2", *([cause] if cause else [])]
