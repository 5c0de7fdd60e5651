"""The weights file, which contains every constant once at an aligned offset."""

from __future__ import annotations

import hashlib
from typing import BinaryIO

from loopscope.ir.mapped import release_pages

# Sufficient for every element type and for the vector units that read them.
_ALIGNMENT = 64


class WeightsWriter:
    """A writer that appends constants to a file and writes equal bytes once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0
        self._offsets: dict[bytes, int] = {}

    def offset(self, data: memoryview | bytes) -> int:
        """Return the offset of these bytes in the file; append them if they are new."""
        digest = hashlib.blake2b(data, digest_size=32).digest()
        offset = self._offsets.get(digest)
        if offset is None:
            padding = -self._size % _ALIGNMENT
            self._file.write(bytes(padding))
            offset = self._offsets[digest] = self._size + padding
            self._file.write(data)
            release_pages(data)
            self._size = offset + len(data)
        return offset
