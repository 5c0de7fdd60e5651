"""Zip archives from anywhere: what model is in one, and unpacking it without escapes and bombs."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from engine.errors import shorten
from engine.read.recognise import Format

_MOST_FILES = 20_000
_CHUNK = 1 << 20


def format_of(archive: IO[bytes]) -> Format:
    """SAVED_MODEL or EXPORTED_PROGRAM by the names in it, else ZIP. ``ValueError`` when it is no readable archive."""
    names = _names(archive)
    last = {PurePosixPath(name).name for name in names}
    if "saved_model.pb" in last:
        return Format.SAVED_MODEL
    if "serialized_exported_program.json" in last or ("archive_format" in last and any("/models/" in f"/{name}" for name in names)):
        return Format.EXPORTED_PROGRAM
    return Format.ZIP


def unpack(archive: IO[bytes], target: Path, most_bytes: int) -> Path:
    """The folder of the SavedModel in an archive, unpacked below ``target``.

    ``ValueError`` when a name leads out of it, or there are more bytes than allowed, however small the archive says it is.
    """
    left = most_bytes
    with zipfile.ZipFile(archive) as files:
        for info in files.infolist():
            if info.is_dir():
                continue
            path = _inside(target, info.filename)
            path.parent.mkdir(parents=True, exist_ok=True)
            with files.open(info) as packed, path.open("wb") as unpacked:
                while chunk := packed.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise ValueError(f"it unpacks to more than {most_bytes:,} bytes")
                    unpacked.write(chunk)
    return next(path.parent for path in sorted(target.rglob("saved_model.pb")))


def _names(archive: IO[bytes]) -> list[str]:
    try:
        with zipfile.ZipFile(archive) as files:
            if len(files.infolist()) > _MOST_FILES:
                raise ValueError(f"it holds more than {_MOST_FILES:,} files")
            return files.namelist()
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        raise ValueError(f"it cannot be read: {error}") from error


def _inside(target: Path, name: str) -> Path:
    place = PurePosixPath(name.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or ":" in name or "\0" in name or len(name) > 1000:
        raise ValueError(f"a file in it is called {shorten(name)!r}, which leads out of the archive")
    return target / place
