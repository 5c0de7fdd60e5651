"""Uploaded files: the model and its weights, also inside a zip archive."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from loopscope.errors import ReadError, listed
from loopscope.read import open_archive

Files = Sequence[tuple[str, bytes]]
"""Names and contents."""

WEIGHTS = (".bin", ".data", ".pdiparams")
"""Weights of an IR, external data of an ONNX model, parameters of a PaddlePaddle model."""
_IN_ARCHIVES = (".xml", ".onnx")
"""Endings of models in a zip archive. Archives of other frameworks are models themselves."""
MOST_UNPACKED = 1 << 30
_CHUNK = 1 << 20


class File(Protocol):
    """A file in an uploader."""

    @property
    def file_id(self) -> str:
        """Unique identifier, also among files with the same name."""

    @property
    def name(self) -> str: ...

    def getvalue(self) -> bytes: ...


@dataclass(slots=True)
class Uploads:
    """The files in an uploader. A later file replaces an earlier one of the same kind.

    The uploader itself lists each file until the user removes it.
    """

    seen: frozenset[str] = frozenset()
    aside: frozenset[str] = frozenset()
    """Replaced files: all earlier files after a model, and earlier weights after weights."""

    def latest(self, files: Sequence[File]) -> Files:
        """Return the files that are not replaced."""
        before = [file for file in files if file.file_id in self.seen - self.aside]
        new = [file for file in files if file.file_id not in self.seen]
        if any(not is_weights(file.name) for file in new):
            replaced = before if any(not is_weights(file.name) for file in before) else []
        else:
            replaced = [file for file in before if is_weights(file.name)] if new else []
        self.aside |= {file.file_id for file in replaced}
        self.seen = frozenset(file.file_id for file in files)
        return [(file.name, file.getvalue()) for file in files if file.file_id not in self.aside]


def is_weights(name: str) -> bool:
    return name.lower().endswith(WEIGHTS)


def has_model(files: Files) -> bool:
    """Return True if any file is not weights."""
    return any(not is_weights(name) for name, _ in files)


def model_among(files: Files) -> tuple[str, bytes, bytes | None]:
    """Return the name and content of the only model, and its weights or None.

    Raise ``ReadError`` if the files are not one model with its weights.
    """
    contents = [
        part
        for name, data in files
        for part in (_unpacked(name, data) if name.lower().endswith(".zip") else [(name, data)])
    ]
    models = [(name, data) for name, data in contents if not is_weights(name)]
    weights = [data for name, data in contents if is_weights(name)]
    if len(models) != 1:
        names = listed([name for name, _ in models])
        raise ReadError(f"these are {len(models)} models, {names}: expected one, with its weights")
    if len(weights) > 1:
        raise ReadError(f"{models[0][0]} has {len(weights)} files of weights: expected at most one")
    name, data = models[0]
    return name, data, weights[0] if weights else None


def _unpacked(name: str, data: bytes) -> Files:
    """Return the model and the weights in an archive by file name.

    If the archive contains no model of a known kind, return the archive itself.
    """
    try:
        with open_archive(io.BytesIO(data)) as archive:
            entries = [
                entry
                for entry in archive.infolist()
                if PurePosixPath(entry.filename).suffix.lower() in (*_IN_ARCHIVES, *WEIGHTS)
            ]
            entries = [entry for entry in entries if not entry.filename.startswith("__MACOSX/")]
            if not any(entry.filename.lower().endswith(_IN_ARCHIVES) for entry in entries):
                return [(name, data)]
            return _contents(name, archive, entries)
    except ValueError:
        raise ReadError(
            f"{name} is a zip archive that cannot be unpacked: expected one without a password; or "
            "upload the files in it"
        ) from None


def _contents(name: str, archive: zipfile.ZipFile, entries: Sequence[zipfile.ZipInfo]) -> Files:
    """Return the unpacked files. The unpacked bytes are counted, because an archive may state wrong
    sizes.
    """
    remaining = MOST_UNPACKED
    contents: list[tuple[str, bytes]] = []
    for entry in entries:
        content = bytearray()
        with archive.open(entry) as packed:
            while chunk := packed.read(_CHUNK):
                remaining -= len(chunk)
                if remaining < 0:
                    raise ReadError(
                        f"{name} unpacks to more than {MOST_UNPACKED >> 30} GB: "
                        "open the model by its path"
                    )
                content += chunk
        contents.append((PurePosixPath(entry.filename).name, bytes(content)))
    return contents
