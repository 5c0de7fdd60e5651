"""Tables, vectors and texts of a FlatBuffers file, with every offset checked against the file's
size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

_MAX_FIELDS = 1 << 10
"""Number of fields above which a table is considered damaged."""


class Table:
    """A table of a FlatBuffers file. Fields are numbered from 0, as in the schema.

    Every method raises ``ValueError`` if an offset or a length points outside the file.
    """

    __slots__ = ("_fields", "data", "position")

    def __init__(self, data: memoryview, position: int) -> None:
        self.data = data
        self.position = position
        table = position - self._unpack("<i", position)
        size = self._unpack("<H", table)
        count = (size - 4) // 2
        if not 0 <= count <= _MAX_FIELDS or not 0 <= table <= len(data) - size:
            raise _damaged(f"the table at byte {position} does not describe its fields")
        self._fields = struct.unpack_from(f"<{count}H", data, table + 4)

    @staticmethod
    def root(data: memoryview) -> Table:
        """Return the root table, whose offset is in the first four bytes."""
        if len(data) < 8:
            raise _damaged(f"it has {len(data)} bytes, expected at least 8")
        return Table(data, struct.unpack_from("<I", data)[0])

    def number(self, field: int, form: str = "<i", default: Any = 0) -> Any:
        """Return a number in a format of ``struct``, or the default if the field is absent."""
        place = self.place(field)
        return self._unpack(form, place) if place else default

    def table(self, field: int) -> Table | None:
        """Return a table, or None if the field is absent."""
        place = self.place(field)
        return Table(self.data, self._target(place)) if place else None

    def length(self, field: int, width: int = 4) -> int:
        """Return the number of elements of a vector with ``width`` bytes each; 0 if the field is
        absent.
        """
        return self.vector(field, width)[1]

    def element(self, field: int, index: int) -> Table:
        """Return one table of a vector of tables."""
        start, length = self.vector(field, 4)
        if not 0 <= index < length:
            raise _damaged(f"index {index} is not one of the {length} elements")
        return Table(self.data, self._target(start + 4 * index))

    def elements(self, field: int, maximum: int) -> Iterator[Table]:
        """Return an iterator over the tables of a vector. ``ValueError`` if there are more than
        ``maximum``.
        """
        count = self.length(field)
        if count > maximum:
            raise ValueError(f"a vector has {count:,} tables, more than {maximum:,}")
        return (self.element(field, index) for index in range(count))

    def array(self, field: int, form: str, maximum: int | None = None) -> np.ndarray:
        """Return a vector of numbers of numpy type ``form``. ``ValueError`` if it is longer than
        ``maximum``.
        """
        kind = np.dtype(form)
        start, length = self.vector(field, kind.itemsize)
        if maximum is not None and length > maximum:
            raise ValueError(f"a vector has {length:,} numbers, more than {maximum:,}")
        return np.frombuffer(self.data, kind, length, start) if length else np.empty(0, kind)

    def bytes_of(self, field: int) -> memoryview:
        """Return a vector of bytes as a view of the file."""
        start, length = self.vector(field, 1)
        return self.data[start : start + length]

    def text(self, field: int, maximum: int) -> str:
        """Return a text, "" if the field is absent. ``ValueError`` if it has more than ``maximum``
        bytes.
        """
        content = self.bytes_of(field)
        if len(content) > maximum:
            raise ValueError(f"a text has {len(content):,} bytes, more than {maximum:,}")
        return bytes(content).decode("utf-8", errors="replace")

    def place(self, field: int) -> int:
        """Return the offset of a field in the file; 0 if the field is absent."""
        offset = self._fields[field] if field < len(self._fields) else 0
        return self.position + offset if offset else 0

    def vector(self, field: int, width: int = 4) -> tuple[int, int]:
        """Return the offset of the first element of a vector and its length; zeros if the field is
        absent.
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
