"""The format of a trace file, and the thread that appends blocks to it.

``docs/reference/traces.md`` describes the format: a header, then blocks that are only ever
appended. A file whose last block is cut short, as after a kill, is read up to that block.
Fingerprints are the facts and sampled elements that represent a tensor beyond the budget.

Writing 1 MB to a file takes several times as long as its copy in memory. The thread writes while
the program computes, because a write does not hold the interpreter's lock.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import sys
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from weakref import WeakSet

import numpy as np

from loopscope.errors import InputError
from loopscope.ir.element_type import ElementType
from loopscope.ir.recorded_rows import sample_indices

MAGIC: Final = b"\x89loopscope trace\r\n"
VERSION_OF_TRACE: Final = 1
HEADER: Final = MAGIC + struct.pack("<I", VERSION_OF_TRACE)
BLOCK: Final = struct.Struct("<cQ")
"""Kind and length in bytes of the block that follows."""
EVENTS: Final = b"E"
"""Kind of a block that contains a MessagePack array of events."""
DATA: Final = b"D"
"""Kind of a block that contains the bytes of the tensor in the last ``LARGE`` event."""

# Events are MessagePack arrays that begin with one of these numbers.
LOOP: Final = 0
"""A loop begins: name, and number of iterations of its iterable or nil."""
ITERATION: Final = 1
"""An iteration of the innermost open loop begins."""
SCALARS: Final = 2
"""Plain numbers and booleans: a map from name to value."""
TENSOR: Final = 3
"""A tensor: name, element type, shape, bytes."""
LARGE: Final = 4
"""A tensor whose bytes are in the next data block: name, element type, shape."""
FINGERPRINT: Final = 5
"""A tensor beyond the budget: name, element type, shape, facts, bytes of the sampled elements."""
BRANCH: Final = 6
"""A decision: name, and true or false."""
CARRIED: Final = 7
"""Names of the values that the innermost open loop carries."""
END: Final = 8
"""The innermost open loop ends: its ending, and a text."""
FAILURE: Final = 9
"""The program raised an exception: its text."""
CLOSED: Final = 10
"""The recorder was closed."""

EXHAUSTED, LEFT, REASON = "exhausted", "left", "reason"
"""Endings of a loop: its iterable has ended, the program left it, or ``ended`` named the reason."""

MOST_DIMENSIONS: Final = 32
BY_NAME: Mapping[str, ElementType] = {
    str(element_type): element_type
    for element_type in ElementType
    if element_type.dtype.names is None and element_type is not ElementType.STRING
}
"""Element types of the tensors of a trace, by name; each element takes whole bytes."""


DIGEST, NORM, MINIMUM, MAXIMUM = "digest", "norm", "minimum", "maximum"
"""Facts of a fingerprint: SHA-256 of the bytes, Euclidean norm, smallest and largest number."""
NANS, INFINITIES = "nans", "infinities"
"""Facts of a fingerprint: the number of NaN and of infinite elements."""
_PIECE_ELEMENTS = 1 << 16
"""Number of elements that are converted to f64 at once."""


def fingerprint(array: np.ndarray) -> tuple[Mapping[str, float | int | str], np.ndarray]:
    """Return the facts about a tensor and its sampled elements."""
    flat = np.ascontiguousarray(array).reshape(-1)
    facts: dict[str, float | int | str] = {
        **statistics(flat),
        DIGEST: hashlib.sha256(flat.view(np.uint8).data).hexdigest(),
    }
    return facts, flat[sample_indices(flat.size)]


def statistics(flat: np.ndarray) -> dict[str, float | int]:
    """Return norm, extremes and counts of the elements of a flat tensor.

    NaN and infinite elements do not contribute to norm and extremes.
    """
    squares, low, high, nans, infinities = 0.0, math.inf, -math.inf, 0, 0
    for begin in range(0, flat.size, _PIECE_ELEMENTS):
        piece = flat[begin : begin + _PIECE_ELEMENTS].astype(np.float64)
        finite = piece[np.isfinite(piece)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
            squares += float(finite @ finite)
        if finite.size != piece.size:
            piece_nans = int(np.isnan(piece).sum())
            nans += piece_nans
            infinities += piece.size - finite.size - piece_nans
    return {
        NORM: math.sqrt(squares),
        MINIMUM: low if low <= high else math.nan,
        MAXIMUM: high if low <= high else math.nan,
        NANS: nans,
        INFINITIES: infinities,
    }


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
        parts = [(BLOCK.pack(kind, len(content)), content) for kind, content in blocks]
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
                if file.read(len(MAGIC)) != MAGIC:
                    raise InputError(
                        f"{path} exists and is not a trace: a trace does not replace another file"
                    )
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
        _write_all(descriptor, HEADER)
    except OSError as error:
        raise InputError(f"the trace {path} cannot be written: {error.strerror or error}") from None
    return descriptor


_BINARY = getattr(os, "O_BINARY", 0) if sys.platform == "win32" else 0


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
