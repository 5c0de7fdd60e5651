"""Files that were uploaded: which of them is the model and which holds its weights, also inside
a zip archive.
"""

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
"""Models that are looked for in a zip archive; the archives of other frameworks are models as
they are.
"""
MOST_UNPACKED = 1 << 30
_CHUNK = 1 << 20


class File(Protocol):
    """A file in an uploader."""

    @property
    def file_id(self) -> str:
        """Its own, also where another has its name."""

    @property
    def name(self) -> str: ...

    def getvalue(self) -> bytes: ...


@dataclass(slots=True)
class Uploads:
    """The files in an uploader, which keeps each until the user removes it; a later file
    replaces an earlier one of the same kind.
    """

    seen: frozenset[str] = frozenset()
    aside: frozenset[str] = frozenset()
    """Files that others have come for: whatever was there when a model came, and weights when
    weights came.
    """

    def latest(self, files: Sequence[File]) -> Files:
        """Those that count."""
        before = [file for file in files if file.file_id in self.seen - self.aside]
        come = [file for file in files if file.file_id not in self.seen]
        if any(not is_weights(file.name) for file in come):
            left = before if any(not is_weights(file.name) for file in before) else []
        else:
            left = [file for file in before if is_weights(file.name)] if come else []
        self.aside |= {file.file_id for file in left}
        self.seen = frozenset(file.file_id for file in files)
        return [(file.name, file.getvalue()) for file in files if file.file_id not in self.aside]


def is_weights(name: str) -> bool:
    return name.lower().endswith(WEIGHTS)


def has_model(files: Files) -> bool:
    """Whether there is more than weights."""
    return any(not is_weights(name) for name, _ in files)


def model_among(files: Files) -> tuple[str, bytes, bytes | None]:
    """Name and content of the one model, and its weights where they are there; ``ReadError``
    says what to upload instead.
    """
    found = [
        part
        for name, data in files
        for part in (_unpacked(name, data) if name.lower().endswith(".zip") else [(name, data)])
    ]
    models = [(name, data) for name, data in found if not is_weights(name)]
    weights = [data for name, data in found if is_weights(name)]
    if len(models) != 1:
        raise ReadError(
            f"these are {len(models)} models, {listed([name for name, _ in models])}: upload one, with its weights"
        )
    if len(weights) > 1:
        raise ReadError(
            f"{models[0][0]} comes with {len(weights)} files of weights: upload it with its own only"
        )
    name, data = models[0]
    return name, data, weights[0] if weights else None


def _unpacked(name: str, data: bytes) -> Files:
    """The model and the weights in an archive, by their last names; the archive itself where
    none is of a kind that is looked for.
    """
    try:
        with open_archive(io.BytesIO(data)) as archive:
            inside = [
                one
                for one in archive.infolist()
                if PurePosixPath(one.filename).suffix.lower() in (*_IN_ARCHIVES, *WEIGHTS)
            ]
            inside = [one for one in inside if not one.filename.startswith("__MACOSX/")]
            if not any(one.filename.lower().endswith(_IN_ARCHIVES) for one in inside):
                return [(name, data)]
            return _contents(name, archive, inside)
    except ValueError:
        raise ReadError(
            f"{name} is a zip archive that cannot be unpacked: make it anew, without a password, or upload the files in it"
        ) from None


def _contents(name: str, archive: zipfile.ZipFile, inside: Sequence[zipfile.ZipInfo]) -> Files:
    """Unpacked in memory; an archive may lie about its sizes, so what comes out is counted."""
    left = MOST_UNPACKED
    found: list[tuple[str, bytes]] = []
    for one in inside:
        content = bytearray()
        with archive.open(one) as packed:
            while chunk := packed.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise ReadError(
                        f"{name} unpacks to more than {MOST_UNPACKED >> 30} GB: open the model by its path"
                    )
                content += chunk
        found.append((PurePosixPath(one.filename).name, bytes(content)))
    return found
