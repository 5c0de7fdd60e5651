"""Tables, vectors and texts of a FlatBuffers file, read with every offset checked against the
file's size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

_MOST_FIELDS = 1 << 10
"""Number of fields above which a table is taken for damaged."""


class Table:
    """A table of a FlatBuffers file; fields are called by their number in the schema, from 0.

    Every method raises ``ValueError`` where an offset or a length points outside the file.
    """

    __slots__ = ("_fields", "data", "position")

    def __init__(self, data: memoryview, position: int) -> None:
        self.data = data
        self.position = position
        table = position - self._unpack("<i", position)
        size = self._unpack("<H", table)
        count = (size - 4) // 2
        if not 0 <= count <= _MOST_FIELDS or not 0 <= table <= len(data) - size:
            raise _damaged(f"the table at byte {position} does not describe its fields")
        self._fields = struct.unpack_from(f"<{count}H", data, table + 4)

    @staticmethod
    def root(data: memoryview) -> Table:
        """Return the table that the first four bytes of a file point to."""
        if len(data) < 8:
            raise _damaged(f"it has {len(data)} bytes, expected at least 8")
        return Table(data, struct.unpack_from("<I", data)[0])

    def number(self, field: int, form: str = "<i", default: Any = 0) -> Any:
        """Return a number, in the notation of ``struct``; the default where the file leaves it
        out.
        """
        place = self.place(field)
        return self._unpack(form, place) if place else default

    def table(self, field: int) -> Table | None:
        """Return a table, or None where the file leaves it out."""
        place = self.place(field)
        return Table(self.data, self._target(place)) if place else None

    def length(self, field: int, width: int = 4) -> int:
        """Return the number of elements of a vector, each of ``width`` bytes; 0 where there is
        none.
        """
        return self.vector(field, width)[1]

    def element(self, field: int, index: int) -> Table:
        """Return a table of a vector of tables."""
        start, length = self.vector(field, 4)
        if not 0 <= index < length:
            raise _damaged(f"index {index} is not one of the {length} elements")
        return Table(self.data, self._target(start + 4 * index))

    def elements(self, field: int, most: int) -> Iterator[Table]:
        """Yield the tables of a vector that has at most ``most``."""
        count = self.length(field)
        if count > most:
            raise ValueError(f"a vector has {count:,} tables, more than {most:,}")
        return (self.element(field, index) for index in range(count))

    def array(self, field: int, form: str, most: int | None = None) -> np.ndarray:
        """Return a vector of numbers of numpy's type ``form``, of at most ``most`` elements."""
        kind = np.dtype(form)
        start, length = self.vector(field, kind.itemsize)
        if most is not None and length > most:
            raise ValueError(f"a vector has {length:,} numbers, more than {most:,}")
        return np.frombuffer(self.data, kind, length, start) if length else np.empty(0, kind)

    def bytes_of(self, field: int) -> memoryview:
        """Return a vector of bytes, as a view into the file."""
        start, length = self.vector(field, 1)
        return self.data[start : start + length]

    def text(self, field: int, most: int) -> str:
        """Return a text of at most ``most`` bytes; empty where the file leaves it out."""
        content = self.bytes_of(field)
        if len(content) > most:
            raise ValueError(f"a text has {len(content):,} bytes, more than {most:,}")
        return bytes(content).decode("utf-8", errors="replace")

    def place(self, field: int) -> int:
        """Return the byte that a field begins at; 0 where the file leaves it out."""
        offset = self._fields[field] if field < len(self._fields) else 0
        return self.position + offset if offset else 0

    def vector(self, field: int, width: int = 4) -> tuple[int, int]:
        """Return the first byte and the number of elements of a vector; two zeros where there is
        none.
        """
        place = self.place(field)
        if not place:
            return 0, 0
        start = self._target(place)
        length = self._unpack("<I", start)
        if length * width > len(self.data) - start - 4:
            raise _damaged(
                f"the vector at byte {start} has {length:,} elements, more than the file holds"
            )
        return start + 4, length

    def _target(self, place: int) -> int:
        return place + int(self._unpack("<I", place))

    def _unpack(self, form: str, place: int) -> Any:
        if not 0 <= place <= len(self.data) - struct.calcsize(form):
            raise _damaged(f"an offset points to byte {place} of {len(self.data):,}")
        return struct.unpack_from(form, self.data, place)[0]


def _damaged(reason: str) -> ValueError:
    return ValueError(f"the file is damaged: {reason}")
