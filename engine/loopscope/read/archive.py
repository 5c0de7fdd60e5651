"""Zip archives from anywhere: what model is in one, and unpacking it without escapes and bombs."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from loopscope.errors import MOST_OF_A_SENTENCE, EngineError, elided, shorten
from loopscope.read.recognise import Format

_MOST_FILES = 20_000
_MOST_AT_ONCE = 1 << 23
"""Bytes that are read of an archive at once: of all that it holds, only its directory is asked
for in one piece.
"""
_CHUNK = 1 << 20
_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt")


@contextmanager
def open_archive(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """An archive with a directory of bounded size; ``ValueError`` for whatever is wrong with it,
    also while its files are read.
    """
    try:
        with zipfile.ZipFile(cast(IO[bytes], _Careful(file))) as archive:
            if len(archive.infolist()) > _MOST_FILES:
                raise ValueError(f"it holds more than {_MOST_FILES:,} files")
            yield archive
    except (ValueError, EngineError):
        raise
    except Exception as error:  # zipfile's, zlib's, lzma's own and many others, for damaged data
        raise ValueError(
            f"it cannot be read: {elided(str(error), MOST_OF_A_SENTENCE) or type(error).__name__}"
        ) from error


@dataclass(frozen=True, slots=True)
class _Careful:
    """A file of which one read takes a bounded number of bytes: a parsed directory entry takes
    many times its size.
    """

    file: IO[bytes]

    def read(self, size: int = -1) -> bytes:
        content = self.file.read(size if 0 <= size <= _MOST_AT_ONCE else _MOST_AT_ONCE + 1)
        if len(content) > _MOST_AT_ONCE:
            raise ValueError(f"its directory has more than {_MOST_AT_ONCE:,} bytes")
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Leaves the file open: it belongs to the caller."""


def format_of(archive: IO[bytes]) -> Format:
    """RUN, SAVED_MODEL, EXPORTED_PROGRAM, TORCHSCRIPT or STATE_DICT by the names in it, else ZIP.

    ``ValueError`` when it is not a readable archive.
    """
    with open_archive(archive) as files:
        names = [info.filename for info in files.infolist() if not info.is_dir()]
    if "run.json" in names and any(name.startswith("model/model.") for name in names):
        return Format.RUN
    last = {PurePosixPath(name).name for name in names}
    if not last.isdisjoint(_SAVED_MODELS):
        return Format.SAVED_MODEL
    if "serialized_exported_program.json" in last or (
        "archive_format" in last and any("/models/" in f"/{name}" for name in names)
    ):
        return Format.EXPORTED_PROGRAM
    if "data.pkl" in last:
        # torch.jit.save writes the code of the modules too; torch.save of a dictionary of weights,
        # or of a pickled module, does not.
        return (
            Format.TORCHSCRIPT
            if "constants.pkl" in last or any("/code/" in f"/{name}" for name in names)
            else Format.STATE_DICT
        )
    return Format.ZIP


def unpack(archive: IO[bytes], target: Path, most_bytes: int) -> Path:
    """The folder of the SavedModel in an archive, unpacked below ``target``.

    ``ValueError`` when a name leads out of it, or there are more bytes than allowed, however small
    the archive says it is.
    """
    left = most_bytes
    with open_archive(archive) as files:
        for info in files.infolist():
            if info.is_dir():
                continue
            path = _inside(target, info.filename)
            path.parent.mkdir(parents=True, exist_ok=True)
            # A link in an archive is a file that holds a path: it is written as that file, and
            # leads nowhere.
            with files.open(info) as packed, path.open("wb") as unpacked:
                while chunk := packed.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise ValueError(f"it unpacks to more than {most_bytes:,} bytes")
                    unpacked.write(chunk)
    found = sorted(
        path.parent for name in _SAVED_MODELS for path in target.rglob(name) if path.is_file()
    )
    if not found:
        raise ValueError(f"there is no file {' or '.join(_SAVED_MODELS)} in it")
    return found[0]


def _inside(target: Path, name: str) -> Path:
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
