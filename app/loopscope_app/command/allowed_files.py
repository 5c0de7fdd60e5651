"""Files that a client of ``loopscope mcp`` may name: those in the allowed folders after links are
resolved.
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
"""Number of files that an error lists, and depth of the search for them."""


class AllowedFiles:
    """Files in the allowed folders.

    Paths are resolved before they are checked, so that neither ``..`` nor a link leads out.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        """Raise ``ReadError`` for a path that is not a folder."""
        self.folders = tuple(map(_real, folders))
        for name, folder in zip(folders, self.folders, strict=True):
            if not folder.is_dir():
                raise ReadError(f"--folder {shorten(name)!r} is not a folder")

    def model(self, text: str) -> Path:
        """Return the path of a model. Raise ``ReadError`` if it or its weights are outside the
        folders.
        """
        path = self._inside(text, MODELS)
        if path.suffix.lower() not in MODELS:
            raise ReadError(
                f"{shorten(text)!r} is not a model that can be opened: expected a file that ends "
                f"with {', '.join(MODELS[:-1])} or {MODELS[-1]}"
            )
        weights = path.with_suffix(".bin")
        if weights.exists() and not self._holds(_real(weights)):
            raise ReadError(
                f"the weights beside {shorten(text)!r} are a link that leads out of the given "
                "folders"
            )
        return path

    def inputs(self, text: str) -> Path:
        """Return the path of an .npz file of bounded unpacked size.

        Raise ``ReadError`` if the file is outside the folders, is not an .npz file or is too large.
        """
        path = self._inside(text, (_INPUTS,))
        try:
            with zipfile.ZipFile(path) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
        # zipfile raises NotImplementedError for an archive of a version that it does not read.
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise ReadError(
                f"{shorten(text)!r} is not an .npz file: one that numpy.savez wrote is expected"
            ) from None
        if size > _INPUT_BYTES:
            raise ReadError(
                f"{shorten(text)!r} has {size:,} bytes: expected at most {_INPUT_BYTES:,}"
            )
        return path

    def _inside(self, text: str, endings: Sequence[str]) -> Path:
        if "\0" in text:
            raise ReadError("a path has no zero bytes")
        if text != text.encode("utf-8", "replace").decode("utf-8"):
            raise ReadError(
                f"the path {shorten(text)!r} is not a text that a file system accepts: expected "
                "whole characters"
            )
        for folder in self.folders:
            path = _real(folder / text)
            if self._holds(path) and what_is_at(path) == "file":
                return path
        files = listed(
            [shorten(str(path)) for path in islice(self._files(endings), _LISTED)], _LISTED
        )
        advice = (
            f"; there are {files}"
            if files
            else f"; none of their files ends with {' or '.join(endings)}"
        )
        raise ReadError(
            f"there is no file {shorten(text)!r} in the given folders: expected a path in one of "
            f"them{advice}"
        )

    def _files(self, endings: Sequence[str]) -> Iterator[Path]:
        """Yield files in the allowed folders, relative to them, outermost first, down to a limited
        depth.
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
    """Return the path with links resolved; a circle of links resolves to itself."""
    return Path(os.path.realpath(path))
