"""The documentation: its examples run as they stand, its pages hold what there is, and what is
exported says what it is for.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import docs
import pytest
from docs import check_rules, command_line, guide
from docs.__main__ import write

import loopscope
from loopscope import builder
from loopscope.checks.rules import BY_CODE
from loopscope.ops import custom
from loopscope_app import cli

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_guide_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its Python in one interpreter from top to bottom, its commands between, in an empty folder
    beside the samples.
    """
    (tmp_path / "sample_models").symlink_to(ROOT / "sample_models")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = BLOCK.findall(guide.FILE.read_text(encoding="utf-8"))
    assert {kind for kind, _ in blocks} == {"python", "text", "console"}
    for position, (kind, text) in enumerate(blocks):
        if kind == "python":
            exec(compile(text, "guide.md", "exec"), names)
            following = blocks[position + 1]
            assert capsys.readouterr().out == (following[1] if following[0] == "text" else "")
        elif kind == "console":
            command, _, shown = text.partition("\n")
            assert cli.main(shlex.split(command.removeprefix("$ loopscope "))) == 0
            assert capsys.readouterr().out == shown


def test_the_page_of_the_command_line_has_every_subcommand_and_option() -> None:
    page = command_line.page()
    assert re.findall(r"^## `(.*)`$", page, re.MULTILINE) == [
        "loopscope",
        *(f"loopscope {name}" for name in sorted(cli.COMMANDS)),
    ]
    assert all(
        option in page
        for option in ("--first-nan", "--tolerance", "--strict", "--body", "--server", "OUT.xml")
    )


def test_the_page_of_the_check_has_every_rule() -> None:
    page = check_rules.page()
    assert re.findall(r"^## (LS\d+)$", page, re.MULTILINE) == list(BY_CODE)
    assert re.findall(r"^\| \[(LS\d+)\]", page, re.MULTILINE) == list(BY_CODE)


DOORS: dict[ModuleType, list[str]] = {
    loopscope: list(loopscope.__all__),
    builder: list(builder.__all__),
    custom: [
        name
        for name, value in vars(custom).items()
        if name[0] != "_" and getattr(value, "__module__", "") == custom.__name__
    ],
}


def public(door: ModuleType) -> Iterator[tuple[str, object]]:
    """The functions and classes of a door, and the methods and properties of these classes."""
    for name in DOORS[door]:
        value = getattr(door, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{door.__name__}.{name}", value
        for method, it in vars(value).items() if inspect.isclass(value) else ():
            function = it.fget if isinstance(it, property) else getattr(it, "__func__", it)
            if method[0] != "_" and inspect.isfunction(function):
                yield f"{door.__name__}.{name}.{method}", function


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_public_name_says_what_it_is_for(door: ModuleType) -> None:
    said = {name: (inspect.getdoc(value) or "").strip() for name, value in public(door)}
    assert len(said) > 3
    made_up = {
        name for name, text in said.items() if text.startswith(f"{name.rpartition('.')[2]}(")
    }  # by @dataclass
    assert {name for name, text in said.items() if not text} | made_up == set()


@pytest.mark.slow
def test_all_pages_are_written_without_a_warning(tmp_path: Path) -> None:
    write(tmp_path)
    pages = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8")
        for path in tmp_path.rglob("*.html")
    }
    doors = {
        "loopscope.html",
        "loopscope/builder.html",
        "loopscope/comparison.html",
        "loopscope/sweeps.html",
        "loopscope/ops/custom.html",
    }
    inside = {
        "loopscope/comparison/drift.html",
        "loopscope/sweeps/sweep.html",
    }  # modules that are called as what they export
    assert set(pages) - inside == {
        "index.html",
        "docs.html",
        "docs/guide.html",
        "docs/command_line.html",
        "docs/check_rules.html",
        *doors,
    }
    links = set(re.findall(r"\]\(([\w/]+\.html)\)", docs.__doc__ or ""))
    assert links == set(pages) - inside - {"index.html", "docs.html"}
    for name in loopscope.__all__:
        assert f'id="{name}"' in pages["loopscope.html"] or f"loopscope/{name}.html" in pages
    assert all(f'id="{name}"' in pages["loopscope/builder.html"] for name in builder.__all__)
