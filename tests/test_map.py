"""The map in ARCHITECTURE.md is that of the house as it stands: every room has a row, and what a
row names is there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.source_files import ROOT, sources

MOST_LINES = 120


PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "app/loopscope_app/canvas/protocol/README.md")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_no_file_that_is_gone(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    there = [
        f"/{path.relative_to(ROOT).as_posix()}"
        for path in ROOT.glob("[a-z]*/**/*.*")
        if "node_modules" not in path.parts
    ]
    named = set(re.findall(r"`([\w/]+\.(?:py|js|json|txt))`", text))
    assert (
        sorted(name for name in named if not any(path.endswith(f"/{name}") for path in there)) == []
    )


def test_the_map_fits_on_a_page() -> None:
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES, "shorten a row or a sentence of ARCHITECTURE.md"


def test_every_room_has_a_row_in_the_map_and_every_row_is_a_room() -> None:
    rows = rows_of_the_map()
    rooms = {
        path.as_posix()
        for path in folders("engine/loopscope") | folders("app/loopscope_app")
        if len(path.parts) <= 3
    } - {"engine/loopscope"}
    files = {
        path.relative_to(ROOT).as_posix()
        for path in sources("loopscope")
        if path.parent.name == "loopscope"
    } - {"engine/loopscope/__init__.py"}
    outside = {"docs", "sample_models"}
    parts = rooms | files | outside
    assert parts - rows.keys() == set(), "add a row for these to the tables of ARCHITECTURE.md"
    assert rows.keys() - parts == set(), "remove the rows of these from ARCHITECTURE.md"
    for room in ("engine/loopscope/executor", "app/loopscope_app/parts"):
        inner = {path.name for path in folders(room) if path.parent == Path(room)}
        assert inner - set(re.findall(r"`([\w/]+)`", rows[room])) == set(), (
            f"rooms of {room} that its row does not name"
        )


def test_reading_begins_in_the_room() -> None:
    """The files that the last column names lie in the room of their row."""
    elsewhere = [
        f"{room}: {name}"
        for room, row in rows_of_the_map().items()
        for name in re.findall(r"`([\w/.]+)`", row.split(" | ")[-1])
        if not (ROOT / room / name).exists() and not any((ROOT / room).rglob(name))
    ]
    assert elsewhere == []


def rows_of_the_map() -> dict[str, str]:
    """By the path of each room, the columns of its row that follow."""
    table = (
        (ROOT / "ARCHITECTURE.md")
        .read_text(encoding="utf-8")
        .partition("## The rooms")[2]
        .partition("\n## ")[0]
    )
    lines = [
        line.strip("| ").partition(" | ") for line in table.splitlines() if line.startswith("| `")
    ]
    return {room: row for rooms, _, row in lines for room in re.findall(r"`([\w/.]+)`", rooms)}


def folders(top: str) -> set[Path]:
    """Those with files of ours, from the project's root."""
    found = {path.parent.relative_to(ROOT) for path in (ROOT / top).rglob("*.*") if path.is_file()}
    return {
        path
        for path in found
        if not any(part[0] in "._" or part == "node_modules" for part in path.parts)
    }
