"""A few browser tests may fail once; more failures fail the run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import second_chance


@pytest.mark.parametrize(
    ("codes", "failures", "expected", "runs"),
    [([0], 0, 0, 1), ([2], 0, 2, 1), ([1, 0], 3, 0, 2), ([1, 1], 1, 1, 2), ([1], 4, 1, 1)],
)
def test_only_a_few_failures_get_a_second_run(
    codes: list[int],
    failures: int,
    expected: int,
    runs: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "lastfailed"
    file.write_text(
        json.dumps({f"tests/test_{number}.py::test": True for number in range(failures)}),
        encoding="utf-8",
    )
    waiting = list(codes)
    monkeypatch.setattr(second_chance, "_FAILED", file)
    monkeypatch.setattr(second_chance, "_pytest", lambda *_: waiting.pop(0))
    assert second_chance.main([]) == expected
    assert len(codes) - len(waiting) == runs
    assert capsys.readouterr().out.startswith(
        f"{failures} tests need a second run" if codes[0] == 1 else ""
    )


def test_no_test_in_a_browser_is_outside_the_files_of_the_run() -> None:
    listed = [second_chance.ROOT / name for name in second_chance.files()]
    assert len(listed) > 1
    assert [
        path
        for path in (second_chance.ROOT / "tests").rglob("test_*.py")
        if re.search(r"[\s(]page: Page\b", path.read_text(encoding="utf-8"))
        and not any(path == file or file in path.parents for file in listed)
    ] == []
