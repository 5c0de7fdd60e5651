"""The Python files of the project, the names under which they are imported, and what they
import.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent

LIBRARY, APPLICATION, SAMPLES = "loopscope", "loopscope_app", "loopscope_samples"
"""Names of our packages."""
PACKAGES = {
    LIBRARY: ROOT / "engine" / LIBRARY,
    APPLICATION: ROOT / "app" / APPLICATION,
    SAMPLES: ROOT / "sample_models" / SAMPLES,
}
"""The folder of each package."""


def sources(folder: str) -> list[Path]:
    """The Python files of a package, of a folder in a package (``engine/loopscope/executor``),
    or of a top-level folder.
    """
    package, _, inside = folder.partition("/")
    return sorted(
        path
        for path in (PACKAGES.get(package, ROOT / package) / inside).rglob("*.py")
        if "node_modules" not in path.parts
    )


def inside(path: Path) -> Path:
    """A file's path from the folder of its package."""
    return next(
        path.relative_to(folder) for folder in PACKAGES.values() if path.is_relative_to(folder)
    )


def dotted(path: Path) -> str:
    """The name under which a file of a package is imported."""
    package = next(name for name, folder in PACKAGES.items() if path.is_relative_to(folder))
    return ".".join((package, *inside(path).with_suffix("").parts))


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file, parsed once for all tests of a process."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def syntax_nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of a file."""
    return tuple(ast.walk(tree(path)))


@cache
def imported(path: Path, *, at_run_time: bool) -> tuple[str, ...]:
    """Return the dotted names that a file imports; with ``at_run_time`` without those only for the
    type checker.
    """
    return tuple(imported_by(tree(path), at_run_time=at_run_time))


def imported_by(module: ast.Module, *, at_run_time: bool) -> Iterator[str]:
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if at_run_time and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if not isinstance(node, ast.expr):  # no expression has a statement in it
            waiting.extend(ast.iter_child_nodes(node))


def room_of(path: Path) -> str:
    parts = inside(path).with_suffix("").parts
    return parts[0]
