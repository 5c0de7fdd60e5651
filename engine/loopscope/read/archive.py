"""Untrusted zip archives: recognise the model inside, and unpack it with size and path checks."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from loopscope.errors import MOST_OF_A_SENTENCE, EngineError, elided, shorten
from loopscope.read.recognise import Format

_MAX_FILES = 20_000
_MAX_READ_BYTES = 1 << 23
"""Largest read from an archive in bytes. zipfile reads only the archive's directory in one piece.
"""
_CHUNK = 1 << 20
_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt")


@contextmanager
def open_archive(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open an archive with a directory of bounded size.

    ``ValueError`` for any fault of the archive, also while its files are read.
    """
    try:
        with zipfile.ZipFile(cast(IO[bytes], _BoundedReads(file))) as archive:
            if len(archive.infolist()) > _MAX_FILES:
                raise ValueError(f"it holds more than {_MAX_FILES:,} files")
            yield archive
    except (ValueError, EngineError):
        raise
    except Exception as error:  # zipfile's, zlib's, lzma's own and many others, for damaged data
        raise ValueError(
            f"it cannot be read: {elided(str(error), MOST_OF_A_SENTENCE) or type(error).__name__}"
        ) from error


@dataclass(frozen=True, slots=True)
class _BoundedReads:
    """A file whose single reads are limited, because a parsed directory entry takes many times its
    size.
    """

    file: IO[bytes]

    def read(self, size: int = -1) -> bytes:
        content = self.file.read(size if 0 <= size <= _MAX_READ_BYTES else _MAX_READ_BYTES + 1)
        if len(content) > _MAX_READ_BYTES:
            raise ValueError(f"its directory has more than {_MAX_READ_BYTES:,} bytes")
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Leave the file open, because it belongs to the caller."""


def format_of(archive: IO[bytes]) -> Format:
    """Return RUN, SAVED_MODEL, EXPORTED_PROGRAM, TORCHSCRIPT or STATE_DICT by the file names, else
    ZIP.

    ``ValueError`` if ``archive`` is not a readable archive.
    """
    with open_archive(archive) as files:
        names = [info.filename for info in files.infolist() if not info.is_dir()]
    if "run.json" in names and any(name.startswith("model/model.") for name in names):
        return Format.RUN
    basenames = {PurePosixPath(name).name for name in names}
    if not basenames.isdisjoint(_SAVED_MODELS):
        return Format.SAVED_MODEL
    if "serialized_exported_program.json" in basenames or (
        "archive_format" in basenames and any("/models/" in f"/{name}" for name in names)
    ):
        return Format.EXPORTED_PROGRAM
    if "data.pkl" in basenames:
        # torch.jit.save writes the code of the modules too; torch.save of a dictionary of weights,
        # or of a pickled module, does not.
        return (
            Format.TORCHSCRIPT
            if "constants.pkl" in basenames or any("/code/" in f"/{name}" for name in names)
            else Format.STATE_DICT
        )
    return Format.ZIP


def unpack(archive: IO[bytes], target: Path, max_bytes: int) -> Path:
    """Unpack the archive below ``target`` and return the folder of its SavedModel.

    ``ValueError`` if a name leads out of ``target``, or if the unpacked files have more than
    ``max_bytes`` bytes, whatever sizes the archive declares.
    """
    remaining = max_bytes
    with open_archive(archive) as files:
        for info in files.infolist():
            if info.is_dir():
                continue
            path = _path_inside(target, info.filename)
            path.parent.mkdir(parents=True, exist_ok=True)
            # A link in an archive is a file that contains a path: it is written as a regular file,
            # so it leads nowhere.
            with files.open(info) as packed, path.open("wb") as unpacked:
                while chunk := packed.read(_CHUNK):
                    remaining -= len(chunk)
                    if remaining < 0:
                        raise ValueError(f"it unpacks to more than {max_bytes:,} bytes")
                    unpacked.write(chunk)
    folders = sorted(
        path.parent for name in _SAVED_MODELS for path in target.rglob(name) if path.is_file()
    )
    if not folders:
        raise ValueError(f"there is no file {' or '.join(_SAVED_MODELS)} in it")
    return folders[0]


def _path_inside(target: Path, name: str) -> Path:
    place = PurePosixPath(name.replace("\\", "/"))
    if (
        place.is_absolute()
        or ".." in place.parts
        or ":" in name
        or "\0" in name
        or len(name) > 1000
    ):
        raise ValueError(
            f"a file in it is called {shorten(name)!r}, which leads out of the archive"
        )
    return target / place
