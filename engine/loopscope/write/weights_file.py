"""The weights file: every constant once, at an aligned place."""

from __future__ import annotations

import hashlib
from typing import BinaryIO

from loopscope.ir.mapped import give_back

# Enough for every element type and for the vector units that read them.
_ALIGNMENT = 64


class WeightsWriter:
    """Appends constants to a file; equal bytes are written once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0
        self._offsets: dict[bytes, int] = {}

    def offset(self, data: memoryview | bytes) -> int:
        """Where these bytes lie in the file, which they are appended to unless they are there
        already.
        """
        digest = hashlib.blake2b(data, digest_size=32).digest()
        known = self._offsets.get(digest)
        if known is None:
            padding = -self._size % _ALIGNMENT
            self._file.write(bytes(padding))
            known = self._offsets[digest] = self._size + padding
            self._file.write(data)
            give_back(data)
            self._size = known + len(data)
        return known
