"""``load_op_library``: custom operations from a file, as functions that add them to a graph."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

from loopscope.builder.naming import snake_case
from loopscope.builder.operations import function_of
from loopscope.ops.custom import install_file

_LOADED: dict[Path, tuple[str, SimpleNamespace]] = {}


def load_op_library(library_filename: str | Path) -> SimpleNamespace:
    """Install the ``OPERATIONS`` of a Python file and return a function for each, by its name in
    snake_case.

            zero_out_module = builder.load_op_library("zero_out.py")
            zero_out_module.zero_out([[1, 2], [3, 4]])

    Like ``loopscope --ops``, this runs the file, which is the caller's own code. An unchanged file
    is not loaded again. ``EngineError`` if the file is invalid, or if an operation is declared
    wrongly or already exists.
    """
    path = Path(os.path.realpath(library_filename))
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if path in _LOADED and _LOADED[path][0] == text:
        return _LOADED[path][1]
    installed = install_file(path)
    functions = SimpleNamespace(
        **{snake_case(operation.name): function_of(operation) for operation in installed}
    )
    _LOADED[path] = text, functions
    return functions
