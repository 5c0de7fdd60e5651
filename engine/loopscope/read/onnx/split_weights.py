"""An ONNX file without the data of its large tensors, and where that data lies in it: most of a
file is never copied nor parsed.

The data that is left out is that of initializers and of Constants, in the outermost graph and in
bodies of If and Loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from loopscope.read.onnx.survey import varint

SMALL_FILE = 2**16
"""Bytes of a file that is parsed as it is."""
_LARGE = 2**13
"""Bytes of data that are left where they lie. No shape, axes or the like is as large, of which
more shapes would be inferred.
"""
_MOST_FIELDS, _MOST_DEPTH = 2**20, 100
"""Beyond them a file is parsed as it is."""

_Pieces = list[bytes | memoryview]
_Field = tuple[int, int, int, int]
"""Where it begins, its tag, where its content begins and ends."""


@dataclass(frozen=True, slots=True)
class Held:
    """Data of one graph that was not parsed: views of the file."""

    initializers: dict[int, memoryview] = field(default_factory=dict[int, memoryview])
    """``raw_data`` by the number of the initializer."""
    constants: dict[int, memoryview] = field(default_factory=dict[int, memoryview])
    """``raw_data`` of ``value`` by the number of the node."""
    bodies: dict[tuple[int, str], Held] = field(default_factory=dict[tuple[int, str], "Held"])
    """Of graphs inside by the number of the node and the attribute."""


NOTHING = Held()
"""Of what was parsed whole. It stays empty."""


@dataclass(frozen=True, slots=True)
class Parted:
    """``outline`` parses to the file's ModelProto but for what ``held`` has."""

    outline: bytes
    held: Held = NOTHING


def parted(document: bytes, small: int = SMALL_FILE, large: int = _LARGE) -> Parted:
    """A file that is no protobuf is given as it is: the parser says so."""
    if len(document) <= small:
        return Parted(document)
    try:
        return _Parting(document, large).parted()
    except (IndexError, _NotParted):
        return Parted(document)


class _NotParted(Exception):
    """The fields do not fill their message, or there are too many."""


