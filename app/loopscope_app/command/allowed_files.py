"""The files that a program may name to `loopscope mcp`: those in given folders, wherever links
lead.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from loopscope.errors import ReadError, listed, shorten
from loopscope.read import what_is_at
from loopscope.run_file import ENDING

MODELS = (".xml", ".onnx", ENDING)
_INPUTS, _INPUT_BYTES = ".npz", 2**29
_LISTED, _DEPTH = 40, 4
"""Files that are listed where one is not found, and how deep they are looked for."""


class AllowedFiles:
    """Paths are resolved before they are judged, so that neither ``..`` nor a link leads out."""

    def __init__(self, folders: Sequence[str]) -> None:
        """``ReadError`` for what is no folder."""
        self.folders = tuple(map(_real, folders))
        for given, folder in zip(folders, self.folders, strict=True):
            if not folder.is_dir():
                raise ReadError(f"--folder {shorten(given)!r} is no folder")

    def model(self, text: str) -> Path:
        """The file of a model; ``ReadError`` when it, or the weights beside it, lie elsewhere."""
        path = self._inside(text, MODELS)
        if path.suffix.lower() not in MODELS:
            raise ReadError(
                f"{shorten(text)!r} is no model that opens here: a file that ends with {', '.join(MODELS[:-1])} or {MODELS[-1]} is expected"
            )
        weights = path.with_suffix(".bin")
        if weights.exists() and not self._holds(_real(weights)):
            raise ReadError(
                f"the weights beside {shorten(text)!r} are a link that leads out of the given folders"
            )
        return path

    def inputs(self, text: str) -> Path:
        """An .npz file of bounded size once it is unpacked; ``ReadError`` when it lies elsewhere
        or is too large.
        """
        path = self._inside(text, (_INPUTS,))
        try:
            with zipfile.ZipFile(path) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise ReadError(
                f"{shorten(text)!r} is not an .npz file: one that numpy.savez wrote is expected"
            ) from None
        if size > _INPUT_BYTES:
            raise ReadError(
                f"{shorten(text)!r} holds {size:,} bytes: at most {_INPUT_BYTES:,} are read here"
            )
        return path

    def _inside(self, text: str, endings: Sequence[str]) -> Path:
        if "\0" in text:
            raise ReadError("a path has no zero bytes")
        if text != text.encode("utf-8", "replace").decode("utf-8"):
            raise ReadError(
                f"the path {shorten(text)!r} is no text that a file system takes: expected whole characters"
            )
        for folder in self.folders:
            path = _real(folder / text)
            if self._holds(path) and what_is_at(path) == "file":
                return path
        there = listed(
            [shorten(str(path)) for path in islice(self._files(endings), _LISTED)], _LISTED
        )
        words = (
            f"; there are {there}" if there else f"; none in them ends with {' or '.join(endings)}"
        )
        raise ReadError(
            f"there is no file {shorten(text)!r} in the given folders: a path in one of them is expected{words}"
        )

    def _files(self, endings: Sequence[str]) -> Iterator[Path]:
        """Files below the given folders, relative to them, the outermost first; what lies very
        deep is not looked for.
        """
        for folder in self.folders:
            for depth in range(_DEPTH):
                for path in sorted(folder.glob("*/" * depth + "*")):
                    if (
                        path.suffix.lower() in endings
                        and what_is_at(path)
                        and self._holds(_real(path))
                    ):
                        yield path.relative_to(folder)

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self.folders)


def _real(path: str | Path) -> Path:
    """Return where a path leads; one whose links form a circle leads to itself."""
    return Path(os.path.realpath(path))
