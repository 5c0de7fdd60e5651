"""Limit on the number of messages in an ONNX file, checked before the file is parsed.

A small file can contain millions of messages, and each takes memory once parsed.
"""

from __future__ import annotations

import re

MAX_MESSAGES = 3_000_000
_TEXTS_PER_MESSAGE = 4
"""Number of short texts that take as much memory as one message. Tree ensembles have a text per
node.
"""
_TEXTS: dict[str, int] = {"attribute": 9, "tensor": 6}
"""Field number of the repeated texts in each kind of message."""
_MIN_MESSAGE_BYTES = 2
"""Smallest size of a nested message: its tag and its length."""

_NUMBERS = re.compile(
    rb"(?:[\x00\x08\x10\x18\x20\x28\x30\x38\x40\x48\x50\x58\x60\x68\x70\x78][\x80-\xff]*[\x00-\x7f]"
    rb"|[\x05\x0d\x15\x1d\x25\x2d\x35\x3d\x45\x4d\x55\x5d\x65\x6d\x75\x7d].{4})++",
    re.DOTALL,
)
"""Consecutive integer and float fields with a tag each, of which tree ensembles have millions."""

# Field numbers (onnx.proto) of the nested messages: field -> kind of the message, or "" if the
# message is counted only.
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function", 8: "", 14: "", 20: "training", 26: ""},
    "training": {1: "graph", 2: "graph", 3: "", 4: ""},
    "graph": {
        1: "node",
        5: "tensor",
        15: "sparse",
        11: "value",
        12: "value",
        13: "value",
        14: "value",
        16: "",
    },
    "function": {4: "", 5: "", 6: "", 7: "node", 9: "", 11: "attribute", 12: "value", 14: ""},
    "node": {1: "", 2: "", 5: "attribute", 9: "", 10: ""},
    "attribute": {
        5: "tensor",
        6: "graph",
        9: "",
        10: "tensor",
        11: "graph",
        14: "type",
        15: "type",
        22: "sparse",
        23: "sparse",
    },
    "tensor": {6: "", 13: "", 16: ""},
    "sparse": {1: "tensor", 2: "tensor"},
    "value": {2: "type", 4: "", 2000: ""},
    "type": {1: "type", 2: "type", 3: "type", 4: "type", 5: "type", 8: "type", 9: "type"},
}


def check_message_count(document: bytes, max_messages: int = MAX_MESSAGES) -> None:
    """Raise ``ValueError`` if the file contains more than ``max_messages`` messages.

    Files that are not protobuf are left to the parser to report.
    """
    if len(document) <= max_messages * _MIN_MESSAGE_BYTES:
        return
    messages, texts, unread_bytes = 0, 0, len(document)
    waiting = [("model", 0, len(document))]
    while waiting:
        kind, position, end = waiting.pop()
        nested, text_field = _INSIDE[kind], _TEXTS.get(kind)
        while position < end:
            start = position
            tag, position = varint(document, position, end)
            match tag & 7:
                case 0 | 5 if numbers := _NUMBERS.match(document, start, end):
                    position = numbers.end()
                    unread_bytes -= position - start
                    if messages + unread_bytes // _MIN_MESSAGE_BYTES <= max_messages:
                        return
                case 0:
                    _, position = varint(document, position, end)
                case 1:
                    position += 8
                case 5:
                    position += 4
                case 2:
                    length, position = varint(document, position, end)
                    inner = nested.get(tag >> 3)
                    if tag >> 3 == text_field:
                        count, texts_end = _count_texts(document, start, position + length, end)
                        texts += count
                        length = texts_end - position
                    elif inner is not None:
                        messages += 1
                    if messages + texts // _TEXTS_PER_MESSAGE > max_messages:
                        raise ValueError(
                            f"the file holds more than {max_messages:,} parts,"
                            " too many for the memory that they would take"
                        )
                    if inner and length:
                        waiting.append((inner, position, min(position + length, end)))
                    position += length
                    if not inner:
                        unread_bytes -= length
                        if messages + unread_bytes // _MIN_MESSAGE_BYTES <= max_messages:
                            return  # most of a large file is weights
                case _:
                    return


def _count_texts(document: bytes, start: int, position: int, end: int) -> tuple[int, int]:
    """Count a text and the short texts of the same field that follow; return the count and their
    end.

    The first text begins at ``start`` and ends at ``position``.
    """
    tag, count = document[start], 1
    while position + 1 < end and document[position] == tag and document[position + 1] <= _SHORT:
        position += 2 + document[position + 1]
        count += 1
    return count, position


_SHORT = 127
"""Largest length that is encoded in one byte."""
_LAST_SHIFT = 63
"""Shift of the tenth byte; a varint has at most ten."""


def varint(document: bytes, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end:
        byte = document[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128 or shift == _LAST_SHIFT:
            break
        shift += 7
    return value, position
