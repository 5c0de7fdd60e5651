"""Counts the messages of an ONNX file before it is parsed: a small file can hold millions, and
each takes memory.
"""

from __future__ import annotations

import re

MOST_MESSAGES = 3_000_000
_TEXTS_PER_MESSAGE = 4
"""Texts of an attribute or tensor that take the memory of one message: a forest has one for each
of its nodes.
"""
_TEXTS: dict[str, int] = {"attribute": 9, "tensor": 6}
"""The field of each kind of message that lists such texts."""
_LEAST_BYTES = 2
"""Of a message within another: its tag and its length."""

_NUMBERS = re.compile(
    rb"(?:[\x00\x08\x10\x18\x20\x28\x30\x38\x40\x48\x50\x58\x60\x68\x70\x78][\x80-\xff]*[\x00-\x7f]"
    rb"|[\x05\x0d\x15\x1d\x25\x2d\x35\x3d\x45\x4d\x55\x5d\x65\x6d\x75\x7d].{4})++",
    re.DOTALL,
)
"""Fields that are integers or floats, one after the other: a forest has millions, each with a
tag of its own.
"""

# Field numbers (onnx.proto) of the messages that hold many others, by kind: field -> kind of the
# message inside.
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


def survey(document: bytes, most: int = MOST_MESSAGES) -> None:
    """``ValueError`` when there are too many messages; a file that is no protobuf is left to the
    parser, which says so.
    """
    if len(document) <= most * _LEAST_BYTES:
        return
    found, texts, unseen = 0, 0, len(document)
    waiting = [("model", 0, len(document))]
    while waiting:
        kind, at, end = waiting.pop()
        inside, listed = _INSIDE[kind], _TEXTS.get(kind)
        while at < end:
            start = at
            tag, at = varint(document, at, end)
            match tag & 7:
                case 0 | 5 if numbers := _NUMBERS.match(document, start, end):
                    at = numbers.end()
                    unseen -= at - start
                    if found + unseen // _LEAST_BYTES <= most:
                        return
                case 0:
                    _, at = varint(document, at, end)
                case 1:
                    at += 8
                case 5:
                    at += 4
                case 2:
                    length, at = varint(document, at, end)
                    inner = inside.get(tag >> 3)
                    if tag >> 3 == listed:
                        count, past = _texts(document, start, at + length, end)
                        texts += count
                        length = past - at
                    elif inner is not None:
                        found += 1
                    if found + texts // _TEXTS_PER_MESSAGE > most:
                        raise ValueError(
                            f"the file holds more than {most:,} parts, too many for the memory that they would take"
                        )
                    if inner and length:
                        waiting.append((inner, at, min(at + length, end)))
                    at += length
                    if not inner:
                        unseen -= length
                        if found + unseen // _LEAST_BYTES <= most:
                            return  # most of a large file is weights
                case _:
                    return


def _texts(document: bytes, start: int, at: int, end: int) -> tuple[int, int]:
    """Count the text that ``start`` begins and ends at ``at``, and the short ones of the same
    field that follow; return where they end.
    """
    tag, count = document[start], 1
    while at + 1 < end and document[at] == tag and document[at + 1] <= _SHORT:
        at += 2 + document[at + 1]
        count += 1
    return count, at


_SHORT = 127
"""The largest length that one byte says."""
_LAST_SHIFT = 63
"""Of the tenth byte: no number has more."""


def varint(document: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = document[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128 or shift == _LAST_SHIFT:
            break
        shift += 7
    return value, at
