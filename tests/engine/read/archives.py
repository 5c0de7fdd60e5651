"""Zip archives that are not what they seem."""

from __future__ import annotations

import io
import struct
import zipfile


def many(count: int) -> bytes:
    """An archive whose directory names one file over and over."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("saved_model.pb", b"")
    data = made.getvalue()
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entry = data[start:end]
    tail = b"PK\x05\x06" + struct.pack(
        "<HHHHIIH", 0, 0, count & 0xFFFF, count & 0xFFFF, len(entry) * count, start, 0
    )
    return data[:start] + entry * count + tail
