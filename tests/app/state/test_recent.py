"""The files that were opened last: newest first, bounded, and no reason to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscope_app.state import recent


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "loopscope" / "recent.json"


def opened(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch()
        recent.remember(str(folder / name))


def remembered() -> list[str]:
    return [Path(one.path).name for one in recent.files()]


def test_the_newest_is_first_and_none_is_there_twice(tmp_path: Path) -> None:
    assert remembered() == []
    opened(tmp_path, "a.xml", "b.onnx", "c.loopscope", "a.xml")
    assert remembered() == ["a.xml", "c.loopscope", "b.onnx"]
    assert [one.is_run for one in recent.files()] == [False, True, False]


def test_it_stays_short(tmp_path: Path) -> None:
    opened(tmp_path, *(f"{number}.xml" for number in range(20)))
    assert remembered() == [f"{number}.xml" for number in range(19, 19 - recent.MOST, -1)]


def test_what_is_gone_is_not_listed(tmp_path: Path) -> None:
    opened(tmp_path, "a.xml", "b.xml")
    (tmp_path / "b.xml").unlink()
    assert remembered() == ["a.xml"]


def test_it_is_forgotten(tmp_path: Path) -> None:
    opened(tmp_path, "a.xml")
    recent.forget()
    assert remembered() == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '[{"path": 1}]',
        "null",
        '[{"path": "/", "when": "x"}]',
        "[" * 60_000,
        "\0\xff",
    ],
)
def test_a_damaged_list_is_an_empty_one(state: Path, text: str) -> None:
    state.parent.mkdir(parents=True)
    state.write_text(text, encoding="latin-1")
    assert recent.files() == ()


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path, state: Path) -> None:
    state.parent.parent.write_text("a file where a folder is wanted")
    opened(tmp_path, "a.xml")
    assert remembered() == []
    assert recent.folder() == state.parent
