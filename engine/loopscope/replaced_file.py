"""Files that are replaced as a whole: a failed write leaves the previous content."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

__all__ = ["naming", "replaced_file", "replaced_files"]

_STREAMS = (1, 2)
"""File descriptors of standard output and standard error."""
_BUFFER = 1 << 17


@contextmanager
def replaced_file(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of ``target`` if the block ends without an exception."""
    with replaced_files(target) as (file,):
        yield file


@contextmanager
def replaced_files(*targets: str | os.PathLike[str]) -> Iterator[list[BinaryIO]]:
    """Yield a file for each target. After the last is complete, all replace their targets together.

    Each file is written in the folder of its target, with the target's permissions. A symbolic link
    is not replaced, but the file that it links to. A target that is not a regular file (a pipe, a
    terminal, a device) receives its content at the end. An ``OSError`` names the target, and
    nothing is replaced.
    """
    writers: list[_Replacement | _Stream] = []
    with ExitStack() as stack:
        for target in targets:
            writer = _writer(Path(target))
            writers.append(writer)
            stack.callback(writer.discard)
        yield [writer.open() for writer in writers]
        for writer in writers:
            writer.complete()
        for writer in writers:
            writer.commit()


class _NewFile(io.FileIO):
    """A new file whose errors name the file that it will replace."""

    def __init__(self, path: Path, target: Path) -> None:
        self._target = target
        with naming(target):
            super().__init__(path, "x+")

    def write(self, data: Buffer) -> int:
        with naming(self._target):
            return super().write(data)


class _Replacement:
    """A new file in the folder of the target."""

    def __init__(self, target: Path, path: Path, target_status: os.stat_result | None) -> None:
        self._target = target
        self._path = path
        self._found = target_status
        self._new = path.with_name(f".{path.name[:40]}-{secrets.token_hex(8)}")
        self._file: io.BufferedRandom | None = None
        self._replaced = False

    def open(self) -> BinaryIO:
        if self._found is not None and not os.access(self._path, os.W_OK):
            raise PermissionError(errno.EACCES, "this file is read-only", str(self._target))
        # Readable too, because numpy ignores the errors of a file that is only writable.
        self._file = io.BufferedRandom(_NewFile(self._new, self._target), _BUFFER)
        return self._file

    def complete(self) -> None:
        assert self._file is not None
        with naming(self._target):
            self._file.flush()
            os.fsync(self._file.fileno())  # some file systems report a full disk only here
            self._file.close()
            if self._found is not None:
                self._new.chmod(stat.S_IMODE(self._found.st_mode))

    def commit(self) -> None:
        with naming(self._target):
            self._new.replace(self._path)
        self._replaced = True

    def discard(self) -> None:
        """Remove the new file unless it has replaced the target."""
        if self._file is not None:
            with suppress(OSError):  # data that could not be written before cannot be written now
                self._file.close()
        if not self._replaced:
            self._new.unlink(missing_ok=True)


class _Stream:
    """A buffer for a target that cannot be replaced, such as a pipe."""

    def __init__(self, target: Path, descriptor: int | None) -> None:
        self._target = target
        self._descriptor = descriptor
        self._buffer = io.BytesIO()

    def open(self) -> BinaryIO:
        return self._buffer

    def complete(self) -> None:
        """Do nothing: the stream receives the content in ``commit``."""

    def commit(self) -> None:
        with naming(self._target):
            place = self._target if self._descriptor is None else os.dup(self._descriptor)
            with io.FileIO(place, "w") as raw, io.BufferedWriter(raw) as stream:
                stream.write(self._buffer.getbuffer())

    def discard(self) -> None:
        """Do nothing: this target does not have a new file."""


def _writer(target: Path) -> _Replacement | _Stream:
    with naming(target):
        try:
            status = target.stat()
        except FileNotFoundError:
            return _Replacement(target, Path(os.path.realpath(target)), None)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(
                errno.EISDIR, "this is a folder, and a file is expected to write to"
            )
        for descriptor in _STREAMS:
            if _is_open_at(status, descriptor):
                return _Stream(target, descriptor)
        if not stat.S_ISREG(status.st_mode):
            return _Stream(target, None)
        return _Replacement(target, Path(os.path.realpath(target)), status)


def _is_open_at(status: os.stat_result, descriptor: int) -> bool:
    try:
        return os.path.samestat(status, os.fstat(descriptor))
    except OSError:  # the process was started without this stream
        return False


@contextmanager
def naming(target: str | os.PathLike[str]) -> Iterator[None]:
    """Make an ``OSError`` of the block name this file."""
    try:
        yield
    except OSError as error:
        number, words = error.errno or errno.EIO, error.strerror or str(error)
        raise OSError(number, words, os.fspath(target)) from error
