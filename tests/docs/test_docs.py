"""Tests of the documentation: examples run as written, pages are complete, public names are documented."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from docs import check_rules, command_line, gallery, lesson_pages
from docs.__main__ import FOLDER, GENERATED

import loopscope
from loopscope import builder
from loopscope.checks import ADVICE, BY_CODE
from loopscope.ops import custom
from loopscope_app import cli
from tests.docs.examples import executed, without_versions

ROOT = Path(__file__).parents[2]
PAGES = (
    "guide.md",
    *sorted(f"questions/{path.name}" for path in (FOLDER / "questions").glob("*.md")),
    "reference/cut.md",
    "reference/reproduce.md",
    "reference/opened-operators.md",
)
LINK = re.compile(r"\]\(([^)#:]+\.md)")


@pytest.mark.parametrize("name", PAGES)
def test_examples_print_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run each page in an empty folder beside the samples."""
    (tmp_path / "sample_models").symlink_to(ROOT / "sample_models")
    monkeypatch.chdir(tmp_path)
    page = (FOLDER / name).read_text(encoding="utf-8")
    assert without_versions(executed(page)) == without_versions(page)


@cache
def generated_pages() -> set[str]:
    """Return the file names of the pages that the site writes; computing them takes 0.3 seconds."""
    return {Path(name).name for name in (*GENERATED, *gallery.pages(), *lesson_pages.pages())}


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *FOLDER.rglob("*.md")], ids=lambda path: path.name
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = [
        link
        for link in LINK.findall(page.read_text(encoding="utf-8"))
        if Path(link).name not in generated_pages()
    ]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= 6 * 1024


def test_the_command_line_page_has_every_subcommand() -> None:
    page = command_line.page()
    expected = ["loopscope", *(f"loopscope {name}" for name in sorted(cli.COMMANDS))]
    assert re.findall(r"^## `(.*)`$", page, re.MULTILINE) == expected


def test_the_page_of_checks_has_every_rule() -> None:
    page, codes = check_rules.page(), [*BY_CODE, *(rule.code for rule in ADVICE)]
    assert re.findall(r"^## (LS\d+)$", page, re.MULTILINE) == codes
    assert re.findall(r"^\| \[(LS\d+)\]", page, re.MULTILINE) == codes


PUBLIC: dict[ModuleType, list[str]] = {
    loopscope: list(loopscope.__all__),
    builder: list(builder.__all__),
    custom: [
        name
        for name, value in vars(custom).items()
        if name[0] != "_" and getattr(value, "__module__", "") == custom.__name__
    ],
}


def documented(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the public functions and classes of a module, and the methods and properties of the classes."""
    for name in PUBLIC[module]:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        for method, member in vars(value).items() if inspect.isclass(value) else ():
            function = (
                member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            )
            if method[0] != "_" and inspect.isfunction(function):
                yield f"{module.__name__}.{name}.{method}", function


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_every_public_name_has_a_docstring(module: ModuleType) -> None:
    texts = {name: (inspect.getdoc(value) or "").strip() for name, value in documented(module)}
    assert len(texts) > 3
    generated = {
        name for name, text in texts.items() if text.startswith(f"{name.rpartition('.')[2]}(")
    }
    assert {name for name, text in texts.items() if not text} | generated == set()
