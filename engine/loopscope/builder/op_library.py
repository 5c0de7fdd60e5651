"""``load_op_library``: operations of one's own from a file, each as a function that adds it to a
graph.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

from loopscope.builder.naming import snake_case
from loopscope.builder.operations import function_of
from loopscope.ops.custom import install_file

_LOADED: dict[Path, tuple[str, SimpleNamespace]] = {}


def load_op_library(library_filename: str | Path) -> SimpleNamespace:
    """Installs the ``OPERATIONS`` of a Python file, and gives a function for each, by its name in
    snake_case.

        zero_out_module = builder.load_op_library("zero_out.py")
        zero_out_module.zero_out([[1, 2], [3, 4]])

    As ``loopscope --ops`` it runs the file, which is the caller's own code. A file that has not
    changed since is not loaded again. ``EngineError`` for a file that is none, and for operations
    that are declared wrongly or exist already.
    """
    path = Path(os.path.realpath(library_filename))
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if path in _LOADED and _LOADED[path][0] == text:
        return _LOADED[path][1]
    installed = install_file(path)
    made = SimpleNamespace(
        **{snake_case(operation.name): function_of(operation) for operation in installed}
    )
    _LOADED[path] = text, made
    return made
