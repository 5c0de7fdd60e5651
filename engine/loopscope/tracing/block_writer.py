"""Appending of blocks to a trace file by a thread, so that the program does not wait for the file.

Writing 1 MB to a file takes several times as long as its copy in memory. The thread writes while
the program computes, because a write does not hold the interpreter's lock.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from pathlib import Path
from weakref import WeakSet

from loopscope.errors import InputError
from loopscope.tracing import trace_format as form

_MAX_WAITING_BYTES = 1 << 25
"""Bytes that may wait for the thread; a program that records faster waits for it."""
_WAKING_BYTES = 1 << 22
"""Waiting bytes that wake the thread; to wake it for each block costs the program more."""
_SECONDS_BETWEEN_WRITES = 0.05


class BlockWriter:
    """The file of a trace. A killed program loses the blocks that wait for the thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _opened(path)
        self._failure: OSError | None = None
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        _WRITERS.add(self)

    def append(self, *blocks: tuple[bytes, bytes]) -> None:
        """Append blocks, each a kind and its content.

        A failure to write ends the trace with a warning, and not the program.
        """
        if self._file < 0:
            return
        size = sum(len(content) for _, content in blocks)
        parts = [(form.BLOCK.pack(kind, len(content)), content) for kind, content in blocks]
        with self._changed:
            while self._waiting and self._waiting_bytes + size > _MAX_WAITING_BYTES:
                self._changed.wait()
            self._waiting += [part for pair in parts for part in pair]
            self._waiting_bytes += size
            if self._waiting_bytes > _WAKING_BYTES:
                self._changed.notify_all()
            if self._thread is None:  # inside the lock: callbacks may come from several threads
                self._thread = threading.Thread(target=self._write_waiting, daemon=True)
                self._thread.start()
        if self._failure is not None:
            self.close()

    def close(self) -> None:
        """Wait until everything is written, and close the file."""
        if self._file < 0:
            return
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        os.close(self._file)
        self._file = -1
        if self._failure is not None:
            warnings.warn(
                f"the trace {self.path} ends here, because it cannot be written: "
                f"{self._failure.strerror}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _write_waiting(self) -> None:
        """Write blocks in order until the file is closed; after a failure, discard them."""
        while not self._is_closing or self._waiting:
            with self._changed:
                if not self._is_closing and self._waiting_bytes <= _WAKING_BYTES:
                    self._changed.wait(_SECONDS_BETWEEN_WRITES)
                parts, self._waiting, self._waiting_bytes = self._waiting, [], 0
                self._changed.notify_all()
            try:
                for part in parts:
                    if self._failure is None:
                        _write_all(self._file, part)
            except OSError as error:
                self._failure = error

    def _leave_to_parent(self) -> None:
        """Forget the file in a forked process, which has no thread to write."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


_WRITERS: WeakSet[BlockWriter] = WeakSet()


def _leave_all_to_parent() -> None:
    for writer in _WRITERS:
        writer._leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all_to_parent)


def _opened(path: Path) -> int:
    """Return the descriptor of a new trace file that contains its header."""
    try:
        if path.exists() and path.stat().st_size:
            with path.open("rb") as file:
                if file.read(len(form.MAGIC)) != form.MAGIC:
                    raise InputError(
                        f"{path} exists and is not a trace: a trace does not replace another file"
                    )
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
        _write_all(descriptor, form.HEADER)
    except OSError as error:
        raise InputError(f"the trace {path} cannot be written: {error.strerror or error}") from None
    return descriptor


_BINARY = getattr(os, "O_BINARY", 0) if sys.platform == "win32" else 0


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