class _Parting:
    """One walk over the fields of the model, its graph, and what is large in it."""

    def __init__(self, document: bytes, large: int) -> None:
        self.document, self.view = document, memoryview(document)
        self.large = large
        self.fields = 0

    def parted(self) -> Parted:
        fields = self._fields(0, len(self.document))
        graphs = [one for one in fields if one[1] == _GRAPH]
        if len(graphs) != 1:
            raise _NotParted
        ((start, _, at, end),) = graphs
        held = Held()
        # A function may stand for any operation, and take the tensors of its attributes.
        has_functions = any(tag == _FUNCTION for _, tag, _, _ in fields)
        graph = self._graph(at, end, held, 0, enters_nodes=not has_functions)
        return Parted(
            b"".join((self.view[:start], *_written(_GRAPH, graph), self.view[end:])), held
        )

    def _graph(self, at: int, end: int, held: Held, depth: int, *, enters_nodes: bool) -> _Pieces:
        if depth > _MOST_DEPTH:
            raise _NotParted
        pieces, kept = _Pieces(), at
        for start, tag, inside, stop, number in self._large_fields(at, end):
            made = None
            if tag == _NODE and enters_nodes:
                made = self._node(inside, stop, number, held, depth)
            elif tag == _INITIALIZER:
                made = self._tensor(inside, stop, held.initializers, number)
            if made is not None:
                pieces += (self.view[kept:start], *_written(tag, made))
                kept = stop
        return [*pieces, self.view[kept:end]]

    def _node(self, at: int, end: int, number: int, held: Held, depth: int) -> _Pieces | None:
        """None where it stays as it is: what is large in it is not what is known here, or is
        said twice.
        """
        fields = self._fields(at, end)
        kind = _only(self._texts(fields, _KIND))
        if any(self._texts(fields, _DOMAIN)) or kind not in _HOLDERS:
            return None
        attributes = [one for one in fields if one[1] == _ATTRIBUTE]
        names = [
            _only(self._texts(self._fields(inside, stop), _NAME))
            for _, _, inside, stop in attributes
        ]
        if len({*names}) < len(names) or (kind == b"Constant" and names != [b"value"]):
            return None
        pieces, kept = _Pieces(), at
        for (start, tag, inside, stop), name in zip(attributes, names, strict=True):
            made = (
                self._attribute(inside, stop, number, name, held, depth)
                if stop - inside > self.large
                else None
            )
            if made is not None:
                pieces += (self.view[kept:start], *_written(tag, made))
                kept = stop
        return [*pieces, self.view[kept:end]]

    def _attribute(
        self, at: int, end: int, number: int, name: bytes, held: Held, depth: int
    ) -> _Pieces | None:
        fields = self._fields(at, end)
        tags = [tag for _, tag, _, _ in fields]
        wanted = _TENSOR if name == b"value" else _BODY
        types = [
            varint(self.document, inside, stop)[0]
            for _, tag, inside, stop in fields
            if tag == _TYPE
        ]
        if (
            tags.count(wanted) != 1
            or _REFERENCE in tags
            or types[-1:] != [_TYPES[wanted]]
            or not name.isascii()
        ):
            return None
        start, tag, inside, stop = fields[tags.index(wanted)]
        if tag == _TENSOR:
            made = self._tensor(inside, stop, held.constants, number)
        else:
            within = held.bodies[number, name.decode()] = Held()
            made = self._graph(inside, stop, within, depth + 1, enters_nodes=True)
        return (
            None
            if made is None
            else [self.view[at:start], *_written(tag, made), self.view[stop:end]]
        )

    def _tensor(
        self, at: int, end: int, found: dict[int, memoryview], number: int
    ) -> _Pieces | None:
        """Without its data, which is put among what was found: of several the last one holds.
        None where that is little, and stays.
        """
        pieces, kept, data = _Pieces(), at, self.view[:0]
        for start, tag, inside, stop in self._fields(at, end):
            if tag == _RAW_DATA:
                pieces.append(self.view[kept:start])
                data, kept = self.view[inside:stop], stop
        if len(data) <= self.large:
            return None
        found[number] = data
        return [*pieces, self.view[kept:end]]

    def _texts(self, fields: Sequence[_Field], wanted: int) -> list[bytes]:
        return [self.document[at:end] for _, tag, at, end in fields if tag == wanted]

    def _large_fields(self, at: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Of a graph that takes these bytes, what is large; with each node and initializer, how
        many of its like come before it.
        """
        document, large, tags = self.document, self.large, bytearray()
        note = tags.append
        numbers, counted = Counter[int](), 0
        for _ in range(_MOST_FIELDS):
            if at >= end:
                break
            start, tag, length = at, document[at], document[at + 1]
            if tag in _ONE_BYTE_TAGS and (length < 128 or document[at + 2] < 128):  # nearly all
                at += 2
                if length >= 128:
                    length, at = length & 127 | document[at] << 7, at + 1
                at += length
                note(tag)
            else:
                _, tag, inside, at = self._field(at, end)
                length = at - inside
                note(tag if tag < 256 else 0)
            if length > large:
                for one in (_NODE, _INITIALIZER):
                    numbers[one] += tags.count(one, counted, -1)
                counted = len(tags) - 1
                yield start, tag, at - length, at, numbers[tag]
        self._counted(len(tags), at, end)

    def _fields(self, at: int, end: int) -> list[_Field]:
        """Of a message that takes these bytes."""
        found = list[_Field]()
        while at < end and len(found) <= _MOST_FIELDS:
            found.append(self._field(at, end))
            at = found[-1][-1]
        self._counted(len(found), at, end)
        return found

    def _counted(self, fields: int, at: int, end: int) -> None:
        self.fields += fields
        if at != end or self.fields > _MOST_FIELDS:
            raise _NotParted

    def _field(self, at: int, end: int) -> _Field:
        start, tag, length = at, self.document[at], self.document[at + 1]
        if length < 128 and tag in _ONE_BYTE_TAGS:
            return start, tag, at + 2, at + 2 + length
        tag, at = varint(self.document, start, end)
        kind = tag & 7
        if kind == 2:
            length, at = varint(self.document, at, end)
            return start, tag, at, at + length
        if kind == 0:
            return start, tag, at, varint(self.document, at, end)[1]
        if kind in _FIXED:
            return start, tag, at, at + _FIXED[kind]
        raise _NotParted


# Fields of onnx.proto: the number, and how the content is written (0: a number, 2: bytes of a
# length that is said before).
_GRAPH, _FUNCTION = 7 << 3 | 2, 25 << 3 | 2
_NODE, _INITIALIZER = 1 << 3 | 2, 5 << 3 | 2
_KIND, _ATTRIBUTE, _DOMAIN = 4 << 3 | 2, 5 << 3 | 2, 7 << 3 | 2
_NAME, _TENSOR, _BODY, _TYPE, _REFERENCE = 1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2, 20 << 3, 21 << 3 | 2
_RAW_DATA = 9 << 3 | 2
_ONE_BYTE_TAGS = frozenset(number << 3 | 2 for number in range(1, 16))
"""Of bytes of a length that is said before, the tags that are one byte, as nearly all are."""
_FIXED = {1: 8, 5: 4}
"""Bytes of what is written otherwise."""
_TYPES = {_TENSOR: 4, _BODY: 5}
_HOLDERS = (b"Constant", b"If", b"Loop")


def _only(texts: Sequence[bytes]) -> bytes:
    """Of a field that is said at most once, or else holds what is said last."""
    return texts[-1] if texts else b""


def _written(tag: int, pieces: _Pieces) -> _Pieces:
    """A field whose content is these pieces; all tags here are one byte."""
    length = sum(map(len, pieces))
    said = bytearray([tag])
    while length >= 128:
        said.append(length & 127 | 128)
        length >>= 7
    said.append(length)
    return [bytes(said), *pieces]
