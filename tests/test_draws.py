"""The suite draws a third of the examples, a search draws more and ends in time."""

from __future__ import annotations

import pytest

from tests import draws


def test_the_factor_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOPSCOPE_DRAWS", raising=False)
    assert [draws.draws(count) for count in (60, 1)] == [12, 1]
    monkeypatch.setenv("LOOPSCOPE_DRAWS", "2")
    assert draws.draws(60) == 120


def test_the_suite_has_a_share_of_the_rows_and_a_search_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LOOPSCOPE_DRAWS", raising=False)
    assert sorted(draws.share("abcde") + draws.share("abcde", first=1)) == list("abcde")
    assert draws.share("abcdefg", first=1, parts=3) == ["b", "e"]
    monkeypatch.setenv("LOOPSCOPE_DRAWS", "2")
    assert draws.share("abcde", first=1) == list("abcde")


@pytest.mark.parametrize(
    ("codes", "seconds", "expected", "runs"),
    [([0, 0, 1, 0], 60.0, 1, 3), ([0], 0.0, 0, 0)],
)
def test_a_search_ends_at_the_first_failure_or_in_time(
    codes: list[int], seconds: float, expected: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = list(codes)
    monkeypatch.setattr(draws, "_pytest", lambda: waiting.pop(0))
    assert draws.search(seconds) == expected
    assert len(codes) - len(waiting) == runs
