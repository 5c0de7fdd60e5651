"""The weights file of an IR, mapped at the first access."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import ClassVar

from loopscope.read.file_limits import what_is_at

Weights = bytes | bytearray | memoryview | str | os.PathLike[str] | None


MOST_BYTES_READ = 2**31
"""Size limit of a weights file that is read whole."""


class WeightsFile:
    """Read-only, bounds-checked bytes. A path is opened at the first access, and mapped."""

    maps: ClassVar[bool] = True
    """False to read files whole, because other programs write them while they are open: access to a
    mapped file that was shortened ends the process.
    """

    def __init__(self, source: Weights, missing: str = "") -> None:
        """``missing`` is the advice in the error message for a missing source."""
        self._source = source
        self._missing = missing
        self._view: memoryview | None = None

    def take(self, offset: int, size: int) -> memoryview:
        """Return ``size`` bytes from ``offset``. ``ValueError`` if the weights end before that."""
        if self._view is None:
            self._view = self._open()
        if offset + size > len(self._view):
            raise ValueError(
                f"its data is declared as bytes {offset} to {offset + size} of the weights,"
                f" which have {len(self._view)} bytes:"
                " the weights file is cut short or belongs to another model"
            )
        return self._view[offset : offset + size]

    def _open(self) -> memoryview:
        if self._source is None:
            raise ValueError(f"its data lies in a weights file, but there is none: {self._missing}")
        if isinstance(self._source, bytes | bytearray | memoryview):
            return memoryview(self._source).toreadonly().cast("B")
        path = Path(self._source)
        # To open a pipe would block until another process writes into it.
        if what_is_at(path) == "device":
            raise ValueError(f"its data lies in a pipe or a device, not in a file: {self._missing}")
        try:
            return _map_file(path) if self.maps else _read_file(path)
        except OSError as error:
            raise ValueError(
                "its data lies in a weights file that cannot be opened"
                f" ({error.strerror}): {self._missing}"
            ) from error


def _map_file(path: Path) -> memoryview:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _read_file(path: Path) -> memoryview:
    with path.open("rb") as file:
        content = file.read(min(os.fstat(file.fileno()).st_size, MOST_BYTES_READ) + 1)
    if len(content) > MOST_BYTES_READ:
        raise ValueError(
            f"its data lies in a weights file of more than {MOST_BYTES_READ >> 20} MB, which is "
            "not read while the file is watched: open the model without --watch"
        )
    return memoryview(content)
