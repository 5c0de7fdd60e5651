"""Cutting out: a node or a body of a run as a folder in a zip file."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import loopscope
from loopscope.cases import cut_folder, recorded_case
from loopscope.errors import EngineError


def cut_out(debugger: loopscope.Debugger, address: str) -> bytes:
    """Return a zip file with a node, or a graph, and its values in the shown iterations.

    If it cannot be cut out, the zip file contains a text with the reason.
    """
    return zipped(
        lambda folder: cut_folder(recorded_case(debugger, address), folder, debugger.model)
    )


def zipped(write: Callable[[Path], Iterable[Path]]) -> bytes:
    """Return the files that ``write`` writes to a folder as a zip file.

    If they cannot be written, the zip file contains a text with the reason.
    """
    archive = io.BytesIO()
    with (
        tempfile.TemporaryDirectory(prefix="loopscope-") as name,
        zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        try:
            for path in write(Path(name)):
                file.write(path, path.name)
        except EngineError as error:
            file.writestr("reason.txt", f"{error}\n")
    return archive.getvalue()
