"""Tests of the writing style: figures about docstrings, names and lines that may only fall."""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.source_files import ROOT, syntax_nodes, tree

FOLDERS = ("engine", "app")
WIDTH = 100
FRAGMENT = re.compile(
    r"(Of|What|As|By|Those|Where|Whoever|Who|Which|From|In|To|At|With|Not|Only|That|So|For|Whether|How|Its|Than)\b"
)
PHRASE = re.compile(
    r"\b(so many|so much|so long|is no|are no|has not|have not|had not|is told|are told|has got|goes away"
    r"|of what|what of|whichever|nobody|who has)\b",
    re.IGNORECASE,
)
VAGUE = frozenset(
    [
        "one",
        "found",
        "made",
        "told",
        "given",
        "said",
        "asked",
        "kept",
        "held",
        "at",
        "here",
        "there",
        "ours",
        "theirs",
        "it",
        "most",
        "least",
    ]
)

FIGURES = {
    "fragments": 0,
    "phrases": 0,
    "vague names": 38,
    "class names with several meanings": 1,
    "long lines": 0,
}
"""Largest figure of each kind. A change may lower a figure here and never raise it."""


@cache
def files() -> tuple[Path, ...]:
    """Return every Python file of library and app."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return tuple(path for path in paths if "node_modules" not in path.parts)


@cache
def docstrings() -> list[tuple[str, str]]:
    """Return the place and the text of each docstring, those of attributes included."""
    return list(_docstrings())


def _docstrings() -> Iterator[tuple[str, str]]:
    for path in files():
        for node in syntax_nodes(path):
            for statement in body if isinstance(body := getattr(node, "body", None), list) else ():
                value = getattr(statement, "value", None)
                if (
                    isinstance(statement, ast.Expr)
                    and isinstance(value, ast.Constant)
                    and isinstance(value.value, str)
                ):
                    yield f"{path.relative_to(ROOT)}:{statement.lineno}", value.value.strip()


def fragments() -> list[str]:
    return [place for place, text in docstrings() if FRAGMENT.match(text)]


def phrases() -> list[str]:
    return [place for place, text in docstrings() if PHRASE.search(text)]


def vague_names() -> list[str]:
    places = []
    for path in files():
        for node in syntax_nodes(path):
            name = node.arg if isinstance(node, ast.arg) else ""
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            if name in VAGUE:
                places.append(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)} {name}")
    return places


def repeated_classes() -> list[str]:
    defined = collections.defaultdict(list)
    for path in files():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(path.name)
    return [f"{name}: {', '.join(places)}" for name, places in defined.items() if len(places) > 1]


def long_lines() -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > WIDTH
    ]


COUNTERS = {
    "fragments": fragments,
    "phrases": phrases,
    "vague names": vague_names,
    "class names with several meanings": repeated_classes,
    "long lines": long_lines,
}


@pytest.mark.parametrize("kind", FIGURES)
def test_no_figure_rises(kind: str) -> None:
    places = COUNTERS[kind]()
    assert len(places) <= FIGURES[kind], (
        f"{len(places)} {kind}, expected at most {FIGURES[kind]}: change those that are new in "
        + "\n".join(places)
    )
