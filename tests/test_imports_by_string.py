"""Modules that the library imports by a string are held to the rules of its imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.source_files import APPLICATION, LIBRARY, dotted, room_of, sources, syntax_nodes
from tests.test_architecture import ALLOWED


def test_a_string_hides_no_import_that_points_the_other_way() -> None:
    hidden = {
        f"{dotted(path)} -> {name}"
        for path in sources(LIBRARY)
        for name in imported_by_string(path)
        if not is_allowed(room_of(path), name)
    }
    assert hidden == set()


def is_allowed(room: str, name: str) -> bool:
    """Whether the rules let a room import a module; the package itself exports names of every
    room.
    """
    package, _, rest = name.partition(".")
    return room == "__init__" or (
        package != APPLICATION
        and (package != LIBRARY or rest.split(".")[0] in {room, *ALLOWED.get(room, ())})
    )


def imported_by_string(path: Path) -> Iterator[str]:
    """Names given to ``import_module``, up to a placeholder, and names of modules of the app."""
    for node in syntax_nodes(path):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from filter(None, [text_of(node.args[0])])
        elif (
            isinstance(node, ast.Constant)
            and str(node.value).startswith(f"{APPLICATION}.")
            and " " not in str(node.value)
        ):
            yield str(node.value)


def text_of(argument: ast.expr) -> str:
    """The constant text that an argument begins with."""
    first = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
